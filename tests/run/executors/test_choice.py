"""Which executor a run has, and what refuses it before anything runs; no cluster is needed for that."""

from __future__ import annotations

import socket
import sys
import threading
from pathlib import Path

import msgspec
import pytest

from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from evalwright.model.plan import Executor, Placement, Variant
from evalwright.run.options import RunOptions
from evalwright.run.plan import plan_of
from evalwright.run.start import run_suite
from run.suites import suite

EVAL = """
eval: {name: far}
dataset: {type: jsonl, path: cases.jsonl}
systems:
- {name: far, adapter: cli, command: [agent, --quick], ray: {num_gpus: 1, actors: 2, resources: {a100: 1}}%s}
evaluators: [{name: says, type: contains_text, config: {all_of: [done]}}]
run:
  retry: {max_attempts: 2, on: [worker_lost]}
  executor: {type: ray, pools: {gpu: 8}, address: "10.1.2.3:6379", runtime_env: {pip: [torch]}%s}
output: [{type: local_files, path: runs}]
"""


def read(folder: Path, of_system: str = "", of_executor: str = ""):
    (folder / "cases.jsonl").write_text('{"id": "a", "input": {"user_message": "x"}}\n')
    (folder / "eval.yaml").write_text(EVAL % (of_system, of_executor))
    return load_suite(folder / "eval.yaml", None, {}, to_run=False)


def test_a_suite_says_where_its_systems_are_called(tmp_path):
    made = read(tmp_path, of_executor=", working_dir: null, per_actor: 4")
    executor = Executor("ray", "10.1.2.3:6379", None, {"pip": ["torch"]}, per_actor=4)
    assert (made.run.executor, made.run.pools) == (executor, {"gpu": 8})
    assert made.variants[0].ray == Placement(num_gpus=1, actors=2, resources={"a100": 1})
    assert "ray" not in made.variants[0].config
    assert plan_of(made, RunOptions()).run.executor == executor
    assert plan_of(made, RunOptions(executor="ray")).run.executor == executor
    (tmp_path / "eval.yaml").write_text((EVAL % ("", "")).replace("10.1.2.3:6379", "${NO_SUCH_ADDRESS:-}"))
    assert load_suite(tmp_path / "eval.yaml", None, {}, to_run=False).run.executor.address is None
    assert plan_of(made, RunOptions(executor="local")).run.executor is msgspec.UNSET


def test_a_run_without_the_executor_says_that_nothing_reads_where_its_systems_belong(tmp_path):
    made = suite(tmp_path, ["x"], variants=[Variant("main", "replay", ray=Placement(num_gpus=1))])
    elsewhere = run_suite(made, RunOptions(executor="ray"))
    here = run_suite(made)
    assert (elsewhere.summary.warnings, elsewhere.plan.warnings) == ([], [])
    [warning] = here.plan.warnings
    assert warning.startswith("main: nothing reads the key 'ray'")


def test_a_plan_without_an_executor_is_stored_as_ever(tmp_path):
    plan = plan_of(suite(tmp_path, ["x"]), RunOptions())
    assert b"executor" not in msgspec.json.encode(plan.run)
    assert b"ray" not in msgspec.json.encode(plan.variants)
    assert plan_of(suite(tmp_path, ["x"]), RunOptions(executor="ray")).run.executor == Executor("ray")


@pytest.mark.parametrize(
    ("of_system", "of_executor", "place", "message"),
    [
        (", pool: gpus", "", "systems[0].pool", "gpu"),
        ("", ", per_actor: 0", "run.executor.per_actor", "0"),
        ("", ", wait_seconds: soon", "run.executor.wait_seconds", "soon"),
    ],
)
def test_mistakes_are_refused_with_their_place(tmp_path, of_system, of_executor, place, message):
    with pytest.raises(InputError) as caught:
        read(tmp_path, of_system, of_executor)
    [problem] = caught.value.problems
    assert problem.key == place
    assert message in problem.message


def test_a_misspelt_key_of_a_placement_is_refused_and_one_of_the_executor_is_told(tmp_path):
    [warning] = read(tmp_path, ", pool: gpu", ", adress: x").warnings
    (tmp_path / "eval.yaml").write_text((EVAL % ("", "")).replace("num_gpus", "num_gpu"))
    with pytest.raises(InputError, match="num_gpus"):
        load_suite(tmp_path / "eval.yaml", None, {}, to_run=False)
    assert "address" in warning.message


def test_without_ray_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"pip install 'evalwright\[ray\]'"):
        run_suite(suite(tmp_path, ["x"]), RunOptions(executor="ray"))
    assert not (tmp_path / "runs").exists()


def test_recordings_need_no_cluster(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    recorded = Variant("main", "replay")
    made = suite(tmp_path, ["x"], variants=[recorded], executor=Executor("ray"))
    assert run_suite(made).summary.cells_missing == 0


def test_an_address_at_which_nothing_listens_ends_the_run_with_it(tmp_path):
    made = suite(tmp_path, ["x"], executor=Executor("ray", "127.0.0.1:9", working_dir=None))
    with pytest.raises(InputError, match=r"no Ray answers at 127\.0\.0\.1:9"):
        run_suite(made)


def test_an_address_of_another_service_ends_the_run_with_it(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"

        def serve() -> None:
            connection, _ = server.accept()
            connection.sendall(b"220 mail.example ESMTP\r\n")
            connection.recv(100)
            connection.close()

        threading.Thread(target=serve, daemon=True).start()
        made = suite(tmp_path, ["x"], executor=Executor("ray", address, working_dir=None))
        with pytest.raises(InputError, match=f"no Ray answers at {address}, but another service"):
            run_suite(made)


def test_a_folder_to_send_that_is_not_there_is_refused(tmp_path):
    executor = Executor("ray", "127.0.0.1:9", working_dir=str(tmp_path / "gone"))
    with pytest.raises(InputError, match="there is no folder") as caught:
        run_suite(suite(tmp_path, ["x"], executor=executor))
    assert [problem.key for problem in caught.value.problems] == ["run.executor.working_dir"]


def test_files_outside_of_the_folder_that_is_sent_are_refused(tmp_path):
    (folder := tmp_path / "suite").mkdir()
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    config = {"command": ["/bin/sh", str(outside / "agent.py")], "cwd": str(outside)}
    (outside / "agent.py").write_text("")
    made = suite(tmp_path, ["x"], variants=[Variant("main", "cli", config)], executor=Executor("ray", "127.0.0.1:9"))
    with pytest.raises(InputError) as caught:
        run_suite(made)
    assert {problem.key for problem in caught.value.problems} == {"main.command[1]", "main.cwd"}
    assert all(str(outside) in problem.message for problem in caught.value.problems)
    assert not (tmp_path / "runs").exists()
    with pytest.raises(InputError) as caught:
        read(folder, f", cwd: {outside}")
    assert [problem.key for problem in caught.value.problems] == ["systems[0].cwd"]
    assert read(folder, f", cwd: {outside}", ", working_dir: ..").variants


@pytest.mark.parametrize(
    ("given", "judges"),
    [
        ("", msgspec.UNSET),
        (", judges: false", msgspec.UNSET),
        (", judges: true", Placement()),
        (", judges: {num_gpus: 1, actors: 2}", Placement(num_gpus=1, actors=2)),
    ],
)
def test_a_suite_says_whether_workers_call_the_models_of_judges(tmp_path, given, judges):
    made = read(tmp_path, ", pool: gpu", given)
    assert made.run.executor.judges == judges
    assert made.run.places_judges is (judges is not msgspec.UNSET)
    assert (b'"judges"' in msgspec.json.encode(made.run.executor)) is made.run.places_judges
    assert made.warnings == []


@pytest.mark.parametrize(
    ("given", "key", "message"),
    [("judges: {num_gpu: 1}", "run.executor.judges.num_gpu", "num_gpus"), ("judges: 3", "run.executor.judges", "3")],
)
def test_a_mistake_in_what_the_judges_workers_take_is_refused_with_its_place(tmp_path, given, key, message):
    with pytest.raises(InputError) as caught:
        read(tmp_path, of_executor=f", {given}")
    [problem] = caught.value.problems
    assert problem.key == key
    assert message in problem.message
