"""Traces that cases of a dataset bring with them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from evalwright.registry import load
from formats.native.dataset_files import cases, lines
from formats.suites import TRACE, refusal


def recorded(folder: Path, kind: str, trace: Any, key: str = "embedded_trace", embed: bool = True) -> Any:
    record = {"id": "a", "input": {}, key: trace}
    data = lines(record) if kind == "jsonl" else json.dumps({"cases": [record]})
    (case,) = cases(folder, kind, data, embed_full_trace=embed)
    return case.recorded


@pytest.mark.parametrize("key", ["embedded_trace", "recorded"])
@pytest.mark.parametrize("kind", ["fixture", "jsonl"])
def test_an_embedded_trace_is_recorded_with_its_defaults(tmp_path: Path, kind: str, key: str) -> None:
    trace = recorded(tmp_path, kind, TRACE, key)
    assert (trace["output"]["final_answer"], trace["tool_calls"]) == ("hello", [])


@pytest.mark.parametrize("kind", ["fixture", "jsonl"])
def test_a_list_of_traces_is_one_for_each_trial(tmp_path: Path, kind: str) -> None:
    assert [trace["trial"] for trace in recorded(tmp_path, kind, [TRACE, {**TRACE, "trial": 1}])] == [0, 1]


@pytest.mark.parametrize(("kind", "taken"), [("yaml", False), ("fixture", False), ("jsonl", True)])
def test_without_being_asked_only_json_lines_take_an_embedded_trace(tmp_path: Path, kind: str, taken: bool) -> None:
    assert (recorded(tmp_path, kind, TRACE, embed=False) is not None) == taken


def test_times_of_a_hand_written_trace_are_utc(tmp_path: Path) -> None:
    data = f"cases:\n- id: a\n  input: {{}}\n  embedded_trace: {json.dumps(TRACE)}\n"
    data = data.replace('"2026-05-01T10:00:00Z"', "2026-05-01 10:00:00")
    (case,) = cases(tmp_path, "fixture", data, embed_full_trace=True)
    assert case.recorded["started_at"] == "2026-05-01T10:00:00Z"


@pytest.mark.parametrize(
    ("trace", "key", "said"),
    [
        ({}, "embedded_trace", "case_id"),
        ("text", "embedded_trace", "not a trace"),
        ([], "embedded_trace", "empty list"),
        ([TRACE, {**TRACE, "latency_ms": "x"}], "embedded_trace[1].latency_ms", "int"),
        ({**TRACE, "messages": [{"role": 1}]}, "embedded_trace.messages[0].role", "str"),
        ({**TRACE, "started_at": "yesterday"}, "embedded_trace.started_at", "datetime"),
        (None, "embedded_trace", "embed_full_trace"),
    ],
)
@pytest.mark.parametrize("kind", ["fixture", "jsonl"])
def test_what_is_no_trace_is_told_with_its_field(tmp_path: Path, kind: str, trace: Any, key: str, said: str) -> None:
    (problem,) = refusal(lambda: recorded(tmp_path, kind, trace)).problems
    assert problem.key == (key if kind == "jsonl" else f"cases[0].{key}")
    assert said in problem.message


@pytest.mark.parametrize("recorded", [{"schema_version": "2.0"}, [{"schema_version": 2}]])
def test_a_recorded_trace_of_a_newer_version_is_a_mistake(tmp_path: Path, recorded: object) -> None:
    (tmp_path / "data").write_text(lines({"id": "a", "input": {}, "embedded_trace": recorded}))
    reading = load("datasets", "jsonl")(tmp_path / "data", "suite", {"embed_full_trace": True})
    (problem,) = refusal(lambda: list(reading)).problems
    assert re.fullmatch(r"embedded_trace.*schema_version", problem.key)
