"""What is odd in a dataset but not wrong: keys that are nearly known, names that occur twice, stored objects."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from evalwright.errors import Problem, did_you_mean

__all__ = ["DATASET_KEYS", "ENTRY_KEYS", "Oddities"]

DATASET_KEYS = ("name", "runnable", "evaluators", "entries", "items")
ENTRY_KEYS = (
    "entry_kwargs", "input_data", "eval_input", "eval_output", "description", "expectation", "expected_output",
    "eval_metadata", "evaluators",
)  # fmt: skip


class Oddities:
    """The oddities of one dataset, whose entries are under `key`. It may have mistakes that were not looked for."""

    def __init__(self, path: Path, raw: dict[str, Any], key: str) -> None:
        self._path, self._raw = path, raw
        listed = raw.get(key)
        self._entries: list[tuple[int, str, dict[str, Any]]] = [
            (number, f"{key}.{number - 1}", entry)
            for number, entry in enumerate(listed if isinstance(listed, list) else (), 1)
            if isinstance(entry, dict)
        ]
        """The number of each entry, from 1, its place, and the entry."""

    def misspelt(self) -> Iterator[Problem]:
        """Keys that are nearly known ones."""
        for place, mapping, known in [
            ("", self._raw, DATASET_KEYS),
            *((f"{place}.", entry, ENTRY_KEYS) for _, place, entry in self._entries),
        ]:
            for key in mapping:
                if near := "" if key in known else did_you_mean(key, known):
                    yield self._problem(f"unknown key {key!r}{near}", place + key, unread=True)

    def repeated(self) -> Iterator[Problem]:
        """Names that occur twice in a list, and an expectation that is given under two names."""
        for name in _repeated_names(self._raw.get("evaluators") or []):
            yield self._problem(f"{name!r} appears more than once", "evaluators")
        for number, place, entry in self._entries:
            if {"expectation", "expected_output"} <= entry.keys():
                message = f"Entry #{number}: 'expectation' is given, too, and 'expected_output' is not used"
                yield self._problem(message, f"{place}.expected_output", unread=True)
            eval_input = entry.get("eval_input")
            named = (
                [item.get("name") for item in eval_input if isinstance(item, dict)]
                if isinstance(eval_input, list)
                else []
            )
            for key, names in (("eval_input", named), ("evaluators", entry.get("evaluators") or [])):
                for name in _repeated_names(names):
                    yield self._problem(f"Entry #{number}: {name!r} appears more than once", f"{place}.{key}")

    def doubled(self, runnable: str | None, evaluators: Iterable[str], folders: Sequence[str]) -> Iterator[Problem]:
        """Files that several folders have under the same name: the first one is used."""
        for key, named in [("runnable", runnable or ""), *(("evaluators", name) for name in evaluators)]:
            file, colon, _ = named.rpartition(":")
            files = [path for folder in folders if colon and os.path.isfile(path := Path(folder, file))]
            if others := [str(path) for path in files[1:] if not path.samefile(files[0])]:
                message = f"{file!r} is {files[0]}; another file of that name is not used: {', '.join(others)}"
                yield self._problem(message, key)

    def objects(self) -> Iterator[Problem]:
        """Values that are objects of a class."""
        for number, place, entry in self._entries:
            for kind in sorted(_classes_in(entry.get("eval_input"))):
                message = (
                    f"Entry #{number}: an object of {kind} is given to the application as a plain mapping; "
                    "--trust-pickled-types restores it if its class belongs to the project's"
                )
                yield self._problem(message, f"{place}.eval_input")

    def _problem(self, message: str, key: str, *, unread: bool = False) -> Problem:
        return Problem(str(self._path), message, key=key, unread=unread)


def _repeated_names(names: list[Any]) -> list[str]:
    return sorted({str(name) for name in names if name is not None and names.count(name) > 1})


def _classes_in(value: Any) -> set[str]:
    """The classes of all objects in a JSON value."""
    classes: set[str] = set()
    waiting = [value]
    while waiting:
        name = waiting.pop()
        if isinstance(name, dict):
            if isinstance(name.get("py/object"), str):
                classes.add(name["py/object"])
            waiting += name.values()
        elif isinstance(name, list):
            waiting += name
    return classes
