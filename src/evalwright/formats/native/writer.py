"""Writes a suite in the native format: `eval.yaml`, and `cases.jsonl` with everything that a case of any format can
say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from evalwright.files import yaml
from evalwright.formats.shared.claims import written_gates
from evalwright.formats.shared.environment import SUITE_FOLDER
from evalwright.formats.shared.output import OutputFolder, Written
from evalwright.formats.shared.portable_paths import Places
from evalwright.formats.shared.references import shown, written
from evalwright.formats.shared.without_defaults import brief
from evalwright.model.plan import EvaluatorSpec, Variant
from evalwright.model.recordings import recorded_of
from evalwright.model.snapshot import Case, snapshot
from evalwright.model.suite import Suite
from evalwright.registry import NATIVE

__all__ = ["SUITE", "write_native"]

SUITE, CASES = "eval.yaml", "cases.jsonl"
_WITH_PATHS = ("input_files", "workspace_files")
_NOTHING = Case("", None).recorded


def write_native(suite: Suite, folder: Path, output: OutputFolder) -> Written:
    """Write a suite that was read without running it, with its references marked as `references` says."""
    places = Places(suite.source, folder)
    by_case = suite.evaluators_by_case
    shared = {spec.name: spec for spec in suite.evaluators}
    lines = output.binary(folder / CASES)
    for case in suite.cases:
        lines.write(msgspec.json.encode(_case(snapshot(case), shared, places, by_case=by_case)) + b"\n")
    output.text(folder / SUITE).write(
        yaml.schema_line("eval") + yaml.dump(written(dict(_document(suite, [*shared.values()], places))))
    )
    return Written(folder / SUITE)


def _document(suite: Suite, evaluators: list[EvaluatorSpec], places: Places) -> Iterator[tuple[str, Any]]:
    """The parts of `eval.yaml`, without defaults."""
    described = suite.document.get("description")
    yield "eval", {"name": suite.name} | ({"description": described} if isinstance(described, str) else {})
    if suite.metadata:
        yield "metadata", suite.metadata
    own = {"own_evaluators": True} if suite.evaluators_by_case else {}
    yield "dataset", {"type": "cases", "path": f"{SUITE_FOLDER}/{CASES}", **own}
    yield "systems", [_system(variant, places) for variant in suite.variants]
    if suite.workspace is not None:
        yield "workspace", {"type": suite.workspace.type, **places.of(suite.workspace.config)}
    yield "evaluators", [_evaluator(spec, places) for spec in evaluators]
    if criteria := brief(suite.pass_criteria):
        yield "pass_criteria", criteria
    if suite.gate is not None:
        yield "gate", written_gates(suite.gate)
    if (totals := suite.totals or suite.dialect) != NATIVE:
        yield "totals", totals
    yield "run", _run(suite)
    if not suite.run.keep_judge_calls:
        yield "judges", {"keep_calls": False}
    out = suite.out if suite.out is not None else Path("runs")
    yield "output", {"type": "local_files", "path": places.of(str(out))}


def _system(variant: Variant, places: Places) -> dict[str, Any]:
    return {**brief(msgspec.structs.replace(variant, config={})), **places.of(variant.config)}


def _evaluator(spec: EvaluatorSpec, places: Places) -> dict[str, Any]:
    keys: dict[str, Any] = brief(spec)
    return {key: places.of(value) if key in ("config", "extractor") else value for key, value in keys.items()}


def _run(suite: Suite) -> dict[str, Any]:
    run: dict[str, Any] = brief(suite.run)
    run.pop("keep_judge_calls", None)  # said in a section of its own
    executor = brief(run.pop("executor", {}))
    if pools := run.pop("pools", None):
        executor["pools"] = pools
    return run | ({"executor": executor} if executor else {})


def _case(case: Case, shared: dict[str, EvaluatorSpec], places: Places, *, by_case: bool) -> dict[str, Any]:
    """A line; evaluators that the suite also has, or gets from the first case that has one, are only named."""
    keys: dict[str, Any] = brief(msgspec.structs.replace(case, recorded=_NOTHING, evaluators=None))
    if case.expected.conversation is None:
        keys["expected"].pop("conversation")
    if not keys.get("expected", True):
        del keys["expected"]
    if placed := {key: places.of(case.extra[key]) for key in _WITH_PATHS if key in case.extra}:
        keys["extra"] = {**case.extra, **placed}
    recorded = recorded_of(case)
    if recorded is not None:
        keys["recorded"] = brief(recorded)
    keys = shown(keys)  # a case has no references
    if by_case:
        keys["evaluators"] = [_own_evaluator(spec, shared, places) for spec in case.evaluators or ()]
    return keys


def _own_evaluator(spec: EvaluatorSpec, shared: dict[str, EvaluatorSpec], places: Places) -> Any:
    """An evaluator of a case: the name of one of the suite's, its differences from that one, or all of it."""
    base = shared.setdefault(spec.name, spec)
    if base == spec:
        return spec.name
    if msgspec.structs.replace(spec, config=base.config) != base or not base.config.keys() <= spec.config.keys():
        return written(_evaluator(spec, places))
    other = {key: value for key, value in spec.config.items() if value != base.config.get(key)}
    return {"name": spec.name, "config": written(places.of(other))}
