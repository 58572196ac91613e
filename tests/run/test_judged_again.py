"""Judging the stored answers of a run again gives what the run gave, whichever evaluator judges, and whatever is left
out of cases and traces because nobody looks at it."""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from any_records import answers, cases
from evalwright.evaluators.build import build, calls_models, declared
from evalwright.evaluators.catalogue import catalogue, describe
from evalwright.model.plan import EvaluatorSpec, PassCriteria, RunSettings
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.snapshot import Case
from evalwright.model.trace import Answer, TraceError
from evalwright.run.locations import Place
from evalwright.run.re_evaluation import re_evaluate
from evalwright.run.start import run_suite
from evalwright.scoring.bands import THRESHOLD
from run.judged_runs import judged_again
from run.suites import suite

CHECKS = [
    EvaluatorSpec(evaluator.name, evaluator.name, dict(describe(evaluator.name).example or {}))
    for evaluator in catalogue()
    if not declared("evaluators", evaluator.name).imports_code
    and not declared("evaluators", evaluator.name).compares
    and not calls_models(evaluator.name, describe(evaluator.name).example or {})
    and evaluator.group not in ("code", "workspace")
]
LOOKS = [spec for spec in CHECKS if declared("evaluators", spec.type).looks]
"""Judged without reading a record as a whole, in ways that depend on which of them are together."""
WHOLE = [spec for spec in CHECKS if spec not in LOOKS]
OF_TRACES = [spec for spec in LOOKS if not build(spec).traits.uses_case]
OF_CASES = [EvaluatorSpec(f"{kind} of the case", kind) for kind in ("contains_text", "tool_called")]
BY_EACH, BY_MEAN = PassCriteria(), PassCriteria(rule="bands")
ALONE = pytest.mark.slow("a run for each evaluator, which others judge together")
JUDGED = [
    *(pytest.param([spec], BY_EACH, marks=ALONE) for spec in LOOKS),
    *([WHOLE[start : start + 5], BY_EACH] for start in range(0, len(WHOLE), 5)),
    *([specs, rule] for specs in (OF_TRACES, [*LOOKS, *OF_CASES], OF_CASES[:1]) for rule in (BY_EACH, BY_MEAN)),
]
given_answers = st.lists(
    st.tuples(cases(), answers(), st.sampled_from([None, None, None, TraceError("refused", "no")])),
    min_size=4,
    max_size=8,
)


def _named(value: object) -> str | None:
    if isinstance(value, PassCriteria):
        return value.rule
    return value[0].name if isinstance(value, list) and len(value) == 1 else None


def judgements(place: Place) -> list[dict[str, Any]]:
    """The results and verdicts without times, cell by cell."""
    with closing(place.store.read(place.run_id)) as reader:
        rows = [*reader.results(EvaluationResult), *reader.verdicts(CaseVerdict)]
    plain: list[dict[str, Any]] = [msgspec.to_builtins(row) for row in rows]
    for row in plain:
        for key in ("started_at", "finished_at", "latency_ms"):
            row.pop(key, None)
    return sorted(plain, key=lambda row: (row["case_id"], row["trial"]))


@pytest.mark.parametrize(("checks", "criteria"), JUDGED, ids=_named)
# each example is a run that is judged three times: to look for the smallest one would take minutes
@settings(max_examples=max(2, settings.default.max_examples // 50), phases=[Phase.generate])
@given(made=given_answers, trials=st.sampled_from([1, 2]))
def test_a_run_is_judged_again_as_it_was(
    checks: list[EvaluatorSpec], criteria: PassCriteria, made: list[tuple[Case, Answer, TraceError | None]], trials: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asked = suite(Path(folder), [], "agents:recite", evaluators=checks, criteria=criteria)
        asked.run = RunSettings(trials=trials)
        asked.cases = [
            msgspec.structs.replace(
                case,
                id=f"c{number}",
                input=msgspec.to_builtins({"answer": answer, "error": error}),
                extra={**case.extra, THRESHOLD: 0.1} if number % 2 else case.extra,
            )
            for number, (case, answer, error) in enumerate(made)
        ]
        run = run_suite(asked)
        before = judgements(run.place)
        again = re_evaluate(run.place)
        assert judgements(run.place) == before
        judged_again(run.place)
        assert judgements(run.place) == before
    assert len(before) >= len(made) * trials
    times = {"started_at": run.summary.started_at, "finished_at": run.summary.finished_at}
    assert msgspec.structs.replace(again.summary, **times) == run.summary
