"""A stored run: what it shows, how it is resumed and re-evaluated."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest

import evalwright as ew
from api import agents


def shouts(text):
    if text == "boom":
        raise ValueError("no")
    return text.upper() if text != "quiet" else text


CASES = {"a": "hi", "b": "quiet", "c": "boom", "d": "yes"}


@pytest.fixture
def run(tmp_path):
    return ew.evaluate(CASES, shouts, evaluators=agents.loud, out=tmp_path, name="shouting")


def evaluate(cases, system, **options):
    return ew.evaluate(cases, system, **{"evaluators": agents.loud, "out": None, **options})


def cli(*arguments, code=0):
    environment = {**os.environ, "COLUMNS": "120", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-m", "evalwright", *map(str, arguments)], capture_output=True, text=True, env=environment
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("look", [list, lambda run: run.cell("a"), lambda run: run.to_frame("results")])
def test_records_that_cannot_be_read_are_named(run, look):
    results = run.path / "results.jsonl"
    first, second, *others = results.read_text().splitlines(keepends=True)
    results.write_text("".join([first, second[:40] + "\n", *others]))
    with pytest.warns(UserWarning, match=r"results\.jsonl:2"):
        look(ew.open_run(run.path))


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


@pytest.mark.parametrize("backend", ["pandas", "polars"])
def test_frames(backend):
    pytest.importorskip(backend)
    cases = [
        ew.Case("a", {"q": 1}, ew.Expected(answer_should_include=["x"]), {"lang": "de"}, ["t"]),
        ew.Case("b", "text", group="g"),
    ]

    def system(case):
        return {"final_answer": "x", "tool_calls": [{"name": "look", "arguments": {"at": 1}}]}

    run = evaluate(cases, system, evaluators="answered", trials=2)
    frame = run.to_frame(backend=backend)
    assert list(frame.columns) == [
        "case", "variant", "trial", "status", "score", "input", "output", "expected", "error", "latency_s", "cost_usd",
        "tokens_in", "tokens_out", "tags", "group", "answered.passed", "answered.score", "answered.reason",
        "metadata.lang",
    ]  # fmt: skip
    assert list(frame["case"]) == ["a", "a", "b", "b"]
    assert list(frame["trial"]) == [0, 1, 0, 1]
    assert len(run.to_frame("results", backend=backend)) == 4
    assert list(run.to_frame("tool_calls", backend=backend)["arguments"]) == ['{"at":1}'] * 4
    assert type(frame).__module__.startswith(backend)


def test_a_frame_without_rows_has_its_columns():
    frame = evaluate(["a"], agents.upper).to_frame("tool_calls", backend="pandas")
    assert list(frame.columns) == ["case", "variant", "trial", "position", "name", "id", "arguments"]


def test_frames_of_another_kind_or_library_are_refused(run):
    with pytest.raises(ew.InputError, match="kind: expected one of cells, results, tool_calls"):
        run.to_frame("cell")
    with pytest.raises(ew.InputError, match="backend: expected 'pandas' or 'polars'"):
        run.to_frame(backend="numpy")


def test_without_a_library_the_extra_is_named(run, monkeypatch):
    import importlib.util

    monkeypatch.setattr("evalwright.api.frames.find_spec", lambda name: None)
    assert importlib.util.find_spec("json")
    with pytest.raises(ew.InputError, match=r"evalwright\[frames\]"):
        run.to_frame()


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


# Going on

EVAL = """
eval: {{name: nightly}}
dataset: {{type: {kind}, path: {path}}}
systems: [{{name: s, adapter: python_function, target: "json:dumps"}}]
evaluators: [{{name: answered, type: answered}}]
output: {{type: local_files, path: runs}}
"""
YAML = "cases:\n- {id: a, input: {text: old}}\n- {id: b, input: {text: old}}\n"
JSONL = '{"id": "a", "input": {"text": "old"}}\n{"id": "b", "input": {"text": "old"}}\n'


def interrupted(folder, system=agents.upper, **options):
    """A run that ends early."""

    async def main():
        cases = [str(i) for i in range(30)]
        async with ew.stream(cases, system, evaluators=agents.loud, out=folder, concurrency=1, **options) as cells:
            await anext(cells)

    asyncio.run(main())
    [path] = folder.iterdir()
    return ew.open_run(path)


def counts(text):
    return "A"


def test_an_unfinished_run_is_continued(tmp_path):
    run = interrupted(tmp_path, counts, name="nightly")
    seen = []
    cases = [str(i) for i in range(30)]
    again = ew.evaluate(
        cases,
        counts,
        evaluators=agents.loud,
        out=tmp_path,
        name="nightly",
        resume=True,
        concurrency=1,
        on_cell=seen.append,
    )
    assert again.path == run.path
    assert (len(again), len(seen) < 30, again.stopped) == (30, True, None)
    fresh = ew.evaluate(cases, counts, evaluators=agents.loud, out=tmp_path, name="nightly", resume=True, concurrency=1)
    assert fresh.path != run.path


def test_another_configuration_is_another_run(tmp_path):
    run = interrupted(tmp_path, counts, name="nightly")
    again = ew.evaluate(["x"], counts, evaluators=agents.loud, out=tmp_path, name="nightly", resume=True)
    assert again.path != run.path


@pytest.mark.parametrize(
    ("name", "text"), [("cases.csv", "id,input.text\na,old\nb,old\n"), ("cases.jsonl", JSONL), ("cases.yaml", YAML)]
)
def test_a_run_of_other_cases_is_not_continued(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    (tmp_path / "eval.yaml").write_text(EVAL.format(path=name, kind=name.removeprefix("cases.")))
    asked, out = [], tmp_path / "runs"

    def answer(case):
        asked.append(case.input["text"])
        return "x"

    async def first():
        async with ew.stream(ew.load(tmp_path / "eval.yaml"), answer, out=out, concurrency=1) as cells:
            await anext(cells)

    asyncio.run(first())
    (tmp_path / name).write_text(text.replace("old", "new"))
    asked.clear()
    run = ew.evaluate(ew.load(tmp_path / "eval.yaml"), answer, out=out, resume=True)
    assert asked == ["new", "new"]
    assert len(list(out.iterdir())) == 2
    hashes = {path.read_text() for path in out.glob("*/config_hash.txt")}
    assert len(hashes) == (2 if name.endswith(".csv") else 1)
    assert len(run) == 2


@pytest.mark.slow("two runs, each gone on with")
def test_resuming_from_python_and_from_the_command_line(tmp_path):
    run = interrupted(tmp_path / "a", agents.upper)
    assert len(ew.resume(run.path)) == 30
    run = interrupted(tmp_path / "b", agents.upper)
    cli("resume", run.path, code=1)
    assert len(run) == 30


def test_a_lambda_cannot_be_resumed_elsewhere_and_says_which(tmp_path):
    run = interrupted(tmp_path, lambda text: "A")
    with pytest.raises(ew.InputError, match=r"<lambda>.*resume=True"):
        ew.resume(run)


def test_cells_with_errors_run_again(tmp_path):
    answers = iter([RuntimeError("once"), None])

    def system(text):
        if (error := next(answers, None)) is not None:
            raise error
        return text.upper()

    run = ew.evaluate(["a", "b"], system, evaluators=agents.loud, out=tmp_path, concurrency=1)
    assert [cell.status for cell in run] == ["error", "pass"]
    seen = []
    again = ew.resume(run, retry_errors=True, on_cell=seen.append)
    assert [cell.status for cell in again] == ["pass", "pass"]
    assert [cell.case_id for cell in seen] == ["1"]


def test_a_run_in_memory_goes_on_too():
    async def main():
        async with ew.stream(["a", "b", "c"], agents.upper, evaluators=agents.loud, out=None, concurrency=1) as cells:
            return await anext(cells)

    assert asyncio.run(main()).case_id == "1"
    run = evaluate(["a"], lambda text: None)
    assert ew.resume(run, retry_errors=True).errors()


def test_ctrl_c_finishes_what_runs_and_the_run_can_be_resumed(tmp_path):
    script = (
        "import os, signal, evalwright as ew\n"
        "from api import agents\n"
        "agents.PAUSE = 0.02\n"  # else all could be done before a busy machine lets `hit` run
        "def hit(cell): os.kill(os.getpid(), signal.SIGINT)\n"
        "try:\n"
        "    cases = [str(i) for i in range(500)]\n"
        "    ew.evaluate(cases, agents.unhurried, evaluators=agents.loud, concurrency=1, on_cell=hit)\n"
        "except KeyboardInterrupt as error:\n"
        "    print('interrupted', *error.__notes__)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    [path] = (tmp_path / "runs").iterdir()
    run = ew.open_run(path)
    assert 0 < len(run) < 500
    how = f"evalwright.resume({str(path)!r}) or evaluate(..., resume=True) runs the rest"
    assert done.stdout == f"interrupted {len(run)} of 500 cells are stored; {how}\n"
    assert len(ew.resume(run)) == 500


def test_a_cancelled_run_says_how_to_go_on_and_one_in_memory_has_nothing_to_name(tmp_path):
    async def stuck(_):
        await asyncio.sleep(60)

    async def cancelled(out):
        task = asyncio.create_task(ew.aevaluate(["a", "b"], stuck, evaluators=agents.loud, out=out))
        await asyncio.sleep(0.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as ended:
            await task
        return getattr(ended.value, "__notes__", [])

    [note] = asyncio.run(cancelled(tmp_path))
    [path] = tmp_path.iterdir()
    assert f"0 of 2 cells are stored; evalwright.resume({str(path)!r})" in note
    assert asyncio.run(cancelled(None)) == []


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


# Judging again


def test_evaluators_are_added_and_systems_not_called(run):
    calls = []

    @ew.evaluator(name="short")
    def brief(output):
        calls.append(output)
        return len(output) < 4

    again = ew.re_evaluate(run, [brief, "answered"])
    assert list(again.cell("a").results) == ["loud", "short", "answered"]
    assert [cell.status for cell in again] == ["pass", "fail", "error", "pass"]
    assert sorted(calls) == ["HI", "YES", "quiet"]


def test_evaluators_are_replaced(run):
    again = ew.re_evaluate(run, lambda output: True, replace=True)
    assert [cell.status for cell in again] == ["pass", "pass", "error", "pass"]
    assert list(again.cell("a").results) == ["lambda"]


def test_the_runs_own_evaluators_judge_again(run):
    assert [cell.status for cell in ew.re_evaluate(run)] == [cell.status for cell in run]


def test_a_run_in_memory_is_judged_again():
    run = evaluate({"a": "x"}, agents.upper)
    assert ew.re_evaluate(run, lambda output: False).cell("a").status == "fail"


def test_an_evaluator_that_cannot_be_used_leaves_the_run_as_it_was(run):
    with pytest.raises(ew.InputError, match="did you mean"):
        ew.re_evaluate(run, "contans_text")
    assert len(run) == 4


def test_judging_again_below_a_running_loop(run):
    async def main():
        return ew.re_evaluate(run, "answered")

    assert "answered" in asyncio.run(main()).cell("a").results


def test_threads_may_use_one_run(run):
    found = []
    threads = [threading.Thread(target=lambda: found.append(len(list(run)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [4] * 4


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
