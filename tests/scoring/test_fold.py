"""Folding against a recomputation that holds everything and loops plainly."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from itertools import groupby
from pathlib import Path
from statistics import fmean

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.model.plan import PassCriteria, Plan, RunSettings
from evalwright.model.result import EvaluationResult, Status
from evalwright.model.summary import RunSummary
from evalwright.model.trace import Metrics, Trace, TraceError
from evalwright.scoring.fold import fold
from evalwright.scoring.newest import SupersededRecords, newest_cells, streamed_cells
from evalwright.scoring.verdict import cell_status
from evalwright.stores.local_files import LocalFiles
from evalwright.testing import a_case, a_trace, a_verdict
from scoring.histories import EVALUATORS, MOMENT, Record, histories, plan, plans, row_of, stored, tidy_runs

Cell = tuple[Trace, list[EvaluationResult], Status]


def cells_by_hand(records: list[Record], of: Plan) -> list[Cell]:
    cells = []
    traces = [record for record in records if isinstance(record, Trace)]
    for key in dict.fromkeys(map(_key, traces)):
        mine = [trace for trace in traces if _key(trace) == key]
        best = max(trace.attempt for trace in mine)
        trace = [trace for trace in mine if trace.attempt == best][-1]
        rows = [r for r in records if isinstance(r, EvaluationResult) and _key(r) == key and r.attempt == trace.attempt]
        last = list({row.evaluator: row for row in rows}.values())
        names = [spec.name for spec in of.evaluators]
        if not last and trace.error is None:
            continue  # answered but never judged: still missing
        cells.append((trace, last, cell_status(of.pass_criteria, names, trace.error is not None, last)))
    return cells


def _key(record: Record) -> tuple[str, str, int]:
    return record.case_key, record.variant_name, record.trial


def told(summary: RunSummary) -> dict[str, object]:
    """What a summary says, by what it says it of."""
    found: dict[str, object] = {"run": (summary.cells_total, summary.cells_missing)}
    for v in summary.variants:
        counts = {status: number for status, number in v.cells.items() if number}
        means = (v.avg_latency_ms, v.avg_cost_usd, v.avg_tokens_input, v.avg_tokens_output)
        cases = (v.cases_total, v.cases_passed, v.cases_errored, v.pass_rate_n)
        found[v.name] = (cases, v.pass_rate, counts, means)
        for rollup in summary.by_evaluator:
            if (rate := rollup.by_variant.get(v.name)) is not None:
                found[f"{v.name} {rollup.evaluator}"] = (rate.n, rate.errors, rate.pass_rate, rate.avg_score)
    return found


def by_hand(summary: RunSummary, cells: list[Cell], of: Plan) -> dict[str, object]:
    """The same of cells, for the variants of the summary."""
    found: dict[str, object] = {"run": (len(cells), max(0, 4 * 2 * of.run.trials - len(cells)))}
    for name in (v.name for v in summary.variants):
        mine = [cell for cell in cells if cell[0].variant_name == name]
        by_case = _shares(mine, of.pass_criteria)
        traces, shares = [trace for trace, _, _ in mine], list(by_case.values())
        broken = len(set() if of.pass_criteria.errored_cases == "count" else _with_errors(mine, by_case))
        nothing = 0.0 if not mine and of.pass_criteria.errored_cases == "count" else None
        total, errored = ({t.case_key for t in traces}, {t.case_key for t in traces if t.error})
        costs = [t.metrics for t in traces]
        found[name] = (
            (len(total), sum(share == 1 for share in shares) - broken, len(errored), len(shares)),
            pytest.approx(fmean(shares)) if shares else nothing,
            _counted(status for _, _, status in mine),
            (
                _mean(t.latency_ms for t in traces),
                _mean(m.cost_usd for m in costs),
                _mean(m.token_input for m in costs),
                _mean(m.token_output for m in costs),
            ),
        )
        for evaluator in EVALUATORS if mine else ():
            seen = [rows for trace, rows, _ in mine if not trace.error or of.pass_criteria.errored_cases != "error"]
            rows = [row for rows in seen for row in rows if row.evaluator == evaluator]
            judged = [row for row in rows if not row.error and not row.skipped]
            errors = sum(row.error is not None for row in rows)
            fail = of.pass_criteria.errored_evaluators == "fail"
            counted = [row for row in rows if row in judged or (fail and row.error is not None)]
            shares_of = _shares_of((row.case_key, row.passed and row.error is None) for row in counted)
            rate = pytest.approx(fmean(shares_of.values())) if counted else None
            found[f"{name} {evaluator}"] = (len(counted), errors, rate, _mean(row.score for row in judged))
    return found


def _shares(cells: list[Cell], criteria: PassCriteria) -> dict[str, float]:
    """The share of passed trials of each case that has one with a verdict."""
    without = {"skip"} if criteria.errored_cases == "count" else {"skip", "error"}
    return _shares_of((trace.case_key, status == "pass") for trace, _, status in cells if status not in without)


def _shares_of(trials: Iterable[tuple[str, bool]]) -> dict[str, float]:
    by_case = groupby(sorted(trials), key=lambda pair: pair[0])
    return {case: fmean(passed for _, passed in group) for case, group in by_case}


def _with_errors(cells: list[Cell], shares: dict[str, float]) -> set[str]:
    """The cases that would have passed but for an error."""
    return {trace.case_key for trace, _, status in cells if status == "error" and shares.get(trace.case_key) == 1}


def _counted(statuses: Iterable[str]) -> dict[str, int]:
    return {status: len(list(group)) for status, group in groupby(sorted(statuses))}


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


@given(histories(), plans)
def test_summary_of_any_history_is_that_of_its_newest_records(records: list[Record], of: Plan) -> None:
    records = [record for record in records if record.trial < of.run.trials]
    summary = fold(stored(records, of), of).summary(_of_four_cases(of), MOMENT)
    assert told(summary) == by_hand(summary, cells_by_hand(records, of), of)


@given(tidy_runs(), plans)
def test_summary_of_a_run_without_retries(records: list[Record], of: Plan) -> None:
    records = [record for record in records if record.trial < of.run.trials]
    summary = fold(stored(records, of), of).summary(_of_four_cases(of), MOMENT)
    assert told(summary) == by_hand(summary, cells_by_hand(records, of), of)


@given(tidy_runs())
def test_a_run_without_retries_is_streamed(records: list[Record]) -> None:
    run = stored(records, plan())
    n = len(EVALUATORS)
    streamed = {_facts(trace, rows) for trace, rows in streamed_cells(run, n, errored=n)}
    assert streamed == {_facts(trace, rows) for trace, rows in newest_cells(run)}


def _facts(trace: object, rows: Iterable[object]) -> tuple[bytes, ...]:
    return (msgspec.json.encode(trace), *sorted(map(msgspec.json.encode, rows)))


@given(tidy_runs().filter(bool), st.data())
def test_a_record_written_again_ends_the_stream(records: list[Record], data: st.DataObject) -> None:
    again = data.draw(st.sampled_from(records))
    run = stored([*records, again], plan())
    with pytest.raises(SupersededRecords):
        list(streamed_cells(run, len(EVALUATORS), errored=len(EVALUATORS)))


def test_a_second_row_and_a_second_attempt_end_the_stream_whatever_else_there_is() -> None:
    trace = a_trace(case_id="c0", variant_name="v0")
    rows = [row_of(trace, name, passed=True) for name in EVALUATORS]
    late = a_trace(case_id="c0", variant_name="v0", attempt=2)
    for records in ([trace, rows[0], *rows], [late, *(row_of(late, name) for name in EVALUATORS)]):
        with pytest.raises(SupersededRecords):
            list(streamed_cells(stored(records, plan()), len(EVALUATORS), errored=len(EVALUATORS)))


def test_cells_without_results_because_of_an_error_are_streamed_too() -> None:
    broken, sound = (a_trace(case_id=name, variant_name="v0") for name in ("c0", "c1"))
    broken.error = TraceError("timeout", "no answer")
    run = stored([broken, sound, *(row_of(sound, name) for name in EVALUATORS)], plan())
    cells = streamed_cells(run, len(EVALUATORS), errored=0)
    assert [(trace.case_id, len(rows)) for trace, rows in cells] == [("c0", 0), ("c1", 3)]


def test_cells_come_in_the_order_of_their_first_trace() -> None:
    first, second = a_trace(case_id="c1"), a_trace(case_id="c0")
    retried = a_trace(case_id="c1", attempt=2, latency_ms=7)
    run = stored([first, second, retried, row_of(retried, "e0", passed=True), row_of(first, "e1")], plan())
    listed = [(trace.case_id, trace.latency_ms, [row.evaluator for row in rows]) for trace, rows in newest_cells(run)]
    assert listed == [("c1", 7, ["e0"]), ("c0", 0, [])]


def test_a_folder_of_another_program_has_neither_trials_nor_attempts() -> None:
    old, new = a_trace(variant_name="v0"), a_trace(variant_name="v0", latency_ms=5)
    run = stored([old, row_of(old, "e0", passed=False), new, row_of(new, "e0", passed=True)], plan())
    run._records.traces = [_without(line, b',"trial":0,"attempt":1') for line in run._records.traces]
    run._records.results = [_without(line, b',"trial":0,"attempt":1') for line in run._records.results]
    run.plan = None
    summary = fold(run, plan()).summary(plan(cases_total=1), MOMENT)
    assert (summary.variants[0].cases_passed, summary.variants[0].avg_latency_ms) == (1, 5.0)


def _without(line: bytes, part: bytes) -> bytes:
    assert part in line
    return line.replace(part, b"")


def test_a_cell_of_ours_needs_every_result_and_one_of_upstream_what_is_there() -> None:
    trace = a_trace(variant_name="v0")
    run = stored([trace, row_of(trace, "e0", passed=True)], plan())
    assert fold(run, plan()).variants["v0"].cells["error"] == 1
    run.plan = None
    assert fold(run, plan()).variants["v0"].cells["pass"] == 1


def _of_four_cases(of: Plan) -> Plan:
    of.cases_total = 4
    return of


@pytest.mark.parametrize("scores", [(0.0, 0.0, 1.0, 1.0), (0.0, 0.25, 0.5, 0.75)], ids=["alike", "each its own"])
@pytest.mark.parametrize("totals", ["", "agentv", "letta", "northstar", "pixie", "promptfoo", "skills"])
def test_a_run_of_one_system_is_counted_by_its_index_as_by_its_records(
    tmp_path: Path, totals: str, scores: tuple[float, ...]
) -> None:
    of = plan(variants=plan().variants[:1], run=RunSettings(), cases_total=4, totals=totals)
    with closing(LocalFiles(tmp_path).create(of, [a_case(id=f"c{i}") for i in range(4)], {})) as writer:
        for i in range(4):
            spent = Metrics(token_input=i, token_output=1, cost_usd=i / 4)
            trace = a_trace(case_id=f"c{i}", case_index=i, variant_name="v0", latency_ms=i, metrics=spent)
            writer.append_trace(trace)
            seen = {"passed": i > 1, "score": scores[i], "skipped": i == 3, "misses": ["not said"]}
            writer.append_results([row_of(trace, name, **seen) for name in EVALUATORS])
            writer.append_verdict(a_verdict(case_id=f"c{i}", variant_name="v0", case_index=i))

    def told() -> RunSummary:
        with closing(LocalFiles(tmp_path).read(writer.folder.name)) as reader:
            return fold(reader, of).summary(of, MOMENT)

    scanned = told()
    with closing(LocalFiles(tmp_path).read(writer.folder.name)) as reader, closing(reader.index("to_keep")):
        pass
    assert told() == scanned
    assert (scanned.variants[0].cost_total_usd, scanned.variants[0].avg_latency_ms) == (1.5, 1.5)


def test_a_run_whose_cases_have_their_own_evaluators_is_counted_by_its_verdicts() -> None:
    of = plan(variants=plan().variants[:1], evaluators_by_case=True, totals="promptfoo", cases_total=3)
    run = stored([a_trace(case_id=f"c{i}", variant_name="v0") for i in range(3)], of)
    for case, status, extra in (("c0", "pass", {"sums": {"m": 2.0}}), ("c1", "fail", {"sums": {"m": "much"}})):
        run.append_verdict(a_verdict(case_id=case, variant_name="v0", status=status, extra=extra))
    summary = fold(run, of).summary(of, MOMENT)
    assert (summary.variants[0].cells["pass"], summary.cells_total) == (1, 1)
    assert [(metric.metric, metric.value) for metric in summary.named_metrics or []] == [("m", 2.0)]
    assert ["c1 of v0" in line for line in run.damage] == [True]
