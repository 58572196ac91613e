"""What becomes of cells when their workers die, hang or never come, on a cluster that dies on demand."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from evalwright.errors import InputError
from evalwright.model.chat import ChatMessage, ChatRequest
from evalwright.model.plan import Executor, Placement, Variant
from evalwright.model.trace import Answer, Trace
from evalwright.run.executors.frames import DroppedCall, ModelCall, StalledCall, SystemReply
from evalwright.run.outcomes import Outcome
from evalwright.run.resumption import resume
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run
from run.executors.far_end import DIES, WAITS, FarEnd, Worker
from run.suites import suite

Script = Callable[[Worker, str], object]


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> Callable[..., FarEnd]:
    def put(script: Script, **more: object) -> FarEnd:
        end = FarEnd(script, **more)  # type: ignore[arg-type]
        monkeypatch.setitem(sys.modules, "ray", end)
        return end

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    return put


def ran(folder: Path, cases: int, *, timeout: float = 120, wait: float = 600, **placed: int) -> Outcome:
    config = {"target": "agents:echo"}
    system = Variant("main", "python_function", config, timeout_seconds=timeout, ray=Placement(**placed))
    executor = Executor("ray", wait_seconds=wait)
    made = suite(folder, ["x"] * cases, variants=[system], executor=executor, max_concurrency=16, stop_after_errors=0)
    return run_suite(made)


def traces(outcome: Outcome) -> dict[str, Trace]:
    reader, _ = open_run(outcome.address)
    by_name = {trace.case_id: trace for trace in reader.traces(Trace)}
    reader.close()
    return by_name


def test_calls_go_together_to_the_workers_with_the_fewest(tmp_path, far):
    end = far(lambda worker, case: f"done by {worker.number}")
    outcome = ran(tmp_path, 64, num_gpus=1)
    assert (outcome.exit_code, outcome.summary.variants[0].cells["pass"]) == (0, 64)
    assert len(end.workers) == 2  # one for each machine that lives
    assert [len(worker.calls) for worker in end.workers] == [32, 32]
    assert all(worker.wanted["num_gpus"] == 1 for worker in end.workers)
    assert all(worker.most_at_once == 8 for worker in end.workers)
    assert all(len(worker.together) < 10 for worker in end.workers)
    assert end.has_left
    assert not any(worker.is_alive for worker in end.workers)


@pytest.mark.parametrize("placed", [{}, {"actors": 1}], ids=["several workers", "one worker"])
def test_only_calls_that_were_at_a_lost_worker_are_made_again(tmp_path, far, placed):
    end = far(lambda worker, case: DIES if worker.number == 0 and len(worker.calls) > 12 else "done")
    by_case = traces(outcome := ran(tmp_path, 40, **placed))
    assert outcome.exit_code == 0
    calls = Counter(case for worker in end.workers for case in worker.calls)
    again = {case for case, times in calls.items() if times > 1}
    assert set(calls.values()) == {1, 2}
    assert len(again) <= 8
    retried = {case for case, trace in by_case.items() if "retried" in trace.extra}
    assert retried == again
    assert all(by_case[case].extra["retried"][0]["type"] == "worker_lost" for case in again)


def test_the_time_without_workers_does_not_run_while_one_of_them_is_there(tmp_path, far):
    def script(worker: Worker, case: str) -> object:
        if worker.number == 0:
            return DIES
        call = next(number for number, name in worker.at.items() if name == case)
        answer = SystemReply(call, Answer.of("done"), 1.0)
        asyncio.get_running_loop().call_later(0.1, worker.say, answer)
        return WAITS

    end = far(script)
    end.most_workers = 2  # the lost one is not replaced
    assert ran(tmp_path, 64, timeout=5, wait=0.3).exit_code == 0


def test_a_cell_that_ends_every_worker_takes_no_other_with_it(tmp_path, far):
    beside: list[int] = []

    def script(worker: Worker, case: str) -> object:
        if case == "c3":
            beside.append(len(worker.at) - 1)
            return DIES
        return WAITS if "c3" in worker.at.values() else "done"

    far(script)
    by_case = traces(outcome := ran(tmp_path, 24, actors=1))
    assert outcome.exit_code == 3
    assert {case: trace.error.type for case, trace in by_case.items() if trace.error} == {"c3": "worker_lost"}
    assert (len(beside), beside[-1]) == (3, 0)


def test_a_run_without_workers_waits_and_is_resumed(tmp_path, far):
    end = far(lambda worker, case: DIES if len(worker.calls) > 4 else "done")
    end.most_workers = 1
    outcome = ran(tmp_path, 12, wait=1.0, actors=1)
    assert outcome.exit_code == 3
    assert not outcome.interrupted
    assert outcome.summary.cells_missing > 0
    assert any("it had no workers for" in line for line in outcome.summary.warnings)
    assert not any(trace.error for trace in traces(outcome).values())
    end.most_workers, end.script = 100, lambda worker, case: "done"
    assert resume(outcome.address).exit_code == 0


def test_a_system_that_cannot_be_set_up_refuses_the_run(tmp_path, far):
    end = far(lambda worker, case: "done", refused="'main' cannot be set up: no model")
    with pytest.raises(InputError, match="'main' cannot be set up: no model"):
        ran(tmp_path, 2)
    assert not any(worker.calls for worker in end.workers)


def test_a_system_for_which_the_cluster_has_no_room_is_refused(tmp_path, far):
    end = far(lambda worker, case: "done")
    end.most_workers = 0
    with pytest.raises(InputError, match="no worker of 'main' could be started"):
        ran(tmp_path, 2, wait=0.4)


@pytest.mark.parametrize(
    ("why", "speaks_of_tokens"),
    [("Version mismatch: The cluster was started with:\n    Python: 3.11.7", False), ("no such token", True)],
)
def test_a_cluster_that_cannot_be_joined_says_why(tmp_path, far, monkeypatch, why, speaks_of_tokens):
    end = far(lambda worker, case: "done")

    def init(**_: object) -> None:
        raise RuntimeError(why)

    end.init = init
    monkeypatch.setenv("RAY_ADDRESS", "auto")
    with pytest.raises(InputError, match="auto cannot be used: RuntimeError: " + " ".join(why.split())) as caught:
        ran(tmp_path, 2)
    assert ("RAY_AUTH_TOKEN" in str(caught.value)) is speaks_of_tokens


def test_a_cluster_that_cannot_be_joined_in_time_refuses_the_run(tmp_path, far, monkeypatch):
    monkeypatch.setattr("evalwright.run.executors.cluster._LONGEST_START", 0.1)
    monkeypatch.setattr("evalwright.run.executors.cluster._FAREWELL", 0.1)
    end, over = far(lambda worker, case: "done"), threading.Event()
    end.init = lambda **_: over.wait(60)
    with pytest.raises(InputError, match=r"a Ray of this machine could not be joined within 0\.1 seconds"):
        ran(tmp_path, 2)
    over.set()
    assert not end.workers


def test_a_late_call_is_cancelled_and_an_answer_after_that_counts_for_nothing(tmp_path, far):
    held: list[Worker] = []

    def script(worker: Worker, case: str) -> object:
        if case == "c0":
            held.append(worker)
            return WAITS
        return "done"

    far(script)
    by_case = traces(outcome := ran(tmp_path, 6, timeout=0.5))
    assert outcome.exit_code == 3
    assert {case: trace.error.type for case, trace in by_case.items() if trace.error} == {"c0": "timeout"}
    assert len(held) == 1


def test_a_worker_whose_cancelled_calls_end_a_little_later_stays(tmp_path, far):
    def ends_later(worker: Worker, call: int) -> None:
        asyncio.get_running_loop().call_later(0.5, worker.say, DroppedCall(call))

    end = far(lambda worker, case: "done" if case == "c8" else WAITS)
    end.dropped = ends_later
    outcome = ran(tmp_path, 9, timeout=0.3, actors=1)
    assert verdicts(outcome) == (1, 8), "the worker has eight places"
    assert [worker.most_at_once for worker in end.workers] == [8]


def test_a_worker_whose_cancelled_calls_do_not_end_is_replaced(tmp_path, far, monkeypatch):
    monkeypatch.setattr("evalwright.run.executors.member.GRACE", 0.1)
    end = far(lambda worker, case: "done" if worker.number else WAITS)
    end.dropped = lambda worker, call: None
    assert verdicts(ran(tmp_path, 24, timeout=0.3, actors=1)) == (16, 8)
    assert [worker.is_alive for worker in end.workers] == [False, False]


def verdicts(outcome: Outcome) -> tuple[int, int]:
    """How many cells passed, and how many ended in an error."""
    cells = outcome.summary.variants[0].cells
    return cells["pass"], cells["error"]


def test_no_time_passes_for_calls_that_another_one_holds_up(tmp_path, far):
    def call_of(worker: Worker, case: str) -> int:
        return next(number for number, one in worker.at.items() if one == case)

    def script(worker: Worker, case: str) -> object:
        if case == "c0":
            worker.say(StalledCall(call_of(worker, case)))
        return WAITS

    def dropped(worker: Worker, number: int) -> None:
        if worker.at[number] == "c0":
            worker.say(SystemReply(call_of(worker, "c1"), Answer.of("done"), 1.0))
            worker.say(StalledCall(None))
        worker.say(DroppedCall(number))

    far(script).dropped = dropped
    by_case = traces(outcome := ran(tmp_path, 3, timeout=0.3, actors=1))
    assert outcome.exit_code == 3
    assert {case: trace.error.type for case, trace in by_case.items() if trace.error} == {
        "c0": "timeout",
        "c2": "timeout",
    }


@pytest.mark.parametrize("when", ["no worker is there", "another is there"])
def test_what_a_model_says_to_a_lost_worker_reaches_no_other(tmp_path, far, agents, when):
    replaced, said = asyncio.Event(), asyncio.Event()

    async def model(_: ChatRequest) -> str:
        end.workers[0].die()
        await replaced.wait()
        said.set()
        return "for the first worker"

    async def opening(worker: Worker) -> None:
        if worker.number and when == "no worker is there":
            replaced.set()
            await said.wait()
            for _ in range(100):  # until it has passed through all that has awaited it
                await asyncio.sleep(0)

    def script(worker: Worker, case: str) -> object:
        if worker.number == 0:
            messages = [ChatMessage("user", "hello")]
            worker.say(ModelCall(1, ChatRequest("python:agents:model", messages), "system", next(iter(worker.at))))
            return WAITS
        replaced.set()
        return "done"

    agents.model = model
    end = far(script)
    end.opening = opening
    assert verdicts(ran(tmp_path, 24, actors=1)) == (24, 0)
    assert said.is_set()
    assert [len(worker.heard) for worker in end.workers] == [0, 0]
