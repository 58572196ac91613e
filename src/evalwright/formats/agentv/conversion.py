"""What `convert` needs to know about AgentV."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evalwright.formats.agentv import FORMAT
from evalwright.formats.agentv.case_keys import EXECUTION_KEYS
from evalwright.formats.agentv.file import CASE_LISTS, EXECUTION, HEAD, TRIALS
from evalwright.formats.agentv.message_files import Files
from evalwright.formats.agentv.targets_file import targets_file
from evalwright.formats.shared.findings import unknown_keys
from evalwright.formats.shared.references import references_in

__all__ = ["names_in", "normalize", "unread"]

_ABOUT = {"version", "evaluator", "author", "license", "category", "suite", "requires"}
"""Keys that describe a file and change nothing."""


def names_in(source: Path, options: Mapping[str, Any]) -> list[str]:
    """The references to variables in the targets and in an eval in YAML."""
    places = [targets_file(options.get("targets"), Files(source.resolve().parent).roots)]
    if source.suffix in (".yaml", ".yml"):
        places.append(source)
    return references_in(place for place in places if place is not None and os.path.isfile(place))


def normalize(data: dict[str, Any]) -> dict[str, Any]:
    """Targets, of a variant and of judges, with the folder of each command as an absolute path; no default."""
    config = dict(data["config"])
    if data.get("type") == "tool_trajectory" and config.get("args_match") == "superset":
        del config["args_match"]
    if data.get("adapter") in FORMAT.targets:
        return data | {"config": _targets(config)}
    for owner in (config, dict(config.get("aggregator") or {})):
        if "judges" in owner:
            owner["judges"] = _targets(owner["judges"])
            if owner is not config:
                config["aggregator"] = owner
    return data | {"config": config}


def _targets(config: Mapping[str, Any]) -> dict[str, Any]:
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


def unread(document: dict[str, Any]) -> Iterator[str]:
    """Paths of keys without effect."""
    yield from unknown_keys(document, {*HEAD, *CASE_LISTS} - _ABOUT, "")
    shared = document.get("execution")
    yield from unknown_keys(shared, EXECUTION, "execution.")
    if isinstance(shared, dict):
        yield from unknown_keys(shared.get("trials"), TRIALS, "execution.trials.")
    for name in CASE_LISTS:
        cases = document.get(name)
        for i, case in enumerate(cases if isinstance(cases, list) else ()):
            execution = case.get("execution") if isinstance(case, dict) else None
            yield from unknown_keys(execution, EXECUTION_KEYS, f"{name}[{i}].execution.")
