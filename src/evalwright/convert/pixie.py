"""Entries of an instrumented application as pixie datasets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalwright.convert.output import Output
from evalwright.convert.places import Places
from evalwright.convert.written import Written
from evalwright.errors import Problem
from evalwright.model.plan import EvaluatorSpec
from evalwright.model.snapshot import Case
from evalwright.model.suite import Suite
from evalwright.registry import PREMADE
from evalwright.run.planning import snapshot

__all__ = ["write_pixie"]

_RESERVED = "input_data"


def write_pixie(suite: Suite, folder: Path, output: Output) -> Written:
    """One file; datasets are held, as reading them holds them."""
    places, losses = Places(suite.source, folder), list[Problem]()
    runnables: Mapping[str, str] = suite.variants[0].config.get("runnables", {}) if suite.variants else {}
    folders = [Path(one) for one in suite.variants[0].config.get("folders", ())] if suite.variants else []
    entries = []
    names: set[str] = set()
    for case in suite.cases:
        made = snapshot(case)
        entry = _entry(made, suite.evaluators, places, losses)
        if entry is not None:
            entries.append(entry)
            names.add(made.extra["dataset"])
    if len(names) > 1:
        losses.append(Problem("suite", f"{len(names)} datasets become one: {', '.join(sorted(names))}", key="cases"))
    name = next(iter(names), suite.name)
    older = bool(entries) and all("items" in entry for entry in entries)
    document: dict[str, Any] = {"name": name}
    if runnable := runnables.get(name):
        document["runnable"] = _named(runnable, folders, places)
    document["items" if older else "entries"] = [entry.pop("items", entry) if older else entry for entry in entries]
    file = folder / "dataset.json"
    output.text(file).write(json.dumps(document, ensure_ascii=False, indent=2) + "\n")
    return Written(file, losses=losses)


def _entry(case: Case, shared: list[EvaluatorSpec], places: Places, losses: list[Problem]) -> dict[str, Any] | None:
    extra, given = case.extra, case.extra.get("eval_input")
    if "dataset" not in extra or not isinstance(given, list):
        losses.append(Problem(f"case {case.id}", "is no entry of a pixie dataset", key="extra"))
        return None
    entry: dict[str, Any] = {}
    if not isinstance(case.input, dict):
        entry["eval_input"] = case.input
    elif given and given[0] == {"name": _RESERVED, "value": case.input}:
        entry |= {_RESERVED: case.input} | ({"eval_input": given[1:]} if given[1:] else {})
    else:
        entry |= {"entry_kwargs": case.input, "eval_input": given}
    if case.description is not None:
        entry["description"] = case.description
    if "expectation" in extra:
        entry["expectation"] = extra["expectation"]
    if extra.get("eval_metadata") is not None:
        entry["eval_metadata"] = extra["eval_metadata"]
    names = [_evaluator(spec, case, places, losses) for spec in case.evaluators or shared if spec.type != "wrap_check"]
    entry["evaluators"] = [name for name in names if name]
    return {"items": entry} if not isinstance(case.input, dict) else entry


def _evaluator(spec: EvaluatorSpec, case: Case, places: Places, losses: list[Problem]) -> str | None:
    if spec.type in PREMADE and not spec.config:
        return spec.type
    if spec.type == "pixie":
        return _named(spec.config["reference"], [Path(one) for one in spec.config["folders"]], places)
    told = Problem(f"case {case.id}", f"pixie has no evaluator like {spec.type!r}", key=f"evaluators.{spec.name}")
    losses.append(told)
    return None


def _named(reference: str, folders: list[Path], places: Places) -> str:
    """`file.py:name` from the new folder; a bare name stays."""
    path, colon, name = reference.rpartition(":")
    found = next((folder / path for folder in folders if colon and (folder / path).is_file()), None)
    return reference if found is None else f"{places.near(str(found.resolve()))}:{name}"
