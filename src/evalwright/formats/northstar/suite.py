"""NorthStar datasets: recorded conversations that graders judge at once (specification northstar)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalwright.errors import InputError, did_you_mean
from evalwright.files.jsonl import lines_of
from evalwright.formats.northstar.cases import VARIANT, Cases
from evalwright.formats.northstar.plans import PLANS, configured, plan_of, read_configuration
from evalwright.formats.northstar.records import EvalCase, is_lines
from evalwright.model.plan import EvaluatorSpec, Variant
from evalwright.model.suite import Suite

__all__ = ["Northstar", "first_record", "is_case"]


class Northstar:
    """Reads a file of recorded conversations."""

    options = ("plan", "graders", "judge_model", "strict")

    def load(
        self,
        path: Path,
        variables: Mapping[str, str],
        *,
        to_run: bool = True,
        plan: str | None = None,
        graders: Path | None = None,
        judge_model: str | None = None,
        strict: bool = False,
    ) -> Suite:
        lines = is_lines(path)
        label, evaluators = _graders(plan, graders, judge_model)
        cases = Cases(path, lines=lines, strict=strict)
        return Suite(
            name=path.stem,
            dialect="northstar",
            source=path,
            cases=cases,
            variants=[Variant(VARIANT, "replay")],
            evaluators=evaluators,
            document={
                "dataset": path.name,
                "plan": label,
                "graders": [{"name": spec.name, "type": spec.type, **spec.config} for spec in evaluators],
            },
            metadata={"plan": label},
            warnings=cases.oddities() if to_run and not strict else [],
        )


def _graders(plan: str | None, graders: Path | None, judge_model: str | None) -> tuple[str, list[EvaluatorSpec]]:
    if plan is not None and graders is not None:
        raise InputError("--plan and --graders: expected one of them, found both")
    if graders is not None:
        specs = configured(read_configuration(graders), str(graders), judge_model)
        return ("quality" if len(specs) > len(plan_of("deterministic")) else "deterministic"), specs
    label = plan or "deterministic"
    if label not in PLANS:
        raise InputError(f"--plan: unknown plan {label!r}{did_you_mean(label, PLANS)}, expected {', '.join(PLANS)}")
    return label, plan_of(label, judge_model)


def first_record(path: Path, head: Mapping[str, Any]) -> Any:
    """The first record of a file, as far as it can be read."""
    if path.suffix.lower() == ".jsonl":
        return next((_json(line) for _, line in lines_of(path)), None)
    document: Any = head or _json(path.read_bytes())
    if isinstance(document, Mapping) and "cases" in document:
        document = document["cases"]
    return (document[0] if document else None) if isinstance(document, list) else document


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def is_case(record: Any) -> bool:
    """Whether a record has the keys of a case; one with mistakes in them is told those."""
    return isinstance(record, Mapping) and {"id", "messages"} <= record.keys() <= EvalCase.model_fields.keys()
