"""A run as AgentV's result file, for `compare` and for programs that read AgentV's results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from evalwright.evaluators.code.payload import trace_summary
from evalwright.evaluators.combined.banded import details_of
from evalwright.files import yaml
from evalwright.formats.agentv import FORMAT
from evalwright.formats.shared.report_file import ReportFile
from evalwright.model.plan import Plan
from evalwright.model.protocols import RunReader
from evalwright.model.result import EvaluationResult, band
from evalwright.model.snapshot import Case
from evalwright.model.summary import RunSummary
from evalwright.reports.cells import Choice, FullCell, chosen_cells
from evalwright.scoring.verdict import names_needed

__all__ = ["AgentvDocuments", "AgentvFile", "AgentvResults"]

_TYPES = {"criteria_judge": "llm_judge", "rubric_checks": "llm_judge", "javascript_regex": "regex"}
"""Our evaluators by the original's names."""
_ENCODER = msgspec.json.Encoder()


class AgentvResults:
    """JSON Lines, one object for each finished cell, in the order of the cases."""

    def render(self, reader: RunReader, summary: RunSummary) -> str:
        return "".join(self.pieces(reader, summary))

    def pieces(self, reader: RunReader, summary: RunSummary) -> Iterator[str]:
        """The same text in pieces, one for each cell."""
        return (_ENCODER.encode(line).decode() + "\n" for line in _lines(reader))


class AgentvDocuments(AgentvResults):
    """The same as YAML, one document for each cell."""

    def pieces(self, reader: RunReader, summary: RunSummary) -> Iterator[str]:
        return (f"---\n{yaml.dump(line)}" for line in _lines(reader))


def _lines(reader: RunReader) -> Iterator[dict[str, Any]]:
    plan = reader.plan
    if plan is not None:
        cases = dict(enumerate(map(_CaseFacts.of, reader.cases()))) if plan.evaluators_by_case else {}
        unknown = _CaseFacts({}, {}, None, None)
        cells = chosen_cells(reader, plan, names_needed(reader, plan), Choice(), "dataset")
        for index, of_case in groupby(cells, key=lambda cell: cell.trace.case_index or 0):
            about = cases.get(index, unknown)
            for cell in sorted(of_case, key=lambda cell: (cell.trace.variant_name, cell.trace.trial)):
                yield _line(plan.name, cell, about)


class AgentvFile(ReportFile):
    """A result file of AgentV at `path`; `report` is another report to write there, by default its JSON Lines."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__({"report": FORMAT.name, **config})

    @classmethod
    def of_stored(cls, plan: Plan, folder: Path) -> AgentvFile:
        return cls({"path": folder / "results.jsonl"})

    def losses(self, plan: Plan, summary: RunSummary) -> Iterator[str]:
        """AgentV runs each case once, and its lines have no number of the trial."""
        if (trials := max(plan.trials_of(variant) for variant in plan.variants)) > 1:
            yield f"{trials} trials: a line does not say of which one it is"


class _CaseFacts(NamedTuple):
    """What a line says about its case."""

    weights: dict[str, float]
    checks: dict[tuple[str, ...], str]
    """What evaluators check of the text, which are types of their own in AgentV, by their names below those of the
    composites that they are members of."""
    conversation: str | None
    target: str | None
    """The case's own target, if it names one."""

    @classmethod
    def of(cls, case: Case) -> _CaseFacts:
        specs = case.evaluators or ()
        weights = {spec.name: spec.weight for spec in specs}
        checks = dict(check for spec in specs for check in _checks(spec.name, spec.type, spec.config))
        return cls(weights, checks, case.group, case.extra.get("target"))


def _checks(
    name: str, kind: str, config: Mapping[str, Any], above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], str]]:
    path = (*above, name)
    if kind == "text_check":
        yield path, str(config["check"]).replace("_", "-")
    for member in config["evaluators"] if kind == "composite" else ():
        yield from _checks(member["name"], member["type"], member.get("config") or {}, path)


def _line(dataset: str, cell: FullCell, case: _CaseFacts) -> dict[str, Any]:
    trace, verdict = cell.trace, cell.verdict
    wrong = trace.error.message if trace.error is not None else None
    line: dict[str, Any] = {
        "timestamp": trace.finished_at.isoformat(),
        "eval_id": trace.case_id,
        "test_id": trace.case_id,
        "dataset": dataset,
        **({} if case.conversation is None else {"conversation_id": case.conversation}),
        "score": verdict.score or 0.0,
        "verdict": "fail" if verdict.status == "error" else verdict.status,
        "hits": [text for row in cell.results for text in row.hits],
        "misses": [f"Error: {wrong}"] if wrong else [text for row in cell.results for text in _misses(row)],
        "candidate_answer": trace.output.final_answer or "",
        "target": case.target or trace.variant_name,
        "reasoning": " | ".join(f"{row.evaluator}: {row.reason}" for row in cell.results if row.reason) or None,
        "evaluator_results": [_result(row, case) for row in cell.results],
        "trace_summary": trace_summary(trace),
    }
    return line | ({"error": wrong} if wrong else {})


def _result(row: EvaluationResult, case: _CaseFacts) -> dict[str, Any]:
    score = 0.0 if row.error is not None else row.score or 0.0
    children = row.detail.get("children")
    result: dict[str, Any] = {
        "name": row.evaluator,
        "type": _type(row.evaluator_type, case.checks.get((row.evaluator,))),
        "score": score,
        "weight": case.weights.get(row.evaluator, 1.0),
        "verdict": "fail" if row.error is not None else row.detail.get("verdict") or band(score),
        "hits": row.hits,
        "misses": _misses(row),
        "reasoning": row.reason or None,
        "details": details_of(row.detail) or None,
    }
    result |= {"error": row.error.message} if row.error is not None else {}
    return result | ({"evaluator_results": _members(children, case, (row.evaluator,))} if children else {})


def _misses(row: EvaluationResult) -> list[str]:
    """What was not found, and why an evaluator could not judge."""
    return [*row.misses, *([f"Evaluator '{row.evaluator}' failed: {row.error.message}"] if row.error else [])]


def _type(kind: str, check: str | None) -> str:
    return check or _TYPES.get(kind, kind)


def _members(children: list[dict[str, Any]], case: _CaseFacts, above: tuple[str, ...]) -> list[dict[str, Any]]:
    return [_child(child, case, (*above, str(child.get("evaluator")))) for child in children]


def _child(child: dict[str, Any], case: _CaseFacts, path: tuple[str, ...]) -> dict[str, Any]:
    """A member of a composite, which may itself be one."""
    detail = child.get("detail") or {}
    members = detail.get("children")
    result = {
        "name": child.get("evaluator"),
        "type": _type(str(child.get("evaluator_type")), case.checks.get(path)),
        "score": child.get("score") or 0.0,
        **{key: child.get(key) for key in ("weight", "verdict", "hits", "misses")},
        "reasoning": child.get("reason") or None,
        "details": details_of(detail) or None,
    }
    return result | ({"evaluator_results": _members(members, case, path)} if members else {})
