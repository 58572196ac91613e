"""One dataset of an instrumented application: its entries as cases, with every mistake in it at once."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from evalwright import registry
from evalwright.errors import InputError, Problem, counted, with_others
from evalwright.files.boundary import Boundary, OutsideError
from evalwright.files.key_paths import as_written
from evalwright.formats.pixie.dataset_oddities import DATASET_KEYS, ENTRY_KEYS, Oddities
from evalwright.formats.pixie.entry_arguments import hold_arguments
from evalwright.formats.pixie.evaluator import TYPE
from evalwright.formats.pixie.test_cases import unread_in_test_cases, with_flat_entries
from evalwright.formats.shared.isolation import isolating, refusal
from evalwright.model.case import ForeignCase
from evalwright.model.plan import Variant

__all__ = ["Dataset", "read_dataset"]

_MISSING = object()
_RESERVED = "input_data"


@dataclass
class Dataset:
    """One file."""

    name: str
    key: str
    runnable: str | None
    folders: list[str]
    document: dict[str, Any]
    cases: list[ForeignCase] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    """What is odd but not wrong."""
    unfit: list[Problem] = field(default_factory=list)
    """Arguments that the Runnable's model would reject: such an entry becomes an error when it is run."""
    unsure: int = 0
    """Number of entries that the Runnable's model may still reject, which is only known after importing it."""
    objects: list[Problem] = field(default_factory=list)
    """Where a value is an object of a class, which is read as a plain mapping unless the file is trusted."""


def read_dataset(path: Path, *, to_run: bool = True, allowed: Sequence[Path] = ()) -> Dataset:
    """The dataset in a file; with `to_run` its runnable and evaluators are imported. Raises InputError.

    The files that it names must lie in its repository, the project, the working directory or an `allowed` folder. Older
    files may lack a runnable, without which they cannot be run.
    """
    try:
        raw = json.loads(path.read_text("utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(Problem(str(path), str(error))) from error
    except json.JSONDecodeError as error:
        message = f"broken JSON: {error.msg} (line {error.lineno} column {error.colno})"
        raise InputError(Problem(str(path), message, error.lineno)) from error
    except RecursionError as error:
        raise InputError(Problem(str(path), "nested too deeply")) from error
    if not isinstance(raw, dict):
        raise InputError(Problem(str(path), f"top level: expected an object, found {_kind(raw)}"))
    return _Reading(path, raw, to_run, allowed).dataset()


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


class _Reading:
    def __init__(self, path: Path, raw: dict[str, Any], to_run: bool, allowed: Sequence[Path]) -> None:
        self._path, self._raw, self._to_run = path, with_flat_entries(raw), to_run
        self._unread = [*unread_in_test_cases(path, raw)]
        self._problems: list[Problem] = []
        self._unassigned = "items" in raw and not raw.keys() & {"entries", "runnable"}
        """Whether these are items that belong to no application yet, as DatasetStore stores them."""
        parents = [parent.parent for parent in path.resolve().parents if parent.name == "pixie_qa"]
        self._folders = [str(Path.cwd()), str(path.resolve().parent), *map(str, parents)]
        self._boundary = Boundary(path.resolve().parent, [*allowed, *self._folders])

    def dataset(self) -> Dataset:
        raw = self._raw
        name = raw.get("name")
        if name is not None and not isinstance(name, str):
            self._report("name", f"name: expected a string, found {_kind(name)}")
        older = "items" in raw and "entries" not in raw
        runnable = self._runnable()
        shared = self._evaluators(raw.get("evaluators"), "evaluators", "")
        if "..." in shared:
            self._report("evaluators", "evaluators: '...' is only allowed in row-level evaluators")
            shared = [one for one in shared if one != "..."]
        for key in isolating(raw, DATASET_KEYS):
            self._report(key, refusal(key, DATASET_KEYS))
        title = name if isinstance(name, str) and name else self._path.stem
        dataset = Dataset(title, title, runnable, self._folders, raw)
        self._check(shared, "evaluators", "")
        for number, entry in enumerate(self._entries(older)):
            case = self._case(entry, number, shared, dataset, older)
            if case is not None:
                dataset.cases.append(case)
        odd = Oddities(self._path, raw, "items" if older else "entries")
        if self._problems:
            raise InputError(with_others(self._problems, odd.misspelt()), f"Invalid dataset {self._path}")
        dataset.warnings = [
            *self._unread,
            *odd.misspelt(),
            *odd.repeated(),
            *odd.doubled(runnable, shared, self._folders),
        ]
        dataset.objects = [*odd.objects()]
        self._hold_arguments(dataset, "items" if older else "entries")
        return dataset

    def _hold_arguments(self, dataset: Dataset, key: str) -> None:
        """Note the arguments that the Runnable's model would reject."""
        folders = [Path(folder) for folder in self._folders]
        entries = [case.input for case in dataset.cases]
        held = hold_arguments(dataset.runnable or "", folders, entries, to_run=self._to_run)
        dataset.unsure = held.unsure
        if held.unsure and self._to_run:
            message = (
                f"{counted(held.unsure, 'entry', 'entries')} not checked against all of the Runnable's model, which "
                f"its file alone does not tell: evalwright validate --import {self._path} checks them"
            )
            dataset.warnings.append(Problem(str(self._path), message, key="runnable"))
        for number, argument, why in held.unfit:
            place = f"{key}.{number}.entry_kwargs.{argument}".rstrip(".")
            dataset.unfit.append(Problem(str(self._path), f"Entry #{number + 1}: {place}: {why}", key=place))

    def _report(self, key: str, message: str) -> None:
        self._problems.append(Problem(str(self._path), message, key=key))

    def _runnable(self) -> str | None:
        runnable = self._raw.get("runnable", _MISSING)
        if runnable is _MISSING:
            if self._to_run or not self._unassigned:
                hint = ", before the items can be run; assert_dataset_pass takes them as they are"
                hint = _instead("runnable", self._raw, DATASET_KEYS) or (hint if self._unassigned else "")
                self._report("runnable", f"runnable: the field is required (a string, filepath:name){hint}")
            return None
        if not isinstance(runnable, str) or not runnable.strip():
            self._report(
                "runnable", f"'runnable' must be a non-empty string filepath:name, found {as_written(runnable)}"
            )
            return None
        place = runnable.strip()
        if self._is_inside(place, "runnable", "") and self._to_run:
            config = {"runnables": {"": place}, "folders": self._folders}
            build = partial(registry.load("targets", "pixie_app"), Variant("app", "pixie_app", config))
            self._take("runnable", "", build)
        return place

    def _is_inside(self, place: str, key: str, where: str) -> bool:
        """Whether `file.py:name` stays within the boundary; reported if not."""
        named = [Path(folder) / place.rpartition(":")[0] for folder in self._folders]
        existing = next((path for path in named if os.path.isfile(path)), None)
        try:
            return existing is None or bool(self._boundary.check(existing))
        except OutsideError as error:
            self._report(key, f"{where}{error}")
            return False

    def _take(self, key: str, where: str, build: Any) -> None:
        try:
            build()
        except InputError as error:
            for text in [problem.message for problem in error.problems] or [error.headline]:
                self._report(key, f"{where}{text}")

    def _entries(self, older: bool) -> list[Any]:
        if "items" in self._raw and "entries" in self._raw:
            self._report("items", "'entries' and 'items' are both given, expected one of them")
            return []
        key = "items" if older else "entries"
        entries = self._raw.get(key, _MISSING)
        if entries is _MISSING:
            self._report(key, f"entries: the field is required (a list){_instead('entries', self._raw, DATASET_KEYS)}")
            return []
        if not isinstance(entries, list):
            self._report(key, f"{key}: expected a list, found {_kind(entries)}")
            return []
        return entries

    def _evaluators(self, value: Any, key: str, where: str) -> list[str]:
        if value is None:
            return []
        if not isinstance(value, list):
            self._report(key, f"{where}{key}: 'evaluators' must be a list of strings, found {_kind(value)}")
            return []
        names = []
        for number, evaluator in enumerate(value, 1):
            if isinstance(evaluator, str) and evaluator.strip():
                names.append(evaluator.strip())
            else:
                self._report(key, f"{where}{key}: evaluator #{number} must be a non-empty string")
        return names

    def _case(self, entry: Any, number: int, shared: list[str], dataset: Dataset, older: bool) -> ForeignCase | None:
        # pixie-qa writes places with dots, and so do messages about its datasets.
        base = f"{'items' if older else 'entries'}.{number}"
        where = f"Entry #{number + 1}: "
        if not isinstance(entry, dict):
            self._report(base, f"{where}{base}: the item must be an object, found {_kind(entry)}")
            return None
        try:
            msgspec.json.encode(entry)
        except (UnicodeEncodeError, RecursionError, OverflowError) as error:
            self._report(base, f"{where}{base}: contains what cannot be stored: {error}")
            return None
        before = len(self._problems)
        for key in isolating(entry, ENTRY_KEYS):
            self._report(f"{base}.{key}", f"{where}{refusal(key, ENTRY_KEYS)}")
        arguments, eval_input = self._older(entry) if older else self._given_input(entry, base, where)
        description = entry.get("description")
        described = isinstance(description, str) and description.strip()
        if not described and not self._unassigned:
            self._report(f"{base}.description", f"{where}{base}: description must be a non-empty string")
        metadata = entry.get("eval_metadata")
        if metadata is not None and not isinstance(metadata, dict):
            self._report(f"{base}.eval_metadata", f"{where}{base}.eval_metadata: expected an object or null")
        names = self._names(entry, shared, base, where)
        if len(self._problems) > before:
            return None
        extra = {"dataset": dataset.key, "eval_input": eval_input, "eval_metadata": metadata, **_expectation(entry)}
        return ForeignCase(
            id=f"entry-{number + 1}",
            input=arguments,
            metadata={str(key): value for key, value in (metadata or {}).items()},
            description=description if described else None,
            extra=extra,
            evaluators=[*self._specs(names), {"name": "WrapError", "type": "wrap_check", "config": {}}],
        )

    def _older(self, entry: dict[str, Any]) -> tuple[Any, list[dict[str, Any]]]:
        """A bare value, or named ones as DatasetStore writes them, which the application gets collapsed."""
        value = entry.get("eval_input")
        if not (isinstance(value, list) and value and all(map(_is_named, value))):
            return value, [{"name": "input", "value": value}]
        return (value[0]["value"] if len(value) == 1 else {item["name"]: item["value"] for item in value}), value

    def _given_input(self, entry: dict[str, Any], base: str, where: str) -> tuple[Any, list[dict[str, Any]]]:
        newer = _RESERVED in entry
        if newer and "entry_kwargs" in entry:
            self._report(f"{base}.{_RESERVED}", f"{where}{base}: 'input_data' and 'entry_kwargs' are both given")
        key = _RESERVED if newer else "entry_kwargs"
        arguments = entry.get(key, _MISSING)
        if arguments is _MISSING:
            instead = _instead(key, entry, ENTRY_KEYS)
            self._report(f"{base}.{key}", f"{where}{base}.{key}: the field is required (an object){instead}")
        elif not isinstance(arguments, dict):
            self._report(f"{base}.{key}", f"{where}{base}.{key}: expected an object, found {_kind(arguments)}")
        eval_input = self._eval_input(entry, base, where, newer)
        if newer:
            eval_input = [{"name": _RESERVED, "value": arguments}, *eval_input]
        return arguments, eval_input

    def _eval_input(self, entry: dict[str, Any], base: str, where: str, newer: bool) -> list[dict[str, Any]]:
        key = f"{base}.eval_input"
        eval_input = entry.get("eval_input", [] if newer else _MISSING)
        if eval_input is _MISSING:
            instead = _instead("eval_input", entry, ENTRY_KEYS)
            self._report(key, f"{where}{key}: the field is required (a list of {{name, value}}){instead}")
            return []
        if not isinstance(eval_input, list):
            self._report(key, f"{where}{key}: expected a list of {{name, value}}, found {_kind(eval_input)}")
            return []
        if not eval_input and not newer:
            self._report(key, f"{where}{key}: expected at least 1 item, found none")
        for position, item in enumerate(eval_input):
            self._item(item, f"{key}.{position}", where)
        return eval_input

    def _item(self, item: Any, key: str, where: str) -> None:
        if not isinstance(item, dict):
            self._report(key, f"{where}{key}: expected an object with name and value, found {_kind(item)}")
            return
        for part in ("name", "value"):
            if part not in item:
                self._report(f"{key}.{part}", f"{where}{key}.{part}: the field is required")
        if "name" in item and not isinstance(item["name"], str):
            self._report(f"{key}.name", f"{where}{key}.name: expected a string, found {_kind(item['name'])}")

    def _names(self, entry: dict[str, Any], shared: list[str], base: str, where: str) -> list[str]:
        before = len(self._problems)
        own = self._evaluators(entry.get("evaluators"), f"{base}.evaluators", where)
        if len(self._problems) > before:
            return []
        names = (
            [evaluator_name for name in own for evaluator_name in (shared if name == "..." else [name])]
            if own
            else shared
        )
        if not names and not self._unassigned:
            self._report(f"{base}.evaluators", f"{where}{base}.evaluators: no evaluators resolved")
        self._check([name for name in own if name != "..."], f"{base}.evaluators", where)
        return names

    def _check(self, names: list[str], key: str, where: str) -> None:
        from evalwright.evaluators.build import build_evaluator

        for name in dict.fromkeys(names):
            kind = self._kind(name)
            if not self._is_inside(name, key, f"{where}{key}: ") or not self._to_run:
                continue
            self._take(key, f"{where}{key}: ", partial(build_evaluator, kind["type"], kind["config"]))

    def _kind(self, name: str) -> dict[str, Any]:
        if name in registry.PREMADE:
            return {"type": name, "config": {}}
        return {"type": TYPE, "config": {"reference": name, "folders": self._folders}}

    def _specs(self, names: list[str]) -> list[dict[str, Any]]:
        seen: dict[str, int] = {}
        specs = []
        for name in names:
            label = name.rpartition(":")[2]
            seen[label] = count = seen.get(label, 0) + 1
            shown = label if count == 1 else f"{label}#{count}"
            specs.append({"name": shown, **self._kind(name)})
        return specs


def _is_named(item: Any) -> bool:
    return isinstance(item, dict) and item.keys() == {"name", "value"} and isinstance(item["name"], str)


def _instead(key: str, mapping: dict[str, Any], known: tuple[str, ...]) -> str:
    """`; should 'x' be 'key'?` if an unknown key is nearly the missing one."""
    near = get_close_matches(key, mapping.keys() - set(known), n=1)
    return f"; should {near[0]!r} be {key!r}?" if near else ""


def _expectation(entry: dict[str, Any]) -> dict[str, Any]:
    """Nothing if the entry has no expectation, which differs from an expectation of null."""
    value = entry.get("expectation", entry.get("expected_output", "UNSET"))
    return {} if value == "UNSET" else {"expectation": value}
