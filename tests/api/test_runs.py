"""A stored run, and one in memory: what they show."""

import json
import pickle
import shutil
import signal
import threading
import time

import pytest

import evalwright as ew
from api import agents
from api.shouting import cli, evaluate, shouts


@pytest.mark.parametrize("look", [list, lambda run: run.cell("a"), lambda run: run.to_frame("results")])
def test_records_that_cannot_be_read_are_named(run, look):
    results = run.path / "results.jsonl"
    first, second, *others = results.read_text().splitlines(keepends=True)
    results.write_text("".join([first, second[:40] + "\n", *others]))
    with pytest.warns(UserWarning, match=r"results\.jsonl:2"):
        look(ew.open_run(run.path))


@pytest.mark.parametrize("numbered", [True, False], ids=["ours", "of another program"])
@pytest.mark.parametrize("kept", [0, 2])
def test_a_cell_whose_case_is_lost_has_what_its_trace_says_of_it(run, kept, numbered):
    wanted = [(cell.case.id, cell.case.input, cell.status) for cell in run]
    cases, traces = run.path / "cases.jsonl", run.path / "traces.jsonl"
    cases.write_text("".join(cases.read_text().splitlines(keepends=True)[:kept]))
    if not numbered:
        records = [json.loads(line) for line in traces.read_text().splitlines()]
        traces.write_text("".join(json.dumps({**record, "case_index": None}) + "\n" for record in records))
    assert [(cell.case.id, cell.case.input, cell.status) for cell in ew.open_run(run.path)] == wanted


def test_views(run):
    assert [(cell.case.id, cell.status) for cell in run] == [
        ("a", "pass"),
        ("b", "fail"),
        ("c", "error"),
        ("d", "pass"),
    ]
    assert [cell.case_id for cell in run.failures()] == ["b"]
    assert [cell.case_id for cell in run.errors()] == ["c"]
    assert [cell.case_id for cell in run.cells(status=("pass", "fail"), variant="shouts")] == ["a", "b", "d"]
    with pytest.raises(ew.InputError, match=r"unknown verdict 'passed'; did you mean .pass."):
        run.cells(status="passed")
    assert (len(run), run.passed, run.stopped, run.variants) == (4, False, None, ["shouts"])
    assert run.path.parent.exists()
    assert run.cell("a").latency >= 0
    assert run.cell("a").results["loud"].passed is True


def test_a_stored_run_can_be_pickled_and_one_in_memory_says_why_not(run):
    other = pickle.loads(pickle.dumps(run))  # noqa: S301
    assert (other.path, [cell.status for cell in other]) == (run.path, [cell.status for cell in run])
    with pytest.raises(TypeError, match="a run in memory cannot be pickled"):
        pickle.dumps(evaluate(["a"], shouts))


def test_numbers(run):
    summary = run.summary
    assert (summary.cases, summary.missing, summary.status) == (4, 0, "complete")
    assert summary.cells == {"pass": 2, "borderline": 0, "fail": 1, "skip": 0, "error": 1}
    assert (summary.pass_rate, summary.rates["shouts"].n) == (pytest.approx(2 / 3), 3)
    assert summary.latency["shouts"] < 60
    assert summary.variant("shouts").cells["pass"] == 2
    assert str(summary) == "4 cases, pass rate 66.7% [20.8–93.9], 1 error"
    with pytest.raises(KeyError, match='did you mean "shouts"'):
        summary.variant("shout")


def test_one_cell_or_the_nearest(run):
    assert run.cell("b").output == "quiet"
    with pytest.raises(KeyError, match='did you mean "shouts"'):
        run.cell("a", "shots")
    with pytest.raises(KeyError, match="no trial 1 of"):
        run.cell("a", trial=1)
    with pytest.raises(KeyError, match='did you mean "refund"'):
        evaluate({"refund": "x"}, agents.upper).cell("refnd")


def test_a_passed_run_raises_nothing():
    passed = evaluate({"a": "x"}, agents.upper)
    assert passed.raise_for_status() is passed


def test_a_run_that_did_not_pass_lists_its_cells(run):
    with pytest.raises(AssertionError) as raised:
        run.raise_for_status()
    lines = str(raised.value).splitlines()
    assert lines[:3] == [
        "shouting: 4 cases, pass rate 66.7% [20.8–93.9], 1 error",
        "  fail  b · shouts: loud: score 0",
        f"  error  c · shouts: {run.cell('c').error}",
    ]
    assert str(run.path) in lines[3]


def test_only_ten_cells_are_listed():
    many = evaluate([str(i) for i in range(14)], agents.upper, evaluators=lambda output: False, trials=2)
    with pytest.raises(AssertionError) as raised:
        many.raise_for_status()
    assert str(raised.value).splitlines()[-1] == "  … and 18 more"


def test_notebooks_show_a_page_without_script():
    nasty = evaluate({"<b>": "<script>alert(1)</script>"}, agents.later, evaluators=lambda output: False)
    page = nasty._repr_html_()
    assert "&lt;SCRIPT&gt;" in page
    assert "<script" not in page.lower()
    assert "&lt;b&gt;" in page


def test_reports(run, tmp_path):
    assert "shouting" in run.report()
    assert run.report("json", tmp_path / "report.json") == (tmp_path / "report.json").read_text()
    with pytest.raises(ew.InputError, match="format: unknown report 'markdwn'; did you mean \"markdown\""):
        run.report("markdwn")


@pytest.mark.slow("every command that reads a run")
def test_the_command_line_reads_the_run(run):
    assert "✗ fail  b · shouts" in cli("inspect", run.path)
    assert "4 traces" in cli("re-evaluate", run.path, code=3)
    assert "shouts" in cli("compare", run.path, run.path)
    assert "shouting" in cli("report", run.path)


def test_a_run_in_memory_has_no_path():
    run = evaluate({"a": "x"}, agents.upper)
    assert run.path is None
    assert "<Run 'upper': 1 case" in repr(run)


def test_a_stored_run_is_opened(run):
    again = ew.open_run(run.path)
    assert [(cell.case_id, cell.status) for cell in again] == [(cell.case_id, cell.status) for cell in run]
    with pytest.raises(ew.InputError):
        ew.open_run(run.path / "nothing")


def test_trials_of_a_case_are_listed_in_order_and_each_has_its_number(tmp_path):
    def slow_at_first(case, trial):
        time.sleep(0.3 if trial == 0 else 0)
        return "no"

    run = ew.evaluate({"a": "x"}, slow_at_first, evaluators=agents.loud, trials=3, out=tmp_path)
    names = [f"a · slow_at_first · trial {number}" for number in (1, 2, 3)]
    shown = [line for line in cli("inspect", run.path, "--case", "a").splitlines() if "trial" in line]
    assert [line[len("✗ fail  ") :][: len(name)] for line, name in zip(shown, names, strict=True)] == names
    with pytest.raises(AssertionError, match="trial 1: loud"):
        run.raise_for_status()


def test_threads_may_use_one_run(run):
    seen = []
    threads = [threading.Thread(target=lambda: seen.append(len(list(run)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [4] * 4


def test_signals_of_the_caller_stay():
    def mine(*_: object) -> None: ...

    before = signal.signal(signal.SIGINT, mine)
    try:
        evaluate({"a": "x"}, agents.upper)
        assert signal.getsignal(signal.SIGINT) is mine
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_run_whose_folder_is_gone_has_a_repr_and_says_so(tmp_path):
    run = evaluate(["a"], agents.upper, out=tmp_path)
    shutil.rmtree(run.path)
    assert "does not exist" in repr(run)
    with pytest.raises(ew.InputError, match="does not exist"):
        _ = run.passed


def test_an_id_that_is_no_text_is_no_case(run):
    with pytest.raises(KeyError, match="no case 1"):
        run.cell(1)


def test_cells_of_an_unknown_variant_are_refused(run):
    with pytest.raises(ew.InputError, match=r"no variant 'shout'; did you mean \"shouts\"\? \(there are: shouts\)"):
        run.cells(variant="shout")


def test_reports_of_a_run_whose_cells_were_all_skipped_say_that_nothing_was_judged(tmp_path):
    absent = ew.Evaluator("field_check", field="case.metadata.cents", at_most=50, absent="skip")
    run = ew.evaluate({"a": "hi", "b": "yes"}, agents.upper, evaluators=absent, out=tmp_path)
    assert (run.summary.cells["skip"], run.passed) == (2, True)  # the originals end so
    assert "nothing was judged: every cell was skipped" in run.summary.warnings
    assert "**Not judged: every one of 2 cells was skipped**" in run.report("markdown")


def test_warnings_of_a_run_are_seen_where_it_is_printed_or_shown() -> None:
    run = ew.evaluate(["hi"], str.upper, evaluators="contains_text", out=None)
    [warning] = run.summary.warnings
    assert str(run.summary).splitlines()[1:] == [f"warning: {warning}"]
    assert "passes whatever the answer is" in run._repr_html_()
    assert "warning" not in repr(run)


def test_one_case_of_a_comparison_is_one_case() -> None:
    run = ew.evaluate(["hi"], str.upper, evaluators=lambda output: True, out=None)
    assert ", 1 case, 0 worse" in str(ew.compare(run, run))
