"""NorthStar datasets: recorded conversations that graders evaluate."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from evalwright.errors import InputError, did_you_mean
from evalwright.formats.northstar import FORMAT
from evalwright.formats.northstar.cases import VARIANT, Cases
from evalwright.formats.northstar.plans import DETERMINISTIC, PLANS, configured, grader_plan_of, read_configuration
from evalwright.formats.northstar.records import is_lines
from evalwright.model.plan import EvaluatorSpec, PassCriteria, Variant
from evalwright.model.suite import Suite

__all__ = ["load"]


def load(
    path: Path,
    variables: Mapping[str, str],
    *,
    to_run: bool = True,
    plan: str | None = None,
    graders: Path | None = None,
    judge_model: str | None = None,
    strict: bool = False,
) -> Suite:
    """The suite of a file of recorded conversations. Raises InputError for options that do not fit."""
    lines = is_lines(path)
    label, evaluators = _graders(plan, graders, judge_model)
    by_expectations = len(evaluators) == len(DETERMINISTIC)  # judges and configured graders need none
    cases = Cases(path, lines=lines, strict=strict, must_expect=by_expectations and label == "deterministic")
    return Suite(
        name=path.stem,
        dialect=FORMAT.name,
        source=path,
        cases=cases,
        variants=[Variant(VARIANT, "replay", {"allow_missing": ["final_answer"]})],
        evaluators=evaluators,
        pass_criteria=PassCriteria(errored_evaluators="error"),
        document={
            "dataset": path.name,
            "plan": label,
            "graders": [{"name": spec.name, "type": spec.type, **spec.config} for spec in evaluators],
        },
        metadata={"plan": label},
        empty="run",
        files=[] if graders is None else [graders],
        warnings=cases.oddities() if to_run and not strict else [],
    )


def _graders(plan: str | None, graders: Path | None, judge_model: str | None) -> tuple[str, list[EvaluatorSpec]]:
    if plan is not None and graders is not None:
        raise InputError("--plan and --graders: expected one of them, found both")
    if graders is not None:
        specs = configured(read_configuration(graders), str(graders), judge_model)
        return ("quality" if len(specs) > len(grader_plan_of("deterministic")) else "deterministic"), specs
    label = plan or "deterministic"
    if label not in PLANS:
        raise InputError(f"--plan: unknown plan {label!r}{did_you_mean(label, PLANS)} (there are: {', '.join(PLANS)})")
    return label, grader_plan_of(label, judge_model)
