"""Entries of an instrumented application as pixie datasets."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalwright.errors import Problem
from evalwright.formats.pixie.evaluator import TYPE
from evalwright.formats.shared.output import OutputFolder, Written
from evalwright.formats.shared.portable_paths import Places
from evalwright.model.plan import EvaluatorSpec
from evalwright.model.snapshot import Case, snapshot
from evalwright.model.suite import Suite
from evalwright.registry import PREMADE

__all__ = ["write_pixie"]

_RESERVED = "input_data"


def write_pixie(suite: Suite, folder: Path, output: OutputFolder) -> Written:
    """Write one file, or a folder with one file for each dataset; the entries are held in memory, as when reading."""
    losses: list[Problem] = []
    config: Mapping[str, Any] = suite.variants[0].config if suite.variants else {}
    datasets: dict[str, list[Case]] = {}
    for case in suite.cases:
        snapped = snapshot(case)
        if isinstance(snapped.extra.get("eval_input"), list) and "dataset" in snapped.extra:
            datasets.setdefault(snapped.extra["dataset"], []).append(snapped)
        else:
            losses.append(Problem(f"case {case.id}", "is not an entry of a pixie dataset", key="extra"))
    place = folder if len(datasets) <= 1 else folder / suite.name.replace("/", "_")
    places = Places(suite.source, place)
    written = []
    for number, (name, cases) in enumerate((datasets or {suite.name: []}).items(), 1):
        older = not any(isinstance(case.input, dict) for case in cases)
        entries = [_entry(case, suite.evaluators, places, losses) for case in cases]
        runnable = config.get("runnables", {}).get(name)
        document: dict[str, Any] = {"name": name} | (
            {"runnable": _relative_name(runnable, config, places)} if runnable else {}
        )
        document |= {"items" if older and entries else "entries": entries}
        written.append(place / ("dataset.json" if place == folder else f"{number:02}-{name.replace('/', '_')}.json"))
        output.text(written[-1]).write(json.dumps(document, ensure_ascii=False, indent=2) + "\n")
    return Written(written[0] if place == folder else place, losses=losses)


def _entry(case: Case, shared: list[EvaluatorSpec], places: Places, losses: list[Problem]) -> dict[str, Any]:
    extra, inputs = case.extra, case.extra["eval_input"]
    entry: dict[str, Any] = {}
    if not isinstance(case.input, dict):
        entry["eval_input"] = case.input
    elif inputs and inputs[0] == {"name": _RESERVED, "value": case.input}:
        entry |= {_RESERVED: case.input} | ({"eval_input": inputs[1:]} if inputs[1:] else {})
    else:
        entry |= {"entry_kwargs": case.input, "eval_input": inputs}
    if case.description is not None:
        entry["description"] = case.description
    if "expectation" in extra:
        entry["expectation"] = extra["expectation"]
    if extra.get("eval_metadata") is not None:
        entry["eval_metadata"] = extra["eval_metadata"]
    names = [_evaluator(spec, case, places, losses) for spec in case.evaluators or shared if spec.type != "wrap_check"]
    return entry | {"evaluators": [name for name in names if name]}


def _evaluator(spec: EvaluatorSpec, case: Case, places: Places, losses: list[Problem]) -> str | None:
    if spec.type in PREMADE and not spec.config:
        return spec.type
    if spec.type == TYPE:
        return _relative_name(spec.config["reference"], spec.config, places)
    loss = Problem(f"case {case.id}", f"pixie has no evaluator like {spec.type!r}", key=f"evaluators.{spec.name}")
    losses.append(loss)
    return None


def _relative_name(reference: str, config: Mapping[str, Any], places: Places) -> str:
    """`file.py:name` relative to the new folder; a bare name stays."""
    path, colon, name = reference.rpartition(":")
    folders = [Path(folder) for folder in config.get("folders", ())]
    file = next((folder / path for folder in folders if colon and os.path.isfile(folder / path)), None)
    return reference if file is None else f"{places.near(str(file.resolve()))}:{name}"
