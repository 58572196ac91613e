"""`@pytest.mark.evalwright(dataset=...)`: a test for each case of an eval file."""

import json

import pytest

from evalwright.model.result import EvaluationResult
from evalwright.model.trace import Trace

pytest_plugins = ["pytester"]

SUITE = {
    "agent.py": """
def run(case, variant):
    return {"final_answer": case["input"]["say"]}
""",
    "cases.jsonl": """{"id": "kind", "input": {"say": "thanks a lot"}}
{"id": "rude", "input": {"say": "no"}}
""",
    "eval.yaml": """
eval: {name: shop}
dataset: {type: jsonl, path: cases.jsonl}
systems:
  - {name: v, adapter: python_function, target: "agent:run"}
evaluators:
  - {name: polite, type: contains_text, config: {all_of: [thanks]}}
output: {type: local_files, path: elsewhere}
""",
}

MARKED = "@pytest.mark.evalwright(dataset='eval.yaml')\n"

ENTRIES = {
    "app.py": """
import pixie

def answer(given):
    with pixie.start_observation(input=given, name="answer"):
        profile = pixie.wrap({"tier": "none"}, purpose="input", name="profile")
        return f"Hello {given['name']}, {profile['tier']}!"
""",
    "entries.json": json.dumps(
        {
            "runnable": "app.py:answer",
            "evaluators": ["ExactMatch"],
            "entries": [
                {
                    "description": "a greeting",
                    "entry_kwargs": {"name": "Ada"},
                    "eval_input": [{"name": "profile", "value": {"tier": "gold"}}],
                    "expectation": "Hello Ada, gold!",
                }
            ],
        }
    ),
}


@pytest.fixture
def shop(session):
    session.files(SUITE)
    return session


def test_each_case_is_a_test_with_the_id_of_the_case(shop):
    told = shop.run("-v", a=MARKED + "def test_answer(case): case.check(case.input['say'])\n")
    told.stdout.fnmatch_lines(["*::test_answer[[]kind] PASSED*", "*::test_answer[[]rude] FAILED*"])
    assert shop.verdicts() == {"test_a.py::test_answer[kind]": "pass", "test_a.py::test_answer[rude]": "fail"}


def test_a_case_that_did_not_pass_names_its_checks_and_the_answer(shop):
    told = shop.run("-k", "rude", a=MARKED + "def test_answer(case): case.check('no')\n")
    told.stdout.fnmatch_lines(
        ["E *CaseFailed: polite fail 0.00: missing: 'thanks'*", "E * case rude: fail", "E * answer: no"]
    )
    told.stdout.no_fnmatch_line("*suites.py:*")


def test_a_test_without_a_case_runs_the_system_of_the_file(shop):
    told = shop.run(a=MARKED + "def test_system(): pass\n")
    told.stdout.fnmatch_lines(["FAILED test_a.py::test_system[[]rude] - polite fail 0.00: missing: 'thanks'*"])
    assert shop.verdicts() == {"test_a.py::test_system[kind]": "pass", "test_a.py::test_system[rude]": "fail"}


def test_a_system_that_raises_is_an_error(shop):
    shop.files({"agent.py": "def run(case, variant): raise RuntimeError('down')\n"})
    told = shop.run("-k", "kind", a=MARKED + "def test_system(): pass\n")
    told.assert_outcomes(errors=1)
    told.stdout.fnmatch_lines(["ERROR test_a.py::test_system[[]kind] - no answer: adapter_error: RuntimeError*"])


@pytest.mark.slow("two processes of pytest")
def test_a_check_that_could_not_judge_is_an_error_and_no_failure(shop):
    needs_files = "  - {name: builds, type: command, config: {cmd: [make]}}\noutput:"
    shop.files({"eval.yaml": SUITE["eval.yaml"].replace("output:", needs_files)})
    told = shop.run(a=MARKED + "def test_answer(case): case.check(case.input['say'])\n")
    told.assert_outcomes(errors=2)
    shop.run("--evalwright-no-record").assert_outcomes(errors=2)
    told.stdout.fnmatch_lines(["E *CaseErrored: builds error: missing_artifact: *", "E * case kind: error"])


def test_every_variant_and_trial_of_a_case_is_a_cell(shop):
    shop.files({"eval.yaml": SUITE["eval.yaml"] + "run: {trials: 2}\n"})
    shop.run("-k", "kind", a=MARKED + "def test_system(): pass\n").assert_outcomes(passed=1)
    assert list(shop.verdicts()) == ["test_a.py::test_system[kind]", "test_a.py::test_system[kind]/2"]


def test_asynchronous_tests_check_and_run_without_blocking(shop):
    body = """
@pytest.mark.anyio
async def test_answer(case):
    ticks = asyncio.create_task(asyncio.sleep(0))
    await case.acheck("thanks")
    assert ticks.done()
    await case.arun()
"""
    shop.run("-k", "kind", a=MARKED + body.lstrip()).assert_outcomes(passed=1)
    assert [row.evaluator for row in shop.records(EvaluationResult)] == ["polite", "polite"]


def test_a_synchronous_check_works_inside_an_event_loop(shop):
    body = "@pytest.mark.anyio\nasync def test_answer(case): case.check('thanks')\n"
    shop.run(a=MARKED + body).assert_outcomes(passed=2)


def test_what_a_python_target_returns_is_judged_as_such(shop):
    body = "def test_answer(case): case.check({'final_answer': 'thanks', 'tool_calls': [{'name': 'look_up'}]})\n"
    shop.run("-k", "kind", a=MARKED + body).assert_outcomes(passed=1)
    [trace] = shop.records(Trace)
    assert (trace.output.final_answer, [call.name for call in trace.tool_calls]) == ("thanks", ["look_up"])


def test_a_test_that_only_asserts_is_a_cell_judged_by_how_it_ends(shop):
    shop.run(a=MARKED + "def test_own(case): assert case.input['say'] != 'no'\n").assert_outcomes(passed=1, failed=1)
    assert shop.verdicts() == {"test_a.py::test_own[kind]": "pass", "test_a.py::test_own[rude]": "fail"}


def test_a_test_of_a_case_that_breaks_or_is_skipped_is_recorded_so(shop):
    body = "def test_own(case): pytest.skip('later') if case.id == 'kind' else 1 / 0\n"
    shop.run(a=MARKED + body)
    assert shop.verdicts() == {"test_a.py::test_own[kind]": "skip", "test_a.py::test_own[rude]": "error"}


@pytest.mark.slow("three processes of pytest")
def test_a_case_that_the_process_dies_at_is_an_error(shop):
    body = "def test_dies(case): case.id == 'rude' or os.kill(os.getpid(), signal.SIGKILL)\n"
    shop.run("-n", "1", a=MARKED + body)
    assert shop.verdicts() == {"test_a.py::test_dies[kind]": "error", "test_a.py::test_dies[rude]": "pass"}


def test_an_instrumented_application_is_given_the_inputs_of_its_entry(session):
    session.files(ENTRIES)
    session.run(a="@pytest.mark.evalwright(dataset='entries.json')\ndef test_app(): pass\n").assert_outcomes(passed=1)
    [trace] = session.records(Trace)
    assert [span.name for span in trace.spans] == ["answer"]


def test_an_output_is_judged_by_the_evaluators_of_an_entry(session):
    session.files(ENTRIES)
    body = "@pytest.mark.evalwright('entries.json')\ndef test_app(case): case.check(case.extra['expectation'])\n"
    session.run(a=body).assert_outcomes(passed=1)
    assert [row.evaluator for row in session.records(EvaluationResult) if not row.skipped] == ["ExactMatch"]


def test_the_mistakes_of_a_file_are_told_without_a_traceback(shop):
    shop.files({"eval.yaml": SUITE["eval.yaml"].replace("contains_text", "contains_txet")})
    told = shop.run(a=MARKED + "def test_answer(case): pass\n")
    told.assert_outcomes(errors=1)
    told.stdout.fnmatch_lines(["*eval.yaml:*contains_txet*did you mean*"])
    told.stdout.no_fnmatch_line("*load_suite*")


def test_a_wrong_marker_is_told(shop):
    wrong = {"a": "", "b": "datset='eval.yaml'", "c": "'a', 'b'", "d": "dataset=3"}
    marked = {
        name: f"@pytest.mark.evalwright({arguments})\ndef test_answer(case): pass\n"
        for name, arguments in wrong.items()
    }
    told = shop.run(**marked)
    told.assert_outcomes(errors=len(wrong))
    told.stdout.fnmatch_lines([f"*test_{name}.py::test_answer: evalwright(...): *expected*" for name in wrong])
    told.stdout.fnmatch_lines(["*unknown argument 'datset'; did you mean \"dataset\"?*"])
    assert told.ret == pytest.ExitCode.INTERRUPTED


def test_a_marked_method_of_unittest_is_refused_rather_than_passed(shop):
    body = "import unittest\n\nclass TestIt(unittest.TestCase):\n    @pytest.mark.evalwright('eval.yaml')\n"
    told = shop.run(a=body + "    def test_it(self): pass\n")
    told.stderr.fnmatch_lines(["*test_it: evalwright marks test functions*"])
    assert told.ret == pytest.ExitCode.USAGE_ERROR


def test_secrets_of_the_suite_reach_neither_disk_nor_terminal(shop, monkeypatch):
    monkeypatch.setenv("SHOP_TOKEN", "tok-verysecret-98765")
    told = shop.run("-k", "rude", "--tb=line", a=MARKED + "def test_it(case): case.check(os.environ['SHOP_TOKEN'])\n")
    assert "tok-verysecret-98765" not in told.stdout.str()


@pytest.mark.slow("two processes of pytest for each")
@pytest.mark.parametrize("options", [[], ["-n", "1"]])
def test_what_cannot_be_written_is_told_and_no_test_ends_differently(shop, options):
    (shop.pytester.path / "runs").write_text("a file")
    told = shop.run(*options, a=MARKED + "def test_answer(case): case.check('thanks')\n")
    told.assert_outcomes(passed=2)
    told.stdout.fnmatch_lines(["not recorded: test_a.py::test_answer[[]kind]: *"])
