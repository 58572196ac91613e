"""Systems on the machines of a real Ray cluster: functions, commands, services, models, and files that come back."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from run.executors.far_projects import Project, all_pass, function

pytestmark = pytest.mark.slow("starts the machines of a cluster")


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
        str(record["output"]["final_answer"])
        for record in project.records("traces.jsonl")
        if record["variant_name"] == "waiting"
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
    errors = [record["error"]["type"] for record in project.records("traces.jsonl") if record["error"] is not None]  # type: ignore[index]
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
    answers = [str(record["output"]["final_answer"]) for record in project.records("traces.jsonl")]  # type: ignore[index]
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
