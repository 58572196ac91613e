"""Judging cells line by line is judging them record by record: the same results, verdicts and summary, to the byte."""

from __future__ import annotations

import re
import tempfile
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalwright.files.masker import Masker
from evalwright.model.plan import EvaluatorSpec, Plan
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.trace import Output, Trace
from evalwright.run.judge import Judge
from evalwright.run.judged_lines import JudgedLines, lines_by
from evalwright.run.limits import Watchdog
from evalwright.run.locations import Place
from evalwright.run.options import RunOptions
from evalwright.run.records import Clock
from evalwright.run.start import run_suite
from evalwright.scoring.tally import Tally
from evalwright.stores.documents import reserved_words
from evalwright.stores.local_files import LocalFiles
from evalwright.stores.local_files.lines import LineEncoder
from evalwright.testing import MemoryStore, a_case, a_plan, a_trace
from run.judged_runs import CHECKS, SECRET, judged_again, runs, stored, texts
from run.project import agents
from run.suites import suite

FILES = ("results.jsonl", "verdicts.jsonl")
SAYS = EvaluatorSpec("says", "contains_text", {"all_of": ["a"]})
CALLED = EvaluatorSpec("called", "tool_called", {"tool_name": "search"})
QUICK = EvaluatorSpec("quick", "latency", {"threshold": 1})


def without_times(text: bytes) -> bytes:
    return re.sub(rb'(_at"?: ?)\S+?Z|("latency_ms":)\d+', rb"\1\2-", text)


@settings(max_examples=settings.default.max_examples // 3)  # each of them is two runs, judged twice
@given(runs())
def test_cells_are_judged_alike(made: tuple[Plan, list[Trace]]) -> None:
    """A store in memory takes records; what one in a folder keeps of them are lines."""
    masker = Masker({"TOKEN": SECRET})
    memory = MemoryStore()
    with tempfile.TemporaryDirectory() as folder:
        store = LocalFiles(Path(folder), Masker({}))  # only that which judges has the secret: it is in what is judged
        for holds, judges in ((memory, memory), (store, LocalFiles(Path(folder), masker))):
            judged_again(Place(judges, stored(holds, *made), Path(folder)))
        records, run = memory.read("stored"), store.read("stored")
        encoder = LineEncoder(masker.keeping(reserved_words(made[0])))
        rows = [*records.results(EvaluationResult), *records.verdicts(CaseVerdict)]
        lines = b"".join((Path(run.location) / name).read_bytes() for name in FILES)
        summaries = [one.summary() for one in (records, run)]
        last = max(record.finished_at for record in [*run.traces(Trace), *run.results(EvaluationResult)])
    assert without_times(lines) == without_times(b"".join(map(encoder.line, rows)))
    assert SECRET.encode() not in lines
    assert without_times(encoder.line(summaries[0])) == without_times(encoder.line(summaries[1]))
    assert summaries[1].finished_at == last


async def _says_and_thinks(case, variant):
    """What the input says; without one, that is an error."""
    return {"final_answer": case["input"]["says"], "extra": {"note": "blue"}, "thinking": case["input"]["thinks"]}


asked = st.fixed_dictionaries({"says": texts.map(str), "thinks": st.sampled_from(["", "so"])})
UNTIMED = [spec for spec in CHECKS if spec.name not in ("quick", "soon")]
some_checks = st.lists(st.sampled_from(UNTIMED), unique_by=lambda spec: spec.name, min_size=1, max_size=5)


@settings(max_examples=settings.default.max_examples // 3)
@given(st.lists(asked | st.just({"says": "", "thinks": ""}) | st.none(), min_size=1, max_size=30), some_checks)
def test_cells_of_a_new_run_are_judged_alike(inputs: list[object], checks: list[EvaluatorSpec]) -> None:
    texts: list[bytes] = []
    agents.says_and_thinks = _says_and_thinks
    with tempfile.TemporaryDirectory() as folder:
        for store in (MemoryStore(), LocalFiles(Path(folder), Masker({}))):
            one = suite(
                Path(folder), inputs, "run.project.agents:says_and_thinks", evaluators=checks, max_concurrency=8
            )
            outcome = run_suite(one, RunOptions(store=store))
            outcome.summary.variants[0].avg_latency_ms = None
            run, encoder = store.read(outcome.plan.run_id), LineEncoder(None)
            rows = [*run.results(EvaluationResult), *run.verdicts(CaseVerdict), outcome.summary]
            texts.append(without_times(b"".join(map(encoder.line, rows))).replace(outcome.plan.run_id.encode(), b""))
        ended = {trace.case_id: trace.finished_at for trace in run.traces(Trace)}
        dates = [(ended[row.case_id], row.started_at, row.finished_at) for row in run.results(EvaluationResult)]
        assert b"".join(map(encoder.line, rows[:-1])) == b"".join(
            (Path(run.location) / name).read_bytes() for name in FILES
        )
    assert texts[0] == texts[1]
    assert all(list(date) == sorted(date) for date in dates)


class _Nowhere:
    def noting(self) -> None:
        pass

    def append_lines(self, results: bytes, verdicts: bytes) -> None:
        pass


def lines_of(*checks: EvaluatorSpec, owns_process: bool = True) -> JudgedLines | None:
    clock, plan = Clock(), a_plan(evaluators=[*checks])
    return lines_by(Judge(plan, Watchdog(owns_process), clock), clock, _Nowhere(), Tally.of(plan))


def judged_lines() -> JudgedLines:
    lines = lines_of(SAYS)
    assert lines is not None
    return lines


@pytest.mark.parametrize(
    ("checks", "judges"),
    [
        ([SAYS, CALLED, QUICK], True),
        ([SAYS, EvaluatorSpec("regex", "regex", {"pattern": "(a+)+$"})], False),
        ([EvaluatorSpec("path", "contains_text", {"all_of": ["a"], "field": "$..text"})], False),
        ([EvaluatorSpec("arguments", "tool_called", {"tool_name": "search", "args_match": {"q": "a"}})], False),
    ],
    ids=["brief ones", "a pattern", "a path", "arguments"],
)
def test_where_nothing_can_be_interrupted_only_checks_that_are_brief_judge_line_by_line(
    checks: list[EvaluatorSpec], judges: bool
) -> None:
    assert (lines_of(*checks, owns_process=False) is not None) == judges


class _Struck:
    """A case at which the user presses Ctrl-C."""

    @property
    def expected(self) -> None:
        raise KeyboardInterrupt


def test_ctrl_c_is_no_error_of_the_check_that_it_hits() -> None:
    lines = lines_of(EvaluatorSpec("says", "contains_text"), owns_process=False)
    assert lines is not None
    with pytest.raises(KeyboardInterrupt):
        lines.judge(_Struck(), a_trace())  # type: ignore[arg-type]


def test_what_waits_to_be_counted_does_not_grow_with_the_run() -> None:
    lines, case, trace = judged_lines(), a_case(), a_trace(latency_ms=1000)

    def held_after(cells: int) -> int:
        judged = sum(lines.judge(case, trace) is not None for _ in range(cells))
        assert judged > 0.9 * cells  # all but the few that the machine held up
        lines.flush()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = held_after(1000)
        assert held_after(5000) - before < 5 * 5000
    finally:
        tracemalloc.stop()


@pytest.mark.slow("many trials")
def test_results_of_a_kind_of_their_own_are_not_kept_for_each_of_many_trials() -> None:
    lines, case = judged_lines(), a_case()
    answers = [a_trace(output=Output(f"{number} is none of it")) for number in range(200)]

    def held_after(trials: range) -> int:
        for trial in trials:
            for trace in answers:
                trace.trial = trial
                lines.judge(case, trace)
            lines.flush()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        one = held_after(range(1))
        assert held_after(range(1, 40)) < 10 * one
    finally:
        tracemalloc.stop()
