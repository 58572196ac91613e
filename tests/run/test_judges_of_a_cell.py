"""Judges of one cell call their models at the same time, unless the suite's format evaluates one after another."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from evalwright.formats.loading import load_suite
from evalwright.model.plan import EvaluatorSpec
from evalwright.model.result import CaseVerdict
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run
from run.suites import suite

HOLDS = {"score": 1.0, "assertions": [{"passed": True, "reason": "r"}]}


class Meeting(ThreadingHTTPServer):
    """A model on loopback. A call waits some seconds for a second one: `met` says whether that came meanwhile."""

    def __init__(self, patience: float) -> None:
        super().__init__(("127.0.0.1", 0), _Call)
        self.both, self.patience = threading.Barrier(2), patience
        self.met: list[bool] = []

    def wait(self) -> None:
        try:
            self.both.wait(self.patience)
            self.met.append(True)
        except threading.BrokenBarrierError:
            self.both.reset()
            self.met.append(False)


class _Call(BaseHTTPRequestHandler):
    server: Meeting

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.wait()
        message = {"role": "assistant", "content": json.dumps(HOLDS)}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        body = {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
        answer = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Nothing on the screen."""


@contextmanager
def meeting(patience: float) -> Iterator[tuple[Meeting, str]]:
    server = Meeting(patience)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server, f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def verdicts(file: Path) -> list[str]:
    suite = load_suite(file)
    suite.out = file.parent / "runs"
    reader, _ = open_run(run_suite(suite).run_dir)
    return [verdict.status for verdict in reader.verdicts(CaseVerdict)]


@pytest.mark.parametrize("rule", ["evaluators", "bands"])
def test_judges_of_a_native_suite_call_at_the_same_time_whatever_decides(tmp_path: Path, rule: str) -> None:
    (tmp_path / "cases.yaml").write_text("cases: [{id: a, input: {q: hello}}]")
    (tmp_path / "agent.py").write_text("def answer(case):\n    return {'final_answer': 'hello'}\n")
    with meeting(30) as (server, address):
        judge = {"type": "llm_judge", "config": {"model": "m", "base_url": address, "nl_assertions": ["is polite"]}}
        system = {"name": "agent", "adapter": "python_function", "target": "agent:answer"}
        whole = {
            "eval": {"name": "x"},
            "dataset": {"type": "yaml", "path": "cases.yaml"},
            "systems": [system],
            "evaluators": [{"name": "first", **judge}, {"name": "second", **judge}],
            "pass_criteria": {"rule": rule},
            "output": {"type": "local_files", "path": "runs"},
        }
        (tmp_path / "eval.yaml").write_text(json.dumps(whole))
        assert verdicts(tmp_path / "eval.yaml") == ["pass"]
    assert server.met == [True, True]


def test_judges_of_agentv_call_one_after_another(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    with meeting(0.2) as (server, address):
        model = {"name": "judge", "provider": "openai", "model": "m", "base_url": address}
        targets = [{"name": "default", "provider": "mock", "response": "hello", "judge_target": "judge"}, model]
        (tmp_path / "targets.yaml").write_text(json.dumps({"targets": targets}))
        judges = [{"name": "first", "type": "llm_judge"}, {"name": "second", "type": "llm_judge"}]
        case = {"id": "a", "expected_outcome": "x", "input": "hello", "execution": {"evaluators": judges}}
        (tmp_path / "EVAL.yaml").write_text(json.dumps({"name": "suite", "evalcases": [case]}))
        assert verdicts(tmp_path / "EVAL.yaml") == ["pass"]
    assert server.met == [False, False]


@pytest.mark.parametrize(("seconds", "passed"), [(8.0, True), (0.1, False)])
def test_an_evaluator_with_a_limit_of_its_own_has_that_beside_the_one_of_the_run(tmp_path, seconds, passed):
    command = {"cmd": ["sleep", "0.4"], "cwd": str(tmp_path), "timeout_seconds": seconds}
    made = suite(
        tmp_path, ["x"], evaluators=[EvaluatorSpec("waits", "command", command)], evaluator_timeout_seconds=0.1
    )
    cells = run_suite(made).summary.variants[0].cells
    assert (cells["pass"], cells["error"]) == ((1, 0) if passed else (0, 1))
