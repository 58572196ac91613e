"""Recorded conversations as a NorthStar dataset, and the run configuration with their graders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from evalwright.errors import Problem
from evalwright.evaluators.steps.steps import steps_of_trace
from evalwright.formats.northstar.plans import PLANS, TRACE, grader_plan_of
from evalwright.formats.shared.output import OutputFolder, Written
from evalwright.model.plan import EvaluatorSpec
from evalwright.model.recordings import RECORDING, recorded_of
from evalwright.model.snapshot import Case, snapshot
from evalwright.model.steps import Steps
from evalwright.model.suite import Suite
from evalwright.model.trace import Trace
from evalwright.registry import PREMADE

__all__ = ["write_northstar"]

GRADERS = "graders.json"
_TYPES = {"rubric_judge": "rubric", "regex": "regex", "python_code": "python", "typescript_code": "typescript"}


def write_northstar(suite: Suite, folder: Path, output: OutputFolder) -> Written:
    losses: list[Problem] = []
    place = folder / (suite.name.replace("/", "_") + ".jsonl")
    file = output.binary(place)
    for case in suite.cases:
        record = _record(snapshot(case), losses)
        if record is not None:
            file.write(msgspec.json.encode(record) + b"\n")
    options, note = _plan(suite, folder, output, losses)
    return Written(place, options, [note] if note else [], losses)


def _record(case: Case, losses: list[Problem]) -> dict[str, Any] | None:
    recorded = recorded_of(case)
    conversation = recorded.extra.get(RECORDING) if isinstance(recorded, Trace) else None
    if not isinstance(recorded, Trace) or not isinstance(conversation, dict):
        losses.append(Problem(f"case {case.id}", "has no recorded NorthStar conversation", key="recorded"))
        return None
    expected = msgspec.to_builtins(case.expected.conversation) if case.expected.conversation else None
    record: dict[str, Any] = {"id": case.id, "messages": conversation["messages"]}
    if case.input is not None:
        record["input"] = case.input
    if expected:
        record["expected"] = _without_nulls(expected)
    if metrics := _without_nulls(conversation.get("metrics") or {}):
        record["metrics"] = metrics
    if case.metadata:
        record["metadata"] = case.metadata
    inside = isinstance(case.input, dict) and isinstance(case.input.get("trace"), dict)
    if recorded.spans and not inside and (steps := steps_of_trace(recorded)) is not None and steps.run is not None:
        record["trace"] = _payload(steps)
    return record


def _without_nulls(value: Any) -> Any:
    """The keys that are not null: null sets no condition."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return value


def _payload(steps: Steps) -> dict[str, Any]:
    """The steps in the form in which NorthStar's SDK exports them."""
    assert steps.run is not None
    run = msgspec.to_builtins(steps.run)
    run_id = run.pop("run_id")
    return {
        "run_id": run_id,
        "sessions": [{"id": run_id}],
        "runs": [_without_nulls({"id": run_id, "session_id": run_id, **run})],
        "spans": [{"run_id": run_id, **_without_nulls(msgspec.to_builtins(span))} for span in steps.spans],
        "events": [_written_event(run_id, msgspec.to_builtins(event)) for event in steps.events],
    }


def _written_event(run_id: str, event: dict[str, Any]) -> dict[str, Any]:
    del event["order"]
    return {"run_id": run_id, **_without_nulls(event)}


def _plan(suite: Suite, folder: Path, output: OutputFolder, losses: list[Problem]) -> tuple[dict[str, Any], str]:
    """The options under which the dataset has these graders, and how to give them."""
    models = [None, *(spec.config.get("model") for spec in suite.evaluators if "model" in spec.config)]
    for plan in PLANS:
        for model in dict.fromkeys(models):
            if grader_plan_of(plan, model) == suite.evaluators:
                message = " ".join(["--plan", plan, *(["--judge-model", model] if model else [])])
                return {"plan": plan, "judge_model": model}, "" if plan == "deterministic" else f"run it with {message}"
    usual = grader_plan_of("deterministic")
    graders = [_grader(spec, losses) for spec in suite.evaluators if spec not in usual]
    text = json.dumps({"graders": [grader for grader in graders if grader]}, ensure_ascii=False, indent=2)
    output.text(folder / GRADERS).write(text + "\n")
    return {"graders": folder / GRADERS}, f"run it with --graders {folder / GRADERS}"


def _grader(spec: EvaluatorSpec, losses: list[Problem]) -> dict[str, Any] | None:
    if spec.type in _TYPES or spec.type in PREMADE:
        config = {key: value for key, value in spec.config.items() if key != "other_values"}  # its way is the only one
        return {"type": _TYPES.get(spec.type, spec.type), "name": spec.name, **config}
    if spec.type in TRACE:
        return {"type": "trace", "name": spec.name, "check": spec.type, **spec.config}
    losses.append(Problem("suite", f"NorthStar has no grader like {spec.type!r}", key=f"evaluators.{spec.name}"))
    return None
