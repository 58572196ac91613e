"""Configurations of targets and evaluators as they are meant: the same file has one name, from wherever it is named."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from evalwright.model.plan import EvaluatorSpec, Variant

__all__ = ["meant_evaluator", "meant_variant"]

_OF_THE_RUNNER = ("timeout_seconds", "concurrency")


def meant_variant(variant: Variant) -> Variant:
    """Without the keys that `eval.yaml` gives the target as well as the runner."""
    config = {key: value for key, value in variant.config.items() if key not in _OF_THE_RUNNER}
    if variant.adapter == "agentv":
        config = _targets(config)
    elif variant.adapter == "letta_agent":
        folder = config.pop("folder", ".")
        named = [key for key in ("backend", "agent_script", "setup_script") if key in config]
        config |= {key: _code(config[key], [folder]) for key in named}
    elif variant.adapter == "pixie_app":
        folders = config.pop("folders", [])
        config["runnables"] = {key: _code(value, folders) for key, value in config.get("runnables", {}).items()}
    return msgspec.structs.replace(variant, config=config)


def meant_evaluator(plain: Mapping[str, Any]) -> dict[str, Any]:
    """The same of an evaluator as plain data, and of the members of a composite."""
    config = dict(plain.get("config", {}))
    if "judges" in config:
        config["judges"] = _targets(config["judges"])
    if isinstance(config.get("cwd"), str):
        config["cwd"] = os.path.normpath(config["cwd"])
    if isinstance(config.get("function"), str):
        config["function"] = _code(config["function"], ["/"])
    if plain["type"] == "pixie":
        config["reference"] = _code(config["reference"], config.pop("folders"))
    if plain["type"] == "composite":
        aggregator = dict(config.get("aggregator") or {})
        if aggregator.get("type") != "code_judge":
            config.pop("folder", None)
        if "judges" in aggregator:
            config["aggregator"] = aggregator | {"judges": _targets(aggregator["judges"])}
        members = [msgspec.convert(member, EvaluatorSpec) for member in config["evaluators"]]
        config["evaluators"] = [meant_evaluator(msgspec.to_builtins(member)) for member in members]
    found = {**plain, "config": config}
    extractor = plain.get("extractor")
    if extractor and "function" in extractor["config"]:
        function = _code(extractor["config"]["function"], ["/"])
        found["extractor"] = {**extractor, "config": {**extractor["config"], "function": function}}
    return found


def _targets(config: Mapping[str, Any]) -> dict[str, Any]:
    """Targets of agentv, the folder of each command absolute."""
    if not config.get("targets"):
        return dict(config)
    folder = config.get("folder", ".")
    targets = {
        name: {**target, "cwd": os.path.normpath(Path(folder) / target.get("cwd", ""))}
        if target.get("provider") == "cli"
        else target
        for name, target in config["targets"].items()
    }
    return {key: value for key, value in config.items() if key != "folder"} | {"targets": targets}


def _code(named: str, folders: list[str]) -> str:
    """`file.py:name` with the file's absolute path."""
    path, colon, name = named.rpartition(":")
    found = next((Path(folder) / path for folder in folders if colon and (Path(folder) / path).is_file()), None)
    return named if found is None else f"{os.path.realpath(found)}:{name}"
