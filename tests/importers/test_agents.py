"""Transcripts of coding agents: what all of their formats share."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from unittest.mock import ANY

import pytest

from evalwright.errors import InputError
from evalwright.importers.pricing import ListPricing
from evalwright.registry import load
from importers.transcripts import imported, session_line, used, written


@pytest.mark.parametrize(("sessions", "name"), [(["first"], "first"), (["first", "second"], "out")])
def test_a_suite_is_named_after_its_only_file_or_its_folder(tmp_path: Path, sessions: list[str], name: str) -> None:
    lines = [session_line(0, "user", "why?"), session_line(1, "assistant", "Because.", "m1")]
    imported(tmp_path, "claude-code", *(written(tmp_path / f"{session}.jsonl", lines) for session in sessions))
    assert f"name: {name}\n" in (tmp_path / "out" / "eval.yaml").read_text()


def test_two_files_of_one_session_are_its_trials(tmp_path):
    files = [
        written(tmp_path / name, [session_line(0, "user", "q"), session_line(1, "assistant", name, "m")])
        for name in ("a.jsonl", "b.jsonl")
    ]
    done, (case,) = imported(tmp_path, "claude-code", *files)
    assert done.trials == 2
    assert [trace["output"]["final_answer"] for trace in case["embedded_trace"]] == ["a.jsonl", "b.jsonl"]


def test_a_line_that_breaks_off_at_the_end_is_dropped_with_a_warning_and_only_there(tmp_path):
    whole = json.dumps(session_line(0, "assistant", "hi", "m"))
    cut = tmp_path / "cut.jsonl"
    cut.write_text(whole + '\n{"type": "assis')
    _, (case,) = imported(tmp_path, "claude-code", cut)
    assert case["embedded_trace"]["extra"]["warnings"]
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"type": "assis\n' + whole + "\n[]\n")
    with pytest.raises(InputError) as caught:
        imported(tmp_path / "other", "claude-code", broken)
    assert [(problem.line, "JSON" in problem.message) for problem in caught.value.problems] == [(1, True), (3, True)]
    assert not (tmp_path / "other" / "out").exists()


def test_packed_files_are_read(tmp_path):
    packed = tmp_path / "session.jsonl.gz"
    packed.write_bytes(gzip.compress(json.dumps(session_line(0, "assistant", "hi", "m")).encode()))
    _, (case,) = imported(tmp_path, "claude-code", packed)
    assert case["embedded_trace"]["output"]["final_answer"] == "hi"


def codex_session(name: str) -> list[dict]:
    item = {"id": "item_0", "type": "agent_message", "text": f"Done {name}."}
    return [{"type": "thread.started", "thread_id": name}, {"type": "item.completed", "item": item}]


def gemini_session(name: str) -> list[dict]:
    answer = {"type": "message", "role": "assistant", "content": f"Done {name}."}
    return [{"type": "init", "session_id": name}, answer, {"type": "result", "status": "success", "stats": {}}]


def copilot_session(name: str) -> list[dict]:
    answer = {"type": "assistant.message", "data": {"content": f"Done {name}."}}
    return [answer, {"type": "result", "sessionId": name, "exitCode": 0}]


@pytest.mark.parametrize(
    ("format", "session"), [("codex", codex_session), ("gemini", gemini_session), ("copilot", copilot_session)]
)
def test_sessions_one_after_another_in_one_file_are_cases_of_their_own(tmp_path, format, session):
    file = written(tmp_path / "log.jsonl", [*session("a"), *session("b")])
    _, cases = imported(tmp_path, format, file)
    answers = {case["id"]: case["embedded_trace"]["output"]["final_answer"] for case in cases}
    assert answers == {"a": "Done a.", "b": "Done b."}


def test_costs_are_worked_out_only_where_asked_and_of_one_model_with_a_price(tmp_path):
    def priced(name: str, *models: str) -> tuple[object, object]:
        lines = [
            session_line(i, "assistant", str(i), f"m{i}", message={"model": model, **used(1_000_000, 100_000)})
            for i, model in enumerate(models)
        ]
        place = written(tmp_path / name / "s.jsonl", lines)
        pricing = ListPricing(lambda model, *tokens: 3.0 * tokens[0] / 1e6 if model == "known" else None, "a table")
        done = load("importers", "claude-code").import_files([place], tmp_path / name / "out", None, pricing)
        [case] = map(json.loads, (tmp_path / name / "out" / "cases.jsonl").read_text().splitlines())
        trace = case["embedded_trace"]
        return trace["metrics"]["cost_usd"], trace["extra"].get("cost_from"), done.notes[-1]

    assert priced("one", "known", "known")[:2] == (6.0, "a table: known")
    assert priced("two", "known", "other") == (None, None, ANY)
    assert (
        priced("none", "nobody's")[2] == '1 recording of the model "nobody\'s", which has no price: the cost is unknown'
    )


AT_NO_TIME = {"timestamp": 1_772_614_800_000_000}
"""In microseconds, which no agent writes."""


@pytest.mark.parametrize(
    ("format", "record"),
    [
        ("claude-code", {"type": "assistant", "sessionId": "s", "message": {"content": "Done."}, **AT_NO_TIME}),
        ("codex", {"type": "event_msg", "payload": {"type": "agent_message", "message": "Done."}, **AT_NO_TIME}),
        ("gemini", {"type": "message", "role": "assistant", "content": "Done.", **AT_NO_TIME}),
        ("copilot", {"type": "assistant.message", "data": {"content": "Done.", "parentToolCallId": "t"}, **AT_NO_TIME}),
        ("opencode", {"type": "text", "part": {"type": "text", "text": "Done."}, "timestamp": "noon"}),
        (
            "atif",
            {
                "schema_version": "ATIF-v1.6", "session_id": "s", "agent": {"name": "a", "version": "1"},
                "steps": [{"step_id": 1, "source": "agent", "message": "Done.", **AT_NO_TIME}],
            },
        ),
    ],
)  # fmt: skip
def test_a_time_that_cannot_be_read_is_told_once(tmp_path, format, record):
    said = [{"type": "message", "role": "user", "content": "fix"}] if format in ("gemini", "copilot") else []
    done, _ = imported(tmp_path, format, written(tmp_path / "x.jsonl", [*said, record]))
    assert done.notes == ["lost: times that cannot be read: 1"]
