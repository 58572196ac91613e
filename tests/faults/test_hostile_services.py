"""Whatever a service does, its cell ends as one clear error, and the run ends within bounds."""

from __future__ import annotations

import json

import pytest
import yaml

from faults.harness import Project, lines
from faults.hostile_service import BUSY, CAP, KINDS, LATE, WRONG, hostile_service

ATTEMPTS = 3
CONCURRENCY = 6
STREAMED = {"stream": True, "stream_format": "json_lines", "stream_event_field": "$.output"}
NO_ERRORS_OF_A_STREAM = {"cut JSON", "deep JSON", "empty body", "no content", "fine"}
"""A stream that ends early is no error, says the format."""


def run_against(folder, kinds, port, **system):
    cases = [{"id": kind, "input": {"kind": kind}} for kind in kinds]
    (folder / "cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases))
    suite = {
        "eval": {"name": "hostile"},
        "dataset": {"type": "jsonl", "path": "cases.jsonl"},
        "systems": [
            {
                "name": "v", "adapter": "http", "provider": "simple", "endpoint": f"http://127.0.0.1:{port}/ask",
                "timeout_seconds": 2, "max_response_bytes": CAP, **system,
            }
        ],
        "run": {"max_concurrency": CONCURRENCY, "retry": {"max_attempts": ATTEMPTS, "on": ["http_5xx"]}},
        "evaluators": [{"name": "fine", "type": "contains_text", "config": {"all_of": ["fine"]}}],
        "output": [{"type": "local_files", "path": "runs"}],
    }  # fmt: skip
    (folder / "eval.yaml").write_text(yaml.safe_dump(suite))
    project = Project(folder)
    done = project.command("run", "eval.yaml", timeout=100)
    traces = {trace["case_id"]: trace for trace in lines(project.run_dir() / "traces.jsonl")}
    return done, traces


def test_there_are_forty_kinds_of_misbehaviour_and_more():
    assert len(KINDS) > 50


@pytest.mark.parametrize("streamed", [False, True])
def test_every_kind_of_misbehaviour_is_one_clear_error(tmp_path, streamed):
    with hostile_service() as service:
        done, traces = run_against(tmp_path, KINDS, service.port, **(STREAMED if streamed else {}))
    fine = NO_ERRORS_OF_A_STREAM if streamed else {"fine"}
    expected = dict.fromkeys(LATE, "timeout") | dict.fromkeys(BUSY, "http_5xx")
    expected |= dict.fromkeys(WRONG, "adapter_error") | dict.fromkeys(fine)
    assert {kind: (trace["error"] or {}).get("type") for kind, trace in traces.items()} == expected, done.stderr
    messages = [trace["error"]["message"] for trace in traces.values() if trace["error"]]
    assert [message for message in messages if not message or len(message) > 1_000 or "\n" in message] == []
    assert service.asked == {kind: ATTEMPTS if kind in BUSY else 1 for kind in KINDS}
    assert service.most_open <= CONCURRENCY
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
