"""Systems on the machines of a real Ray cluster, and what becomes of a run when some of it dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from run.executors.machines import Machines

pytestmark = pytest.mark.slow("starts the machines of a cluster")

AGENT = """
import asyncio, os, time
from evalwright.plugins import Answer, Doubt

def _note(case):
    with open(os.environ["LEDGER"], "ab", 0) as ledger:
        ledger.write(f"{case['id']} {os.getpid()}\\n".encode())

def answer(case, variant):
    _note(case)
    time.sleep(float(os.environ.get("NAP", "0")))
    return {"final_answer": "done " + case["id"]}

async def waiting(case, variant):
    await asyncio.sleep(0.01)
    print("heard", case["id"])
    assert os.environ["API_KEY"] in ("none", "sesame-canary-77")
    return {"final_answer": "done at " + os.getcwd()}

def leaving(case, variant):
    if case["id"] == "c0":
        os._exit(3)
    return {"final_answer": "done"}

def changing(case, variant):
    path = variant["_workspace_path"]
    with open(os.path.join(path, "new.txt"), "w") as file:
        file.write("from " + case["id"])
    return {"final_answer": "done"}

def ending(case, variant):
    time.sleep(0.05)
    if case["id"] == "c3":
        os.kill(os.getpid(), 9)
    return {"final_answer": "done"}

def doubting(case, variant):
    _note(case)
    time.sleep(0.05)
    lost = os.environ["LEDGER"] + ".lost"
    if (case["id"], variant["name"]) == ("c9", "doubting") and not os.path.exists(lost):
        open(lost, "x").close()
        os.kill(os.getpid(), 9)
    doubts = [Doubt("no date was found", if_all=True)]
    if case["id"] != "c1":
        doubts.append(Doubt("no name was found", if_all=True))
    if case["id"] in ("c0", "c7"):
        doubts.append(Doubt("a line is missing", "line 7"))
    return Answer.of("done", doubts=doubts)

def judge(request):
    name = request.messages[-1].content.rpartition("done ")[2].split()[0]
    _note({"id": name})
    time.sleep(0.05)
    return '{"assertions": [{"passed": true, "reason": "' + os.environ["API_KEY"] + '"}]}'

async def blocking(case, variant):
    if case["id"] == "c1":
        time.sleep(600)
    return {"final_answer": "done"}
"""


@pytest.fixture(scope="module")
def machines() -> Iterator[Machines]:
    cluster = Machines()
    try:
        cluster.add()
        yield cluster
    finally:
        cluster.end()


class Project:
    """A suite in a folder of its own, run by the command line."""

    def __init__(self, folder: Path, machines: Machines) -> None:
        self.folder, self.ledger = folder, folder / "ledger"
        self.environment = {**machines.environment, "COLUMNS": "120"}
        (folder / "agent.py").write_text(AGENT)

    def suite(self, cases: int, systems: list[dict[str, object]], **more: object) -> None:
        lines = [json.dumps({"id": f"c{n}", "input": {"user_message": "hello"}}) for n in range(cases)]
        (self.folder / "cases.jsonl").write_text("\n".join(lines) + "\n")
        env = {"env_vars": {"LEDGER": str(self.ledger), "NAP": "0.05", "API_KEY": "${API_KEY:-none}"}}
        run = {"max_concurrency": 8, "executor": {"type": "ray", "runtime_env": env}, **more.pop("run", {})}  # type: ignore[dict-item]
        suite = {
            "eval": {"name": "far"},
            "dataset": {"type": "jsonl", "path": "cases.jsonl"},
            "systems": systems,
            "evaluators": [{"name": "says", "type": "contains_text", "config": {"all_of": ["done"]}}],
            "run": run,
            "output": [{"type": "local_files", "path": "runs"}],
        }
        (self.folder / "eval.yaml").write_text(yaml.safe_dump({**suite, **more}))

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "evalwright", *words],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str) -> tuple[int, str]:
        with self.start(*words) as process:
            out, err = process.communicate(timeout=300)
        return process.returncode, out + err

    def calls(self) -> list[tuple[str, int]]:
        lines = self.ledger.read_text().splitlines() if self.ledger.exists() else []
        return [(line.split()[0], int(line.split()[1])) for line in lines]

    def after_calls(self, number: int, process: subprocess.Popen[str]) -> list[tuple[str, int]]:
        """The calls, once there are so many."""
        until = time.monotonic() + 240
        while len(calls := self.calls()) < number:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < until
            time.sleep(0.02)
        return calls

    @property
    def run_folder(self) -> Path:
        [folder] = [path for path in (self.folder / "runs").iterdir() if path.is_dir()]
        return folder

    def records(self, name: str) -> list[dict[str, object]]:
        return [json.loads(line) for line in (self.run_folder / name).read_text().splitlines()]

    def verdicts(self) -> dict[str, str]:
        return {f"{one['case_id']} {one['variant_name']}": str(one["status"]) for one in self.records("verdicts.jsonl")}


@pytest.fixture
def project(tmp_path: Path, machines: Machines) -> Project:
    return Project(tmp_path, machines)


def function(name: str, **more: object) -> dict[str, object]:
    return {"name": name, "adapter": "python_function", "target": f"agent:{name}", **more}


def all_pass(cases: int, *systems: str) -> dict[str, str]:
    return {f"c{n} {system}": "pass" for n in range(cases) for system in systems}


FROM_PYTHON = """
import os
import evalwright as ew
import far

if __name__ == "__main__":
    run = ew.evaluate(["x"] * 6, far.process, evaluators="answered", executor="ray")
    print(len(run), run.passed, str(os.getpid()) in {cell.output for cell in run})
"""


def test_a_function_passed_from_python_is_called_by_the_workers(project: Project) -> None:
    (project.folder / "far.py").write_text("import os\ndef process(text):\n    return str(os.getpid())\n")
    (project.folder / "script.py").write_text(FROM_PYTHON)
    ended = subprocess.run(
        [sys.executable, "script.py"], cwd=project.folder, env=project.environment, capture_output=True, text=True
    )
    assert ended.stdout == "6 True False\n", ended.stderr


def test_systems_of_all_kinds_are_called_on_all_machines(project: Project) -> None:
    project.environment["API_KEY"] = "sesame-canary-77"
    shell = {"command": ["/bin/sh", "-c", 'test "$KEY" = sesame-canary-77 && echo done'], "env": {"KEY": "${API_KEY}"}}
    project.suite(
        6,
        [
            function("answer", ray={"num_cpus": 0.1}),
            function("waiting"),
            function("leaving", isolation="process"),
            {"name": "shell", "adapter": "cli", **shell},
        ],
    )
    code, said = project.run("run", "eval.yaml", "--keep-going")
    assert code == 3, said
    errors = {name for name, status in project.verdicts().items() if status != "pass"}
    assert errors == {"c0 leaving"}
    assert len({pid for _, pid in project.calls()}) == 2  # one worker on each machine
    assert "] heard c3" in said  # what is printed there is shown here
    [answer] = {
        str(one["output"]["final_answer"])
        for one in project.records("traces.jsonl")
        if one["variant_name"] == "waiting"
    }  # type: ignore[index]
    assert str(project.folder) not in answer  # a copy of the suite's folder
    kept = b"".join(path.read_bytes() for path in project.run_folder.rglob("*") if path.is_file())
    assert b"sesame-canary-77" not in kept
    assert project.environment["RAY_AUTH_TOKEN"].encode() not in kept


class _Model(BaseHTTPRequestHandler):
    """A chat model that answers whoever has the key."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        known = self.headers["Authorization"] == "Bearer key-of-this-side"
        message = {"role": "assistant", "content": "done" if known else "who are you?"}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        body = json.dumps({"id": "r", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]})
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Nothing on the screen."""


def test_models_are_called_by_the_run_which_has_the_keys(project: Project) -> None:
    with served(_Model) as url:
        chat = {"name": "chat", "adapter": "openai_chat", "model": "m", "base_url": f"{url}/v1"}
        project.environment["KEY_HERE"] = "key-of-this-side"
        project.suite(4, [{**chat, "api_key_env": "KEY_HERE"}])
        code, said = project.run("run", "eval.yaml")
    assert code == 0, said
    assert project.verdicts() == all_pass(4, "chat")


class _Service(BaseHTTPRequestHandler):
    """A service that gives its answer to whoever has the key."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        known = self.headers["X-Key"] == "sesame-canary-77"
        body = json.dumps({"output": f"done {asked['input']['user_message']}" if known else "who are you?"}).encode()
        self.send_response(503 if "c1" in self.path else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing on the screen."""


@contextmanager
def served(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def test_services_are_asked_by_the_workers(project: Project) -> None:
    project.environment["API_KEY"] = "sesame-canary-77"
    with served(_Service) as url:
        asking = {"adapter": "http", "provider": "simple", "headers": {"X-Key": "${API_KEY}"}}
        project.suite(
            4,
            [{"name": "well", "endpoint": f"{url}/ask", **asking}, {"name": "ill", "endpoint": f"{url}/c1", **asking}],
        )
        code, said = project.run("run", "eval.yaml")
    assert code == 3, said
    assert {name for name, status in project.verdicts().items() if status == "pass"} == {f"c{n} well" for n in range(4)}
    errors = [one["error"]["type"] for one in project.records("traces.jsonl") if one["error"] is not None]  # type: ignore[index]
    assert errors == ["http_5xx"] * 4
    kept = b"".join(path.read_bytes() for path in project.run_folder.rglob("*") if path.is_file())
    assert b"sesame-canary-77" not in kept


PROMPTFOO = """
prompts: ["say {{n}}"]
providers: [{id: "file://provider.py", label: py}, {id: "exec: sh answer.sh", label: sh}]
defaultTest: {assert: [{type: contains, value: "done: say {{n}}"}]}
tests: [{vars: {n: "0"}}, {vars: {n: "1"}}, {vars: {n: "2"}}]
"""
PROVIDER = """
import os

def call_api(prompt, options, context):
    return {"output": f"done: {prompt} at {os.getcwd()}"}
"""


def test_systems_of_another_format_are_called_by_the_workers(project: Project) -> None:
    (project.folder / "promptfooconfig.yaml").write_text(PROMPTFOO)
    (project.folder / "provider.py").write_text(PROVIDER)
    (project.folder / "answer.sh").write_text('echo "done: $1 at $(pwd)"\n')
    code, said = project.run("run", "promptfooconfig.yaml", "--executor", "ray", "--out", "runs")
    assert code == 0, said
    assert list(project.verdicts().values()) == ["pass"] * 6
    answers = [str(one["output"]["final_answer"]) for one in project.records("traces.jsonl")]  # type: ignore[index]
    assert not [answer for answer in answers if str(project.folder) in answer]  # a copy of the suite's folder


def test_files_of_workspaces_come_back(project: Project) -> None:
    (project.folder / "start").mkdir()
    (project.folder / "start" / "old.txt").write_text("old")
    project.suite(4, [function("changing")], workspace={"type": "tempdir_snapshot", "copy_from": "start"})
    code, said = project.run("run", "eval.yaml")
    assert code == 0, said
    found = sorted(project.run_folder.rglob("artifact.json"))
    assert [json.loads(path.read_text())["diff"]["added"] for path in found] == [["new.txt"]] * 4
    assert {path.read_text() for path in project.run_folder.rglob("after/new.txt")} == {f"from c{n}" for n in range(4)}
    assert len([*project.run_folder.rglob("after/old.txt")]) == 4


def test_a_call_that_blocks_its_worker_is_a_timeout_and_no_other_cell_is_lost(project: Project) -> None:
    project.suite(12, [function("blocking", timeout_seconds=3)])
    code, said = project.run("run", "eval.yaml")
    assert code == 3, said
    [trace] = [one for one in project.records("traces.jsonl") if one["error"] is not None]
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
    lost = [one for one in project.records("traces.jsonl") if "retried" in one["extra"]]  # type: ignore[operator]
    assert lost
    assert {error["type"] for one in lost for error in one["extra"]["retried"]} == {"worker_lost"}  # type: ignore[index]
    assert 80 < len(project.calls()) <= 80 + 8


def test_a_cell_that_ends_its_workers_is_an_error_alone(project: Project) -> None:
    project.suite(12, [function("ending")])
    code, said = project.run("run", "eval.yaml")
    assert code == 3, said
    errors = {name for name, status in project.verdicts().items() if status != "pass"}
    assert errors == {"c3 ending"}
    [trace] = [one for one in project.records("traces.jsonl") if one["error"] is not None]
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
