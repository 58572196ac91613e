"""What `convert` needs to know about pixie datasets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evalwright.formats.pixie import FORMAT
from evalwright.formats.pixie.evaluator import TYPE
from evalwright.formats.shared.findings import unknown_keys
from evalwright.formats.shared.portable_paths import absolute_place

__all__ = ["normalize", "unread"]

_KNOWN = {
    "": {"name", "runnable", "evaluators", "entries", "items"},
    "entry": {
        "entry_kwargs", "input_data", "eval_input", "description", "expectation", "expected_output", "eval_metadata",
        "evaluators",
    },
}  # fmt: skip


def normalize(data: dict[str, Any]) -> dict[str, Any]:
    """Users' code with the absolute paths of its files, wherever they were searched for."""
    config = dict(data["config"])
    if data.get("adapter") in FORMAT.targets:
        folders = config.pop("folders", [])
        places = {key: absolute_place(value, folders) for key, value in config.get("runnables", {}).items()}
        return data | {"config": config | {"runnables": places}}
    if data.get("type") != TYPE:
        return data
    config["reference"] = absolute_place(config["reference"], config.pop("folders"))
    return data | {"config": config}


def unread(document: dict[str, Any]) -> Iterator[str]:
    """Paths of keys without effect."""
    for dataset in document.get("datasets", ()):
        yield from unknown_keys(dataset, _KNOWN[""], "")
        for name in ("entries", "items"):
            entries = dataset.get(name)
            for i, entry in enumerate(entries if isinstance(entries, list) else ()):
                yield from unknown_keys(entry, _KNOWN["entry"], f"{name}.{i}.")
