"""Configurations of targets and evaluators by meaning: a file has the same name wherever it is named from."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import msgspec

from evalwright.model.plan import EvaluatorSpec, Variant
from evalwright.registry import formats, resolve

__all__ = ["meant_evaluator", "meant_variant"]

_OF_THE_RUNNER = ("timeout_seconds", "concurrency")


def meant_variant(variant: Variant) -> dict[str, Any]:
    """A variant as plain data, without the keys that `eval.yaml` gives both the target and the runner."""
    plain = msgspec.to_builtins(variant)
    # It turns answers that other formats accept into errors: no conversion changes what a working target does.
    del plain["evalh_rules"]
    config = {key: value for key, value in variant.config.items() if key not in _OF_THE_RUNNER}
    return _normalized_by_formats({**plain, "config": config})


def meant_evaluator(plain: Mapping[str, Any]) -> dict[str, Any]:
    """The same for an evaluator as plain data, and for the members of a composite."""
    config = dict(plain.get("config", {}))
    if isinstance(config.get("cwd"), str):
        config["cwd"] = os.path.normpath(config["cwd"])
    if plain["type"] == "composite":
        if (config.get("aggregator") or {}).get("type") != "code_judge":
            config.pop("folder", None)
        members = [msgspec.convert(member, EvaluatorSpec) for member in config["evaluators"]]
        config["evaluators"] = [meant_evaluator(msgspec.to_builtins(member)) for member in members]
    return _normalized_by_formats({**plain, "config": config})


def _normalized_by_formats(data: dict[str, Any]) -> dict[str, Any]:
    """Normalized by every format: a suite of one may use targets and evaluators of another."""
    for suite_format in formats():
        if suite_format.normalize is not None:
            data = resolve(suite_format.normalize)(data)
    return data
