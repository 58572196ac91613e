"""What becomes of a run on a real Ray cluster when some of it dies: a call, a worker, a machine, the driver."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
import yaml

from run.executors.far_projects import Project, all_pass, function
from run.executors.machines import Machines

pytestmark = pytest.mark.slow("starts the machines of a cluster")


def test_a_call_that_blocks_its_worker_is_a_timeout_and_no_other_cell_is_lost(project: Project) -> None:
    project.suite(12, [function("blocking", timeout_seconds=3)])
    code, said = project.run("run", "eval.yaml")
    assert code == 3, said
    [trace] = [record for record in project.records("traces.jsonl") if record["error"] is not None]
    assert (trace["case_id"], trace["error"]["type"]) == ("c1", "timeout")  # type: ignore[index]
    assert len(project.verdicts()) == 12


def test_a_lost_worker_costs_no_cell(project: Project) -> None:
    project.suite(80, [function("answer")])
    driver = project.start("run", "eval.yaml")
    os.kill(project.after_calls(30, driver)[-1][1], signal.SIGKILL)
    out, err = driver.communicate(timeout=240)
    assert driver.returncode == 0, out + err
    assert project.verdicts() == all_pass(80, "answer")
    assert "was lost" in err
    lost = [record for record in project.records("traces.jsonl") if "retried" in record["extra"]]  # type: ignore[operator]
    assert lost
    assert {error["type"] for one in lost for error in one["extra"]["retried"]} == {"worker_lost"}  # type: ignore[index]
    assert 80 < len(project.calls()) <= 80 + 8


def test_a_cell_that_ends_its_workers_is_an_error_alone(project: Project) -> None:
    project.suite(12, [function("ending")])
    code, said = project.run("run", "eval.yaml")
    assert code == 3, said
    errors = {name for name, status in project.verdicts().items() if status != "pass"}
    assert errors == {"c3 ending"}
    [trace] = [record for record in project.records("traces.jsonl") if record["error"] is not None]
    assert (trace["error"]["type"], len(trace["extra"]["retried"])) == ("worker_lost", 2)  # type: ignore[index]


def test_replies_of_all_workers_are_counted_together_and_a_lost_one_takes_none_with_it(project: Project) -> None:
    apart = {**function("doubting", isolation="process"), "name": "apart"}
    project.suite(12, [function("doubting", ray={"actors": 2}), apart])
    code, said = project.run("run", "eval.yaml")
    assert code == 0, said
    assert "was lost" in said
    doubts = ("no date was found in any of 12 replies", "a line is missing in 2 of 12 replies: line 7")
    warnings = yaml.safe_load((project.run_folder / "summary.yaml").read_text())["warnings"]
    assert sorted(warnings) == sorted(f"{name}: {doubt}" for name in ("doubting", "apart") for doubt in doubts)


def test_models_of_judges_are_called_by_workers_and_a_lost_one_costs_no_result(project: Project) -> None:
    project.environment |= {"API_KEY": "sesame-canary-77", "XDG_CACHE_HOME": str(project.folder / "cache")}
    config = {"model": "python:agent:judge", "nl_assertions": ["It is done."]}
    variables = {"LEDGER": str(project.ledger), "NAP": "0", "API_KEY": "${API_KEY}"}
    executor = {"type": "ray", "runtime_env": {"env_vars": variables}, "judges": {"num_cpus": 0.1, "actors": 2}}
    project.suite(
        60,
        [{"name": "shell", "adapter": "cli", "command": ["cat"], "stdin_template": "done {{ case.id }}"}],
        evaluators=[{"name": "judge", "type": "llm_judge", "config": config}],
        run={"executor": executor},
    )
    driver = project.start("run", "eval.yaml")
    os.kill(project.after_calls(20, driver)[-1][1], signal.SIGKILL)
    out, err = driver.communicate(timeout=240)
    assert driver.returncode == 0, out + err
    assert project.verdicts() == all_pass(60, "shell")
    assert "a worker of 'python:agent:judge' was lost" in err
    calls = project.calls()
    assert {name for name, _ in calls} == {f"c{n}" for n in range(60)}
    assert len(calls) <= 60 + 8
    assert driver.pid not in {pid for _, pid in calls}
    kept = b"".join(path.read_bytes() for path in project.run_folder.rglob("*") if path.is_file())
    assert b"sesame-canary-77" not in kept


def test_a_lost_machine_costs_no_cell(project: Project, machines: Machines) -> None:
    third = machines.add()
    project.suite(80, [function("answer")])
    driver = project.start("run", "eval.yaml")
    project.after_calls(30, driver)
    machines.lose(third)
    out, err = driver.communicate(timeout=240)
    assert driver.returncode == 0, out + err
    assert project.verdicts() == all_pass(80, "answer")
    assert len(project.calls()) <= 80 + 8


def test_a_driver_that_was_killed_leaves_no_worker_and_is_resumed(project: Project) -> None:
    project.suite(80, [function("answer")])
    driver = project.start("run", "eval.yaml")
    workers = {pid for _, pid in project.after_calls(30, driver)}
    driver.kill()
    driver.communicate()
    until = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in workers):
        assert time.monotonic() < until
        time.sleep(0.05)
    code, said = project.run("resume", str(project.run_folder))
    assert code == 0, said
    assert project.verdicts() == all_pass(80, "answer")
    assert len(project.calls()) <= 80 + 8


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP, signal.SIGTERM])
def test_commands_on_other_machines_end_with_the_driver(project: Project, number: int) -> None:
    command = 'echo "command $$" >> "/$FILE"; (sleep 100 & echo "below $!" >> "/$FILE"; wait) & wait'
    file = str(project.ledger).removeprefix("/")  # a path of this machine would be one in the copy of the folder there
    shell = {"adapter": "cli", "command": ["/bin/sh", "-c", command], "env": {"FILE": file}}
    project.suite(2, [{"name": "shell", **shell}])
    driver = project.start("run", "eval.yaml")
    started = [pid for _, pid in project.after_calls(4, driver)]
    assert all(map(alive, started))
    driver.send_signal(number)
    out, err = driver.communicate(timeout=120)
    assert driver.returncode == (-9 if number == signal.SIGKILL else 130), out + err
    until = time.monotonic() + 60
    while any(map(alive, started)):
        assert time.monotonic() < until
        time.sleep(0.05)
    assert "*** SIG" not in err  # the library of Ray prints a stack
    if number != signal.SIGKILL:
        assert (project.run_folder / "summary.yaml").exists()


def test_a_run_with_a_cluster_of_its_own_ends_with_it(project: Project) -> None:
    del project.environment["RAY_ADDRESS"], project.environment["RAY_AUTH_MODE"], project.environment["RAY_AUTH_TOKEN"]
    project.suite(4, [function("answer")], run={"executor": {"type": "local"}})
    project.environment |= {"LEDGER": str(project.ledger)}
    code, said = project.run("run", "eval.yaml", "--executor", "ray")
    assert code == 0, said
    [worker] = {pid for _, pid in project.calls()}
    assert not Path(f"/proc/{worker}").exists()
