"""Sessions of pytest in processes of their own, with the plug-in: what they say, and the run that they leave behind."""

import pytest

from evalwright.cli import main
from evalwright.model.result import EvaluationResult
from evalwright.model.trace import Trace

pytest_plugins = ["pytester"]

RERUNS = """
from pathlib import Path
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):
    for attempt in range(2):
        item._initrequest()
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        again = attempt == 0 and any(report.failed for report in reports)
        for report in reports:
            report.outcome = "rerun" if again and report.failed else report.outcome
            item.ihook.pytest_runtest_logreport(report=report)
        if not again:
            return True

def pytest_report_teststatus(report):
    return ("rerun", "R", "RERUN") if report.outcome == "rerun" else None
"""
"""Runs a test that failed once more, as pytest-rerunfailures does."""


def re_evaluate(run):
    with pytest.raises(SystemExit) as ended:
        main(["re-evaluate", str(run), "--quiet"])
    return ended.value.code


def test_every_input_of_every_test_is_a_cell_of_one_run(session):
    session.run(a="def test_one(): passing('hi')\n", b="def test_two(): passing('hi', 'oh')\n")
    expected = {"test_a.py::test_one": "pass", "test_b.py::test_two": "pass", "test_b.py::test_two/2": "fail"}
    assert session.verdicts() == expected


def test_the_summary_tells_the_pass_rate_with_its_interval(session):
    told = session.run(a="def test_two(): passing('hi', 'oh')\n")
    told.stdout.re_match_lines([r".*50\.0% +9\.5–90\.5%"])


@pytest.mark.parametrize(("word", "of_failed"), [("hi", ""), ("oh", " --failed")])
def test_the_summary_names_the_command_that_shows_what_did_not_pass_or_all(session, word, of_failed):
    told = session.run(a=f"def test_word(): passing({word!r})\n")
    told.stdout.fnmatch_lines([f"Next: evalwright inspect runs/{session.runs()[0].name}{of_failed}"])


def test_a_failed_test_shows_the_scores_and_only_its_own_lines(session):
    told = session.run(a="def test_two(): passing('hi', 'oh')\n")
    told.stdout.fnmatch_lines(["E *Fail: 1/2 inputs*", "E *input 2, 'oh'", "E * is_hi 0.00: only hi will do"])
    told.stdout.fnmatch_lines(["FAILED test_a.py::test_two - Fail: 1/2 inputs*"])
    assert "runners.py" not in told.stdout.str()


def test_a_judge_that_could_not_judge_makes_an_error_and_no_failure(session):
    told = session.run(a="def test_judge(): passing('hi', by=[judge])\n")
    told.assert_outcomes(errors=1)
    told.stdout.fnmatch_lines(["E * judge error: no route to host"])
    assert session.verdicts() == {"test_a.py::test_judge": "error"}


def test_a_test_with_scores_too_low_and_errors_is_a_failure(session):
    session.run(a="def test_both(): passing('oh', by=[judge, is_hi])\n").assert_outcomes(failed=1)


def test_only_the_last_attempt_at_a_test_is_in_the_run(session):
    session.files({"conftest.py": RERUNS})
    body = """
attempts = []

def test_flaky():
    passing("hi")
    attempts.append("one more")
    assert len(attempts) == 2
"""
    session.run(a=body).assert_outcomes(passed=1)
    assert session.verdicts() == {"test_a.py::test_flaky": "pass"}


def test_an_attempt_that_could_not_be_judged_is_no_error_if_the_next_one_passes(session):
    session.files({"conftest.py": RERUNS})
    body = """
judges = [judge, is_hi]

def test_flaky(): passing("hi", by=[judges.pop(0)])
"""
    session.run(a=body).assert_outcomes(passed=1, errors=0)


def test_what_the_application_raises_is_an_error_of_its_input_alone(session):
    body = """
@pixie.observe(name="app")
def app(text):
    return text if text == "hi" else 1 / 0

def test_app():
    asyncio.run(pixie.assert_pass(app, ["oh", "hi"], [is_hi]))
"""
    session.run(a=body).assert_outcomes(errors=1)
    assert session.verdicts() == {"test_a.py::test_app": "error", "test_a.py::test_app/2": "pass"}


OWN_LINES_ONLY = {
    "an evaluator that raises": ("pixie.assert_pass(echo, ['hi'], [lambda output: 1 / 0])", "E *ZeroDivisionError*"),
    "lists of different length": ("pixie.assert_pass(echo, ['hi'], [is_hi], evaluables=[])", "E *0 evaluables for 1*"),
    "no dataset": ("pixie.assert_dataset_pass(echo, 'none', [is_hi])", "E *Dataset not found: 'none'"),
    "a mistake": ("evalwright.aevaluate(['hi'], echo, evaluators='contans', out=None)", "E *unknown evaluator*"),
}


@pytest.mark.parametrize("call", OWN_LINES_ONLY)
def test_a_traceback_has_the_lines_of_the_user_alone(session, call):
    code, message = OWN_LINES_ONLY[call]
    told = session.run(a=f"import evalwright\n\ndef test_it():\n    asyncio.run({code})\n")
    told.stdout.fnmatch_lines([">       asyncio.run(*", message])
    assert [line for line in told.outlines if line.startswith(("/", ".."))] == []


def test_a_full_traceback_is_shown_on_request(session):
    told = session.run("--full-trace", a="def test_it(): passing('hi', by=[lambda output: 1 / 0])\n")
    assert [line for line in told.outlines if "runners.py" in line]


def test_steps_and_times_of_the_application_are_kept(session):
    session.run(a="def test_one(): passing('hi')\n")
    [trace] = session.records(Trace)
    assert ([span.name for span in trace.spans], trace.output.final_answer) == (["app"], "hi")


def test_evaluations_of_one_thing_are_one_cell_of_an_asynchronous_test(session):
    body = """
@pytest.mark.anyio
async def test_evaluate():
    one = pixie.Evaluable(eval_input="q", eval_output="hi", expectation="hi")
    assert (await pixie.evaluate(pixie.ExactMatch(), one)).score == 1
    assert (await pixie.evaluate(is_hi, one)).score == 1
"""
    session.run(a=body).assert_outcomes(passed=1)
    assert [row.evaluator for row in session.records(EvaluationResult)] == ["ExactMatch", "is_hi"]
    assert session.records(Trace)[0].latency_ms is None


def test_a_test_that_fails_though_its_cells_passed_is_a_cell_too(session):
    session.run(a="def test_more():\n    passing('hi')\n    assert 'hi' == 'ho'\n")
    assert session.verdicts() == {"test_a.py::test_more": "pass", "test_a.py::test_more/2": "fail"}


def test_tests_that_evaluate_nothing_leave_nothing_behind(session):
    session.run(a="def test_plain(): pass\n").stdout.no_fnmatch_line("*= evalwright =*")
    assert not (session.pytester.path / "runs").exists()


def test_nothing_is_recorded_without_leave(session):
    told = session.run("--evalwright-no-record", a="def test_two(): passing('hi', 'oh')\n")
    told.assert_outcomes(failed=1)
    assert session.runs() == []


@pytest.mark.slow("two processes of pytest")
@pytest.mark.parametrize(("given", "said"), [("taken/runs", "found a file: "), ("x" * 300, "File name too long: xxx")])
def test_a_place_where_no_run_can_be_is_refused_before_any_test(session, given, said):
    (session.pytester.path / "taken").touch()
    result = session.run("--evalwright-runs", given, a="def test(): passing('hi')\n")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --evalwright-runs: *{said}*"])


@pytest.mark.parametrize(("options", "ini"), [(["--evalwright-runs", "kept"], ""), ([], "evalwright_runs = kept")])
def test_the_folder_of_runs_is_chosen(session, options, ini):
    session.files({"pytest.ini": f"[pytest]\n{ini}\n"})
    session.run(*options, a="def test_one(): passing('hi')\n")
    assert session.verdicts("kept") == {"test_a.py::test_one": "pass"}


def told_of(session):
    def told(row):
        return row.passed, row.score, row.reason, row.detail, row.error and (row.error.type, row.error.message)

    return {row.evaluator: told(row) for row in session.records(EvaluationResult)}


@pytest.mark.cold
@pytest.mark.slow("three processes of pytest")
def test_several_processes_make_one_run(session):
    body = "@pytest.mark.parametrize('n', range(6))\ndef test_many(n): passing('hi', 'oh')\n"
    session.run("-n", "2", a=body).assert_outcomes(failed=6)
    statuses = list(session.verdicts().values())
    assert (statuses.count("pass"), statuses.count("fail")) == (6, 6)


@pytest.mark.slow("three processes of pytest")
def test_a_killed_process_takes_no_cell_with_it(session):
    body = """
@pixie.observe(name="app")
def app(text):
    if text == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    return text

def test_before(): passing("hi")
def test_killed(): asyncio.run(pixie.assert_pass(app, ["die"], [is_hi]))
def test_after(): passing("hi")
"""
    session.run("-n", "1", a=body).assert_outcomes(passed=2, failed=1)
    names = {"before": "pass", "killed": "error", "after": "pass"}
    assert session.verdicts() == {f"test_a.py::test_{name}": status for name, status in names.items()}


@pytest.mark.slow("two processes of pytest")
def test_the_cells_of_a_killed_session_are_gathered_by_the_next(session):
    body = "def test_one(): passing('hi')\ndef test_two(): os.kill(os.getpid(), signal.SIGKILL)\n"
    session.run(a=body)
    told = session.run(
        "--deselect", "test_a.py::test_one", "--deselect", "test_a.py::test_two", b="def test_b(): pass\n"
    )
    told.stdout.fnmatch_lines(["gathered from a session that ended early"])
    assert session.verdicts() == {"test_a.py::test_one": "pass"}


def test_secrets_of_the_environment_do_not_reach_the_disk(session, monkeypatch):
    monkeypatch.setenv("SHOP_API_KEY", "sk-verysecret123456")
    session.run(a="def test_key(): passing('hi sk-verysecret123456')\n")
    written = [path for path in session.runs()[0].rglob("*") if path.is_file()]
    assert [path.name for path in written if b"sk-verysecret123456" in path.read_bytes()] == []


@pytest.mark.slow("three commands")
def test_the_run_is_judged_again_by_evaluators_that_a_file_or_a_name_leads_to(session):
    session.run(a="def test_two(): passing('hi', 'oh', by=[is_hi, pixie.ValidJSON(schema={'type': 'string'})])\n")
    re_evaluate(session.runs()[0])
    assert {row.evaluator: row.passed for row in session.records(EvaluationResult)}["ValidJSON"] is False


@pytest.mark.slow("two commands")
def test_what_evaluators_made_in_tests_said_stays_when_others_judge_again(session):
    body = """
def test_own():
    def half(evaluable): return pixie.Evaluation(0.5, "by half", {"of": 2})
    def broken(evaluable): raise KeyError("lost")
    with pytest.raises(KeyError):
        passing("hi", by=[is_hi, half, broken, lambda evaluable: pixie.Evaluation(0.0, "no")])
"""
    session.run(a=body)
    before = told_of(session)
    (session.pytester.path / "test_a.py").write_text("def is_hi(evaluable): return 0.25\n")
    re_evaluate(session.runs()[0])
    changed = {**before, "is_hi": (False, 0.25, "score 0.25", {}, None)}
    assert told_of(session) == changed


@pytest.mark.slow("three processes of pytest")
@pytest.mark.cold
def test_the_pixie_module_is_served_to_every_process(session):
    session.files({"test_pixie.py": "import pixie\n\ndef test_served(): assert pixie.__name__ == 'evalwright.pixie'\n"})
    words = ("-m", "pytest", "-p", "evalwright.pytest_plugin", "-p", "xdist.plugin", "-n", "1")
    told = session.process("-m", "evalwright.pixie", *words)
    told.assert_outcomes(passed=1, warnings=0)


@pytest.mark.cold
def test_starting_pytest_imports_nothing_costly(session):
    body = """
def test_modules():
    import sys
    assert [name for name in ("pydantic", "msgspec", "httpx", "yaml") if name in sys.modules] == []
"""
    (session.pytester.path / "test_a.py").write_text(body)
    session.run().assert_outcomes(passed=1)
