"""Whatever a service does, its cell ends as one clear error, and the run ends within bounds."""

from __future__ import annotations

import json

import pytest
import yaml

from faults.harness import Project, lines
from faults.hostile_service import BUSY, CAP, KINDS, LATE, WRONG, hostile_service

ATTEMPTS = 3
ASKED_AGAIN = {*BUSY, "status 429"}
"""What a service says that wants to be asked later; every other answer is given once."""
CONCURRENCY = 6
MOST_TRIES = 5
"""Of one call of a model."""
HTTP = {"adapter": "http", "provider": "simple", "max_response_bytes": CAP}
STREAMED = {"stream": True, "stream_format": "json_lines", "stream_event_field": "$.output"}
AGAIN = pytest.mark.slow("waits for each late reply again")


def run_against(folder, kinds, **system):
    cases = [{"id": kind, "input": {"kind": kind}} for kind in kinds]
    (folder / "cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases))
    suite = {
        "eval": {"name": "hostile"},
        "dataset": {"type": "jsonl", "path": "cases.jsonl"},
        "systems": [{"name": "v", "timeout_seconds": 4, **system}],
        "run": {"max_concurrency": CONCURRENCY, "retry": {"max_attempts": ATTEMPTS, "on": ["http_5xx"]}},
        "evaluators": [{"name": "fine", "type": "contains_text", "config": {"all_of": ["fine"]}}],
        "output": [{"type": "local_files", "path": "runs"}],
    }
    (folder / "eval.yaml").write_text(yaml.safe_dump(suite))
    project = Project(folder, {"CHAT_KEY": "sk-hush-hush-hush"})
    done = project.command("run", "eval.yaml", timeout=100)
    traces = {trace["case_id"]: trace for trace in lines(project.run_dir() / "traces.jsonl")}
    return done, traces


def test_there_are_forty_kinds_of_misbehaviour_and_more():
    assert len(KINDS) > 50


@pytest.mark.slow("a service that misbehaves in every way, twice")
@pytest.mark.parametrize("streamed", [False, pytest.param(True, marks=AGAIN)])
def test_every_kind_of_misbehaviour_is_one_clear_error(tmp_path, streamed):
    with hostile_service() as service:
        system = {**HTTP, "endpoint": f"http://127.0.0.1:{service.port}/ask", **(STREAMED if streamed else {})}
        done, traces = run_against(tmp_path, KINDS, **system)
    expected = dict.fromkeys(LATE, "timeout") | dict.fromkeys(BUSY, "http_5xx")
    expected |= dict.fromkeys(WRONG, "adapter_error") | {"fine": None}
    assert {kind: (trace["error"] or {}).get("type") for kind, trace in traces.items()} == expected, done.stderr
    messages = [trace["error"]["message"] for trace in traces.values() if trace["error"]]
    assert [message for message in messages if not message or len(message) > 1_000 or "\n" in message] == []
    assert service.asked == {kind: ATTEMPTS if kind in ASKED_AGAIN else 1 for kind in KINDS}
    assert service.most_open <= CONCURRENCY
    assert done.returncode == 3
    assert "Traceback" not in done.stderr


AT_ONCE = [
    *(f"status {status}" for status in (400, 401, 403, 404, 413, 422)), "redirect 302", "redirect 307",
    "redirect to metadata", "redirect to a file", "redirect to nothing", "body without end", "compressed bomb",
    "cut compression", "unknown compression",
]  # fmt: skip
IN_TIME = [
    "silent",
    "half a body",
    "slow bytes of headers",
    "status 503",
    "reset",
    "success with an error",
    "deep JSON",
]


@pytest.mark.slow("waits for late replies")
@pytest.mark.parametrize("adapter", ["openai_chat", "anthropic"])
def test_models_that_misbehave_are_clear_errors_too(tmp_path, adapter):
    kinds = [*AT_ONCE, *IN_TIME]
    with hostile_service() as service:
        address = f"http://127.0.0.1:{service.port}/v1"
        chat = {"model": "m", "base_url": address, "api_key_env": "CHAT_KEY", "user_template": "{{ input.kind }}"}
        done, traces = run_against(tmp_path, kinds, adapter=adapter, **chat)
    assert {kind for kind, trace in traces.items() if trace["error"]} == set(kinds), done.stderr
    assert [kind for kind in AT_ONCE if service.asked[kind] != 1] == []
    assert all(
        asked <= MOST_TRIES * (ATTEMPTS if kind in ASKED_AGAIN else 1) for kind, asked in service.asked.items()
    ), service.asked
    assert service.most_open <= CONCURRENCY
    assert "Traceback" not in done.stderr
    assert "sk-hush" not in json.dumps(traces) + done.stdout + done.stderr
