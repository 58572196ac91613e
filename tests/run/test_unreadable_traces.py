"""Traces that cannot be read any more: a new judgement names them and keeps what was judged of their cells."""

from contextlib import closing

import msgspec
import pytest

from evalwright.errors import InputError
from evalwright.model.cell_index import CellSelection
from evalwright.model.plan import EvaluatorSpec
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.trace import Trace
from evalwright.reports.failures import newest_verdicts
from evalwright.run.locations import Place
from evalwright.run.options import RunOptions
from evalwright.run.origin import Trust
from evalwright.run.re_evaluation import re_evaluate
from evalwright.run.resumption import resume
from evalwright.run.start import run_suite
from evalwright.run.unreadable_traces import judged_before
from evalwright.stores.local_files import LocalFiles
from run.suites import SAYS_DONE, SAYS_LAST, suite
from stores.stores import KINDS, Kept

FEW_MESSAGES = EvaluatorSpec("few", "schema_match", {"field": "messages", "schema": {"maxItems": 9}})
HARMLESS = {
    "of a wrong type": lambda line: line.replace('"latency_ms":', '"latency_ms":"q","w":'),
    "of no attempt": lambda line: line.replace('"attempt":1', '"attempt":65536'),
    "torn": lambda line: line[: len(line) // 2],
    "no JSON": lambda _: "garbage",
}


@pytest.fixture(params=[kind for kind in KINDS if kind != "postgres"])
def kept(request, tmp_path):
    return Kept(request.param, tmp_path)


@pytest.fixture
def run(kept, tmp_path):
    """A stored run of four cells, two of which passed."""
    made = suite(tmp_path, ["done", "no", "done", "no"], evaluators=[SAYS_DONE, SAYS_LAST], max_concurrency=1)
    outcome = run_suite(made, RunOptions(store=kept.store()))
    return Place(kept.store(), outcome.plan.run_id, outcome.run_dir)


def records(run, kind):
    reader = run.store.read(run.run_id)
    read = {Trace: reader.traces, EvaluationResult: reader.results, CaseVerdict: reader.verdicts}[kind]
    return [msgspec.to_builtins(row) for row in read(kind)]


def damage(kept, run, position, how):
    [line] = [msgspec.json.encode(row).decode() for row in records(run, Trace)][position : position + 1]
    kept.replace(run.run_id, "traces", position, how(line))


def of(rows, case):
    return [row for row in rows if row["case_id"] == case]


@pytest.mark.parametrize("how", HARMLESS.values(), ids=HARMLESS.keys())
@pytest.mark.parametrize("given", [{}, {"processes": 2}, {"add": "says_done"}], ids=str)
def test_the_cell_keeps_its_results_and_is_said(kept, run, how, given):
    results, verdicts = records(run, EvaluationResult), records(run, CaseVerdict)
    damage(kept, run, 1, how)
    outcome = re_evaluate(run, **given)
    assert outcome.unreadable == 1
    assert any("traces" in note and "2" in note for note in outcome.notes)
    assert "1 cell without a readable trace: earlier results are kept" in outcome.notes
    assert of(records(run, EvaluationResult), "c1") == of(results, "c1")
    assert of(records(run, CaseVerdict), "c1") == of(verdicts, "c1")
    assert sorted(row["case_id"] for row in records(run, CaseVerdict)) == ["c0", "c1", "c2", "c3"]
    assert len(records(run, EvaluationResult)) == 8


@pytest.mark.parametrize("attempt", [-1, 65_536, 10**30])
def test_a_cell_whose_trace_has_an_attempt_that_none_can_be_is_run_again(kept, run, attempt):
    damage(kept, run, 1, lambda line: line.replace('"attempt":1', f'"attempt":{attempt}'))
    outcome = resume(run)
    assert (outcome.exit_code, len(outcome.unread)) == (1, 1)
    assert sorted(row["case_id"] for row in records(run, Trace)) == ["c0", "c1", "c2", "c3"]


def test_a_cell_that_an_indexed_run_has_not_judged_is_no_lost_one(tmp_path):
    made = suite(tmp_path, ["done", "no", "done"], evaluators=[SAYS_DONE], max_concurrency=1)
    run = run_suite(made).run_dir
    for name in ("results", "verdicts"):
        lines = (run / f"{name}.jsonl").read_bytes().splitlines(keepends=True)
        (run / f"{name}.jsonl").write_bytes(b"".join(lines[:2]))
    with closing(LocalFiles(run.parent).read(run.name)) as reader, closing(reader.index("to_keep")) as index:
        assert (len(index), index.count(CellSelection(statuses=[None]))) == (3, 1)
    with closing(LocalFiles(run.parent).open(run.name)) as writer:
        assert judged_before(writer) == 2
    outcome = re_evaluate(run)
    assert (outcome.unreadable, outcome.notes) == (0, ["re-evaluated 3 traces"])


def test_where_no_trace_can_be_read_nothing_is_replaced(kept, run):
    results = records(run, EvaluationResult)
    for position in range(4):
        kept.replace(run.run_id, "traces", position, "garbage")
    with pytest.raises(InputError, match=r"no trace of .* can be read"):
        re_evaluate(run)
    assert records(run, EvaluationResult) == results


def test_results_of_traces_that_are_gone_are_kept(tmp_path):
    outcome = run_suite(suite(tmp_path, ["done", "no"], max_concurrency=1))
    traces = outcome.run_dir / "traces.jsonl"
    traces.write_bytes(traces.read_bytes().splitlines(keepends=True)[0])
    before = (outcome.run_dir / "results.jsonl").read_bytes().splitlines()
    assert re_evaluate(outcome.run_dir).unreadable == 1
    assert (outcome.run_dir / "results.jsonl").read_bytes().splitlines()[1] == before[1]
    traces.write_bytes(b"")
    with pytest.raises(InputError, match="there are none"):
        re_evaluate(outcome.run_dir)
    assert len((outcome.run_dir / "results.jsonl").read_bytes().splitlines()) == 2


@pytest.mark.parametrize("kind", ["results", "verdicts"])
def test_judgements_of_a_later_version_are_not_replaced(kept, run, kind):
    record = {"results": EvaluationResult, "verdicts": CaseVerdict}[kind]
    newer = {**records(run, record)[1], "schema_version": "2.0"}
    kept.replace(run.run_id, kind, 1, msgspec.json.encode(newer).decode())
    for given in ({}, {"add": "says_done"}):
        with pytest.raises(InputError, match=rf"{kind}.*:2  schema_version  has version 2\.0"):
            re_evaluate(run, **given)
    with pytest.raises(InputError, match=r"has version 2\.0"):
        records(run, record)


@pytest.mark.parametrize("kind", ["results", "verdicts"])
def test_a_damaged_judgement_is_named_and_made_anew(kept, run, kind):
    kept.replace(run.run_id, kind, 1, "garbage")
    outcome = re_evaluate(run)
    assert outcome.unreadable == 0
    assert any(note.startswith(f"{kind}") and ":2: " in note for note in outcome.notes)
    assert (len(records(run, EvaluationResult)), len(records(run, CaseVerdict))) == (8, 4)


@pytest.mark.parametrize("kind", ["results", "verdicts"])
def test_a_damaged_judgement_that_ends_as_all_others_is_made_anew(kept, run, kind):
    kept.replace(run.run_id, kind, 1, '{"case_id":,"schema_version":"1.0"}')
    assert re_evaluate(run).unreadable == 0
    assert (len(records(run, EvaluationResult)), len(records(run, CaseVerdict))) == (8, 4)


@pytest.mark.parametrize("kind", ["traces", "results", "verdicts"])
def test_a_resumed_run_is_not_passed_over_what_cannot_be_read(kept, tmp_path, kind):
    suite_ = suite(tmp_path, ["done"] * 3, evaluators=[SAYS_DONE], max_concurrency=1)
    outcome = run_suite(suite_, RunOptions(store=kept.store()))
    run = Place(kept.store(), outcome.plan.run_id, outcome.run_dir)
    assert outcome.exit_code == 0
    kept.replace(run.run_id, kind, 1, "garbage")
    resumed = resume(run)
    assert (resumed.exit_code, len(resumed.unread)) == (3, 1)
    assert any("`re-evaluate` replaces results and verdicts" in note for note in resumed.notes)
    verdicts = list(newest_verdicts(run.store.read(run.run_id)))
    assert [verdict.case_id for verdict in verdicts] == {
        "traces": ["c0", "c2", "c1"],
        "results": ["c0", "c1", "c2"],
        "verdicts": ["c0", "c2", "c1"],
    }[kind]
    if kind == "traces":  # past the attempt of which results and verdict are still there
        assert [row["attempt"] for row in records(run, Trace)] == [1, 1, 2]
        return
    judged = re_evaluate(run)
    assert (judged.exit_code, judged.unread) == (0, [])
    assert len(list(newest_verdicts(run.store.read(run.run_id)))) == 3


def test_a_resumed_run_is_not_finished_while_results_of_its_verdicts_are_missing(tmp_path):
    kept = Kept("local_files", tmp_path)
    made = suite(tmp_path, ["done"] * 3, evaluators=[SAYS_DONE], max_concurrency=1)
    outcome = run_suite(made, RunOptions(store=kept.store()))
    run = Place(kept.store(), outcome.plan.run_id, outcome.run_dir)
    [results] = tmp_path.rglob("results.jsonl")
    results.write_text(results.read_text().splitlines(keepends=True)[0])
    resumed = resume(run)
    note = "results: those of 2 finished cells are missing; re-evaluate restores them"
    assert (resumed.exit_code, resumed.unread) == (3, [note])
    judged = re_evaluate(run)
    assert (judged.exit_code, judged.unread) == (0, [])


def test_cases_that_are_missing_are_named(tmp_path):
    kept = Kept("local_files", tmp_path)
    made = suite(tmp_path, ["done", "no"], evaluators=[SAYS_DONE], max_concurrency=1)
    run = Place(kept.store(), run_suite(made, RunOptions(store=kept.store())).plan.run_id, "")
    [cases] = tmp_path.rglob("cases.jsonl")
    cases.write_text(cases.read_text().splitlines(keepends=True)[0])
    before = records(run, CaseVerdict)
    with pytest.raises(InputError, match=r"cases\.jsonl .*there is no case 2: lines are missing"):
        re_evaluate(run)
    assert records(run, CaseVerdict) == before
    for name in ("traces", "results", "verdicts"):  # and with it whatever was recorded of it
        path = cases.with_name(f"{name}.jsonl")
        path.write_text(path.read_text().splitlines(keepends=True)[0])
    with pytest.raises(InputError, match=r"cases\.jsonl .*there is no case 2: lines are missing"):
        resume(run, trust=Trust(run=True))


def test_what_no_evaluator_reads_may_be_damaged_but_must_be_json(tmp_path):
    """Messages that a check of the answer passes over are not looked at; they are, where they are asked for."""
    run = run_suite(suite(tmp_path, ["done", "no"], evaluators=[SAYS_DONE], max_concurrency=1)).run_dir
    traces = run / "traces.jsonl"
    whole = traces.read_text()
    assert whole.count('"messages":[]') == 2
    traces.write_text(whole.replace('"messages":[]', '"messages":7', 1))
    assert re_evaluate(run).unreadable == 0
    with closing(LocalFiles(run.parent).read(run.name)) as reader:
        assert [verdict.status for verdict in reader.verdicts(CaseVerdict)] == ["pass", "fail"]
        assert len([*reader.traces(Trace)]) == 1
        assert "traces.jsonl:1" in reader.damage[0]
    traces.write_text(whole.replace('"messages":[]', '"messages":[', 1))
    assert re_evaluate(run).unreadable == 1


@pytest.mark.parametrize(("evaluators", "unreadable"), [([SAYS_DONE], 1), ([SAYS_DONE, FEW_MESSAGES], 2)])
def test_a_cell_is_judged_anew_or_keeps_its_judgement(tmp_path, evaluators, unreadable):
    """A trace whose messages are damaged can be read, unless they are looked at: both ways, its cell counts once."""
    run = run_suite(suite(tmp_path, ["done", "no", "done"], evaluators=evaluators, max_concurrency=1)).run_dir
    traces = run / "traces.jsonl"
    first, second, third = traces.read_text().splitlines(keepends=True)
    traces.write_text(first.replace('"messages":[]', '"messages":7', 1) + second[:50] + "\n" + third)
    assert re_evaluate(run).unreadable == unreadable
    with closing(LocalFiles(run.parent).read(run.name)) as reader:
        assert sorted(verdict.case_id for verdict in reader.verdicts(CaseVerdict)) == ["c0", "c1", "c2"]
        assert len([*reader.results(EvaluationResult)]) == 3 * len(evaluators)
