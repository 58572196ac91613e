"""Runs from Python, several at the same time in one process."""

import asyncio
import json
import os
import signal
import sys
import threading
from collections import Counter
from contextlib import closing
from functools import partial
from pathlib import Path

import msgspec
import pytest

import evalwright as ew
from evalwright import built_in, registry
from evalwright.errors import InputError
from evalwright.letta import run_suite as run_letta
from evalwright.llm.choices import ModelChoices
from evalwright.model.case import EvalCase
from evalwright.model.plan import EvaluatorSpec, Price, RunSettings, Variant
from evalwright.model.result import EvaluationResult
from evalwright.model.suite import Suite
from evalwright.model.trace import Trace
from evalwright.run.options import RunOptions
from evalwright.run.re_evaluation import re_evaluate
from evalwright.run.resumption import resume_here
from evalwright.run.start import run_suite, run_suite_here
from evalwright.run.stored_run import open_run
from session import shop

JUDGE = EvaluatorSpec("judge", "llm_judge", {"model": "python:session.shop:judge", "nl_assertions": ["is polite"]})


@pytest.fixture(autouse=True)
def nothing_stays(monkeypatch, tmp_path_factory):
    """The process is afterwards what it was."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setattr(shop, "together", None)
    before = process()
    yield
    assert process() == before


def process():
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)
    functions = os._exit, os.close, os.closerange
    variables = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    return sys.stdout, functions, [*map(signal.getsignal, numbers)], signal.getitimer(signal.ITIMER_REAL), variables


def suite(folder, inputs, target="answer", evaluators=(JUDGE,), **settings):
    return Suite(
        name="shop",
        dialect="evalh",
        source=Path(__file__).parents[1] / "eval.yaml",
        cases=[EvalCase(id=f"c{i}", input=value) for i, value in enumerate(inputs)],
        variants=[Variant("main", "python_function", {"target": f"session.shop:{target}"}, timeout_seconds=60)],
        evaluators=list(evaluators),
        run=RunSettings(**settings),
        prices={"python:session.shop:judge": Price(1e9, 1e9)},  # one call costs more than any limit here
        out=folder / "runs",
    )


def records(outcome, kind):
    reader, _ = open_run(outcome.run_dir)
    with closing(reader):
        return list(reader.traces(Trace) if kind is Trace else reader.results(EvaluationResult))


def at_once(*calls):
    """What calls give, each in a thread of its own."""
    found = {}
    threads = [
        threading.Thread(target=lambda n=n, call=call: found.update({n: call()})) for n, call in enumerate(calls)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [found[n] for n in range(len(calls))]


@pytest.fixture(autouse=True, scope="module")
def loaded(tmp_path_factory):
    """Everything that runs import is: pytest parses modules that it sees for the first time, and Python 3.11 cannot
    parse in several threads at once."""
    folder = tmp_path_factory.mktemp("first")
    with pytest.MonkeyPatch.context() as changed:
        changed.setenv("XDG_CACHE_HOME", str(folder))
        for budget in (1.0, None):
            options = RunOptions(models=ModelChoices(budget_usd=budget, no_cache=True))
            [first] = at_once(lambda options=options: run_suite(suite(folder, ["first", "exit"]), options))
        re_evaluate(first.run_dir)


def test_four_runs_at_once_keep_their_budgets_prints_and_exits_apart(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(shop, "together", threading.Barrier(4))
    # without the cache, in which one run would find a reply to the same question of another
    limited = RunOptions(models=ModelChoices(budget_usd=1.0, no_cache=True))
    free = RunOptions(models=ModelChoices(no_cache=True))
    asked = [(f"run {n}", limited if n % 2 else free) for n in range(4)]
    outcomes = at_once(
        *(
            lambda n=n, said=said, options=options: run_suite(suite(tmp_path / str(n), [said, "exit"]), options)
            for n, (said, options) in enumerate(asked)
        )
    )
    for n, outcome in enumerate(outcomes):
        answered, ended = sorted(records(outcome, Trace), key=lambda trace: trace.case_id)
        assert answered.output.final_answer == f"run {n}"
        assert "isolation: process" in ended.error.message
        errors = {row.error.type if row.error else None for row in records(outcome, EvaluationResult)}
        assert (None in errors) == (n % 2 == 0), errors
    assert Counter(capsys.readouterr().out.split("\n")) == Counter([*(f"run {n}" for n in range(4)), ""])


def test_four_threads_may_evaluate(capsys):
    def evaluated(n):
        judge = ew.Judge("python:session.shop:judge", "The reply is polite.", name="polite")
        say = "run " + str(n)
        try:
            run = ew.evaluate([say], printed, evaluators=judge, budget_usd=1.0 if n % 2 else None, out=None)
        except InputError as refused:
            return str(refused)
        return run.cell("1").output, run.cell("1").results["polite"].error

    even, odd, *others = at_once(*(partial(evaluated, n) for n in range(4)))
    assert (even, others[0]) == (("run 0", None), ("run 2", None))
    assert (
        "the budget cannot be enforced" in odd
    )  # no price is known for the judge: only the runs with a limit are refused
    assert others[1] == odd
    assert Counter(capsys.readouterr().out.split("\n")) == Counter(["run 0", "run 2", ""])


def printed(text):
    print(text)
    return text


def test_two_letta_suites_are_gathered(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "agent.py").write_text(
            f"import os\ndef answers(message, ctx):\n    print({name!r})\n"
            f"    return os._exit(1) if message == 'exit' else {name!r}\n"
        )
        (tmp_path / name / "data.jsonl").write_text(
            f'{{"id": 1, "input": "hello", "ground_truth": "{name}"}}\n'
            '{"id": 2, "input": "exit", "ground_truth": "x"}\n'
        )
        document = {
            "name": name,
            "dataset": "data.jsonl",
            "target": {"kind": "letta_agent", "agent_id": "a", "model_handles": ["m"], "backend": "agent.py:answers"},
            "graders": {"right": {"kind": "tool", "function": "contains"}},
            "gate": {"kind": "simple", "metric_key": "right", "op": "gte", "value": 0.5},
        }
        (tmp_path / name / "suite.yaml").write_text(json.dumps(document))

    async def both():
        return await asyncio.gather(
            *(run_letta(tmp_path / n / "suite.yaml", output_path=tmp_path / n / "out") for n in ("one", "two"))
        )

    for result in asyncio.run(both()):
        first, second = result.results
        assert (first["grade"]["score"], "isolation: process" in json.dumps(second)) == (1.0, True)
    assert Counter(capsys.readouterr().out.split()) == Counter(["one", "one", "two", "two"])


@pytest.fixture
def own(monkeypatch):
    """Evaluators of the tests by name."""
    for kind, name in (("blocking_in_tests", "Blocking"), ("counting_in_tests", "Counting")):
        monkeypatch.setitem(built_in.KINDS["evaluators"], kind, f"session.shop:{name}")
    registry.load.cache_clear()
    shop.blocked.clear()
    yield
    shop.blocked.set()
    registry.load.cache_clear()


def test_an_evaluator_that_blocks_is_left_behind_at_its_limit(tmp_path, own):
    checks = [EvaluatorSpec("blocks", "blocking_in_tests"), EvaluatorSpec("fine", "contains_text", {"all_of": ["a"]})]
    blocked = suite(tmp_path, ["a", "a"], evaluators=checks, evaluator_timeout_seconds=1)
    rows = records(run_suite(blocked), EvaluationResult)
    assert Counter((row.evaluator, row.passed, row.error and row.error.type) for row in rows) == {
        ("blocks", False, "timeout"): 2,
        ("fine", True, None): 2,
    }


def test_evaluators_that_do_not_wait_run_one_after_another(tmp_path, own):
    checks = [EvaluatorSpec(f"n{n}", "counting_in_tests") for n in range(3)]
    rows = records(run_suite(suite(tmp_path, ["a"] * 4, evaluators=checks, max_concurrency=4)), EvaluationResult)
    assert [row.passed for row in rows] == [True] * 12


def test_a_run_may_work_in_the_callers_event_loop_beside_another(tmp_path):
    async def both():
        runs = (run_suite_here(suite(tmp_path / n, ["a"] * 3, "answer_in_loop")) for n in "ab")
        return [*await asyncio.gather(*runs), str(id(asyncio.get_running_loop()))]

    one, two, loop = asyncio.run(both())
    answers = [trace.output.final_answer for outcome in (one, two) for trace in records(outcome, Trace)]
    assert answers == [loop] * 6
    assert (one.exit_code, two.exit_code) == (0, 0)


def test_a_run_that_is_cancelled_can_be_resumed(tmp_path, monkeypatch):
    async def cancelled():
        task = asyncio.create_task(run_suite_here(suite(tmp_path, ["a", "hang"], "answer_in_loop", max_concurrency=1)))
        while not any((tmp_path / "runs").glob("*/verdicts.jsonl")) or not verdicts(tmp_path):
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return [one for one in asyncio.all_tasks() if one is not asyncio.current_task()]

    assert asyncio.run(cancelled()) == []
    assert verdicts(tmp_path) == 1
    (run,) = tmp_path.glob("runs/*")
    monkeypatch.setattr(shop, "answer_in_loop", shop.answer)
    outcome = asyncio.run(resume_here(run))
    assert (outcome.interrupted, outcome.summary.cells_missing, verdicts(tmp_path)) == (False, 0, 2)
    assert asyncio.run(resume_here(run)).notes == ["nothing to do: every cell is finished"]


def verdicts(folder):
    (file,) = folder.glob("runs/*/verdicts.jsonl")
    return len(file.read_bytes().splitlines())


def test_stored_traces_are_re_evaluated_beside_a_run(tmp_path):
    first = run_suite(suite(tmp_path / "first", ["a", "b"]))
    again, other = at_once(lambda: re_evaluate(first.run_dir), lambda: run_suite(suite(tmp_path / "other", ["c"])))
    assert (again.exit_code, other.exit_code) == (0, 0)


def test_a_run_changes_nothing_of_the_process_while_it_works(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(shop, "look", lambda: seen.append(process()))
    before = process()
    run_suite(suite(tmp_path, ["a"]))
    (found,) = seen
    # os._exit is replaced by one that asks for whom it is
    assert (found[0], *found[2:]) == (before[0], *before[2:])


def test_a_process_that_is_not_ours_is_not_forked(tmp_path, own):
    checks = [EvaluatorSpec("counts", "counting_in_tests")]
    outcome = run_suite(suite(tmp_path, ["a"] * 4, evaluators=checks))
    shop.Counting.evaluated = 0
    re_evaluate(outcome.run_dir)
    assert shop.Counting.evaluated == 4


@pytest.mark.parametrize("isolation", ["none", "process"])
def test_the_suites_variables_reach_child_processes_only(tmp_path, isolation):
    told = suite(tmp_path, ["SESSION_VARIABLE"], "variable", evaluators=[])
    told.variants = [msgspec.structs.replace(told.variants[0], isolation=isolation)]
    told.environment = {"SESSION_VARIABLE": "of the suite"}
    told.evaluators = [EvaluatorSpec("any", "contains_text", {"all_of": ["a"]})]
    (trace,) = records(run_suite(told), Trace)
    assert trace.output.final_answer == ("of the suite" if isolation == "process" else "absent")
