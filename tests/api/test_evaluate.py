"""What `evaluate` does with cells: how it runs, reports, stores and stops them."""

import asyncio
import contextlib
import json
import queue
import signal
import threading

import pytest

import evalwright as ew
from api import agents
from api.evaluations import CASES, evaluate, passes


def test_trials_and_variants_make_cells():
    run = evaluate(system={"a": agents.upper, "b": lambda text, trial: f"{text}{trial}"}, trials=2)
    assert [(cell.case_id, cell.variant, cell.trial) for cell in run][:5] == [
        ("1", "a", 0), ("1", "a", 1), ("1", "b", 0), ("1", "b", 1), ("2", "a", 0),
    ]  # fmt: skip
    assert run.cell("2", "b", 1).output == "two1"
    assert len(run) == 12


def test_tags_limit_and_seed_choose_cases():
    cases = [{"id": str(i), "input": "x", "tags": ["even" if i % 2 == 0 else "odd"]} for i in range(20)]
    chosen = [cell.case.id for cell in evaluate(cases, tags=["odd"], limit=3)]
    drawn = [cell.case.id for cell in evaluate(cases, tags=["odd"], limit=3, seed=1)]
    assert chosen == ["1", "3", "5"]
    assert drawn == [cell.case.id for cell in evaluate(cases, tags=["odd"], limit=3, seed=1)] != chosen
    assert all(int(name) % 2 for name in drawn)


def test_on_cell_is_called_once_for_each_cell_in_the_callers_thread():
    seen = []
    run = evaluate(on_cell=lambda cell: seen.append((cell.case_id, cell.status, threading.get_ident())))
    assert sorted(seen) == [(cell.case_id, "pass", threading.get_ident()) for cell in run]


def test_on_cell_of_aevaluate_is_called_in_the_loop():
    async def main():
        here, seen = asyncio.current_task().get_loop(), []
        await ew.aevaluate(
            CASES,
            agents.upper,
            evaluators=passes,
            out=None,
            on_cell=lambda _: seen.append(asyncio.get_running_loop() is here),
        )
        return seen

    assert asyncio.run(main()) == [True] * 3


@pytest.mark.parametrize("system", [agents.upper, agents.later])
def test_cells_are_stored_before_on_cell_hears_of_them(tmp_path, system):
    heard, stored = [], []

    def hear(cell):
        (verdicts,) = tmp_path.glob("*/verdicts.jsonl")
        heard.append(cell.case_id)
        stored.append(len(verdicts.read_bytes().splitlines()))

    cases = [str(number) for number in range(40)]
    asyncio.run(ew.aevaluate(cases, system, evaluators=passes, out=tmp_path, concurrency=8, on_cell=hear))
    assert [number for number, there in enumerate(stored, 1) if there < number] == []
    assert len(heard) == 40


def test_what_on_cell_raises_ends_the_run(tmp_path):
    def refuses(cell):
        raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        evaluate([str(i) for i in range(200)], concurrency=1, on_cell=refuses, out=tmp_path)
    [folder] = tmp_path.iterdir()
    assert ew.open_run(folder).name == "upper"


def test_retries_are_further_attempts():
    calls = []

    async def late_at_first(text):
        calls.append(text)
        if len(calls) == 1:
            await asyncio.sleep(60)
        return text

    run = evaluate(["a"], late_at_first, timeout=0.1, retries=1)
    assert run.passed
    assert len(calls) == 2


def test_equal_errors_stop_the_run(tmp_path):
    def broken(text):
        raise RuntimeError("no key")

    run = evaluate([str(i) for i in range(60)], broken, concurrency=1, out=tmp_path, name="n")
    assert (run.summary.status, len(run)) == ("partial", 20)
    assert run.stopped.startswith(
        "the first 20 cells all ended in the same error: RuntimeError: no key in test_evaluate"
    )
    assert not run.passed
    assert len(evaluate([str(i) for i in range(60)], broken, concurrency=1, stop_after_equal_errors=None)) == 60


def test_other_errors_or_one_success_do_not_stop_it():
    def differs(text):
        raise RuntimeError(text)

    def starts_well(text):
        if text != "0":
            raise RuntimeError("no key")
        return text

    cases = [str(i) for i in range(30)]
    for system in (differs, starts_well):
        run = evaluate(cases, system, concurrency=1)
        assert (len(run), run.stopped) == (30, None)


def test_a_run_of_fewer_cells_is_complete():
    run = evaluate(["a", "b"], lambda text: None)
    assert (run.summary.status, run.stopped) == ("complete", None)


def test_streaming_and_leaving_early(tmp_path):
    cases = [str(i) for i in range(100)]

    async def main():
        async with ew.stream(cases, agents.later, evaluators=passes, out=tmp_path, concurrency=1) as cells:
            return await anext(cells)

    assert asyncio.run(main()).status == "pass"
    [folder] = tmp_path.iterdir()
    run = ew.open_run(folder)
    assert 0 < len(run) < 100
    assert "cells were not run" in run.stopped
    resumed = ew.resume(run)
    assert (len(resumed), resumed.stopped) == (100, None)


def test_a_run_waits_for_whoever_receives_its_stream_slowly():
    made, most = 0, 0

    async def answers(text):
        nonlocal made
        made += 1
        return text

    async def main():
        nonlocal most
        received, cases = 0, [str(i) for i in range(400)]
        async with ew.stream(cases, answers, evaluators=passes, out=None, concurrency=4) as cells:
            async for _ in cells:
                received += 1
                most = max(most, made - received)
                for _ in range(20):  # turns of the loop, in each of which the run could finish more cells
                    await asyncio.sleep(0)
        return received

    assert asyncio.run(main()) == 400
    assert most < 100


def test_a_run_waits_for_a_slow_on_cell():
    calls, made, heard = queue.SimpleQueue(), [], []

    def hears(cell):
        heard.append(cell)
        with contextlib.suppress(queue.Empty):
            while len(heard) == 1:  # the first cell takes until the run makes no more calls
                made.append(calls.get(timeout=0.2))

    evaluate([str(i) for i in range(400)], lambda text: calls.put(text) or text, concurrency=4, on_cell=hears)
    assert (len(heard), len(made) + calls.qsize()) == (400, 400)
    assert len(made) < 100


def test_the_stream_raises_what_the_run_raises(tmp_path):
    (tmp_path / "file").write_text("")

    async def main():
        async with ew.stream(["a"], agents.upper, evaluators=passes, out=tmp_path / "file" / "runs") as cells:
            async for _ in cells:
                pass

    with pytest.raises((ew.StorageError, ew.InputError)):
        asyncio.run(main())


def test_no_signal_handlers_and_no_changed_process(capsys):
    import os
    import sys

    before = (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGALRM), sys.stdout, os._exit, dict(os.environ))
    seen = []

    def looks(text):
        seen.append((signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGALRM)))
        return text

    evaluate(["a"], looks)
    after = (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGALRM), sys.stdout, os._exit, dict(os.environ))
    assert after == before
    assert seen == [before[:2]]


def test_no_thread_outlives_its_run():
    """A service or a notebook may evaluate any number of times."""
    before = set(threading.enumerate())
    run = evaluate(CASES, agents.upper)
    ew.re_evaluate(run, passes)
    asyncio.run(ew.aevaluate(CASES, agents.upper, evaluators=passes, out=None))
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
        assert not thread.is_alive(), thread


def test_the_plan_notes_where_functions_are_found(tmp_path):
    run = evaluate(["a"], agents.upper, evaluators=agents.loud, out=tmp_path)
    plan = json.loads((run.path / "plan.json").read_text())
    assert plan["variants"][0]["config"]["target"] == "api.agents:upper"
    assert plan["evaluators"][0]["config"] == {"function": "api.agents:loud"}
