"""The graders of a NorthStar dataset: named plans and run configurations."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evalwright.errors import InputError, Problem, did_you_mean
from evalwright.files.key_paths import as_written
from evalwright.files.paths import unreadable
from evalwright.model.plan import EvaluatorSpec
from evalwright.registry import PREMADE

__all__ = [
    "CONFIGURATION_KEYS",
    "DEFAULT_JUDGE_MODEL",
    "DETERMINISTIC",
    "PLANS",
    "TRACE",
    "configured",
    "grader_plan_of",
    "read_configuration",
]

DEFAULT_JUDGE_MODEL = "openai/gpt-4o-mini"

DETERMINISTIC = {
    "max_tool_calls": "max_tool_calls",
    "required_tools": "required_tools",
    "forbidden_tools": "forbidden_tools",
    "tool_arguments_match": "tool_arguments_match",
    "tool_sequence": "tool_sequence",
    "tool_output_referenced": "tool_output_referenced",
    "contains": "contains",
    "not_contains": "not_contains",
    "ground_truth_match": "ground_truth_match",
    "latency_under": "latency_within",
    "cost_under": "cost_within",
}
"""The type of evaluator for each name of a grader, in the order of the plan."""

TRACE = (
    "bad_tool_failure_recovery",
    "unnecessary_tool_loop",
    "stale_context_usage",
    "invalid_state_transition",
    "retrieval_precision_recall",
    "step_cost_attribution",
    "failure_origin",
    "hallucinated_tool_result_judge",
    "planning_action_mismatch_judge",
)
_JUDGES = TRACE[-2:]
CONFIGURATION_KEYS = ("graders", "judges", "judge")
PLANS = ("deterministic", "quality", "agentic", "trace")


def grader_plan_of(name: str, judge_model: str | None = None) -> list[EvaluatorSpec]:
    """The graders of a named plan. Raises ValueError, which lists the names."""
    if name not in PLANS:
        raise ValueError(f"unknown plan {name!r}{did_you_mean(str(name), PLANS)} (there are: {', '.join(PLANS)})")
    model = {"model": judge_model or DEFAULT_JUDGE_MODEL}
    if name == "trace":
        return [EvaluatorSpec(check, check, model if check in _JUDGES else {}) for check in TRACE]
    specs = [EvaluatorSpec(grader, type_name) for grader, type_name in DETERMINISTIC.items()]
    if name == "quality":
        specs.append(EvaluatorSpec("rubric_judge", "rubric_judge", model))
    if name == "agentic":
        specs.append(EvaluatorSpec("faithfulness_judge", "faithfulness_judge", model))
    return specs


def read_configuration(path: Path) -> Any:
    """The run configuration in a JSON file. Raises InputError."""
    try:
        return json.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise InputError(Problem(str(path), unreadable(path, error))) from error
    except (ValueError, RecursionError) as error:
        raise InputError(Problem(str(path), f"Invalid JSON: {error}")) from error


def configured(configuration: Any, file: str, judge_model: str | None = None) -> list[EvaluatorSpec]:
    """The deterministic plan and the graders of a run configuration. Raises InputError with every problem."""
    problems: list[Problem] = []
    plan = grader_plan_of("deterministic")
    names = {spec.name for spec in plan}
    listed: dict[str, EvaluatorSpec] = {}
    for key, raw in _listed_graders(configuration, file):
        try:
            spec = _spec(raw, judge_model)
            if spec.name in names:
                raise ValueError(f"name: {spec.name!r} occurs more than once")
            names.add(spec.name)
            listed[key] = spec
        except ValueError as error:
            problems.append(Problem(file, str(error), key=key))
    problems += _unbuildable(listed, file)
    if problems:
        raise InputError(problems, f"Invalid run configuration {file}")
    return [*plan, *listed.values()]


def _listed_graders(configuration: Any, file: str) -> Iterator[tuple[str, Any]]:
    if not isinstance(configuration, Mapping):
        raise InputError(Problem(file, "expected an object with 'graders'"))
    for key in configuration:
        if key not in CONFIGURATION_KEYS:
            raise InputError(Problem(file, f"unknown key{did_you_mean(str(key), CONFIGURATION_KEYS)}", key=str(key)))
    for key in ("graders", "judges"):
        entries = configuration.get(key)
        if entries or (entries is not None and not isinstance(entries, list)):
            if not isinstance(entries, list):
                raise InputError(Problem(file, f"expected a list, found {as_written(entries)}", key=key))
            yield from ((f"{key}[{i}]", raw) for i, raw in enumerate(entries))
            return
    if configuration.get("judge") is not None:
        yield "judge", configuration["judge"]


_TYPES = ("rubric", "python", "typescript", "regex", "trace")


def _spec(raw: Any, judge_model: str | None) -> EvaluatorSpec:
    if not isinstance(raw, Mapping):
        raise ValueError(f"expected an object, found {as_written(raw)}")
    keys = {str(key): value for key, value in raw.items() if key not in ("type", "name") and value is not None}
    kind, name = raw.get("type", "rubric"), raw.get("name")
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"name: expected text that is not blank, found {as_written(name)}")
    if kind == "rubric":
        return EvaluatorSpec(name, "rubric_judge", {"model": judge_model or DEFAULT_JUDGE_MODEL, **keys})
    if kind in ("python", "typescript"):
        return EvaluatorSpec(name, f"{kind}_code", {**keys, "other_values": "fail"})
    if kind == "regex":
        return EvaluatorSpec(name, "regex", keys)
    if kind in PREMADE:
        return EvaluatorSpec(name, str(kind), keys)
    if kind == "trace":
        check = keys.pop("check", None)
        if check not in TRACE:
            raise ValueError(
                f"check: expected one of {', '.join(TRACE)}, found {as_written(check)}{did_you_mean(check, TRACE)}"
            )
        if check in _JUDGES:
            keys = {"model": judge_model or DEFAULT_JUDGE_MODEL, **keys}
        return EvaluatorSpec(name, check, keys)
    near = did_you_mean(kind, [*_TYPES, *PREMADE])
    raise ValueError(
        f"type: expected one of {', '.join(_TYPES)}, or a pre-made evaluator, found {as_written(kind)}{near}"
    )


def _unbuildable(listed: Mapping[str, EvaluatorSpec], file: str) -> Iterator[Problem]:
    from evalwright.evaluators.build import build

    for key, spec in listed.items():
        try:
            build(spec)
        except InputError as error:
            for problem in error.listed:
                yield Problem(file, problem.message, key=f"{key}.{problem.key}".rstrip("."))
