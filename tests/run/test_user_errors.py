"""Errors of the user's code say where in it they were raised; how we came to call it is left out."""

import re

import pytest

from evalwright.errors import InputError
from evalwright.model.plan import EvaluatorSpec, Variant
from evalwright.model.result import EvaluationResult
from evalwright.model.trace import Trace
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run
from evalwright.targets.build import build_target
from run.suites import suite

FIRST_FILE = re.compile(r'File "([^"]+)", line')


def records(outcome, kind):
    reader, _ = open_run(outcome.run_dir)
    return list(reader.traces(Trace) if kind is Trace else reader.results(EvaluationResult))


@pytest.mark.parametrize("isolation", ["none", "process"])
def test_a_system_s_error_has_its_line_and_its_stack_begins_there(tmp_path, isolation):
    system = Variant("main", "python_function", {"target": "agents:nested"}, isolation=isolation)
    [trace] = records(run_suite(suite(tmp_path, ["x"], variants=[system])), Trace)
    assert re.fullmatch(r"KeyError: 'missing' in agents\.py:\d+", trace.error.message)
    assert FIRST_FILE.findall(trace.error.stack)[0].endswith("agents.py")


def test_an_evaluator_s_error_has_its_line_and_its_stack_begins_there(tmp_path):
    check = EvaluatorSpec("own", "python_function", {"function": "agents:check"})
    [row] = records(run_suite(suite(tmp_path, ["x"], evaluators=[check])), EvaluationResult)
    assert row.error.type == "KeyError"
    assert re.search(r"'missing' in agents\.py:\d+$", row.error.message)
    assert FIRST_FILE.findall(row.error.stack)[0].endswith("agents.py")


def test_an_error_of_set_up_has_its_line(tmp_path):
    system = Variant("main", "python_function", {"target": "agents:Fails", "init_kwargs": {}})
    with pytest.raises(InputError, match=r"'main' cannot be set up: KeyError: 'missing' in agents\.py:\d+"):
        run_suite(suite(tmp_path, ["x"], variants=[system]))


def test_an_error_of_an_import_has_its_line(tmp_path, monkeypatch):
    (tmp_path / "fails_to_import.py").write_text("def later():\n    return 1 / 0\n\n\nlater()\n")
    with pytest.raises(InputError, match=r"ZeroDivisionError: division by zero in fails_to_import\.py:2"):
        build_target(Variant("main", "python_function", {"target": "fails_to_import:later"}), [str(tmp_path)])


@pytest.mark.parametrize("function", ["ends_a_generator", "ends_a_generator_later"])
def test_a_system_that_raises_what_ends_generators_errs_and_the_run_goes_on(tmp_path, function):
    outcome = run_suite(suite(tmp_path, ["x"] * 3, f"agents:{function}", max_concurrency=1))
    assert outcome.exit_code == 3
    errors = [trace.error for trace in records(outcome, Trace)]
    assert [error and error.message.startswith("GeneratorExit: enough") for error in errors] == [None, True, None]


def test_a_system_that_cancels_itself_errs_and_the_run_goes_on(tmp_path):
    outcome = run_suite(suite(tmp_path, ["x"] * 3, "agents:cancels_itself", max_concurrency=1))
    assert (outcome.exit_code, outcome.summary.cells_missing) == (3, 0)
    errors = {trace.case_id: trace.error for trace in records(outcome, Trace)}
    assert [case for case, error in errors.items() if error] == ["c1"]
    assert re.fullmatch(r"CancelledError in agents\.py:\d+", errors["c1"].message)
