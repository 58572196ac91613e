"""Programs that judge, as AgentV's own SDK reads and writes them."""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime
from typing import Any

import pytest

from evalwright.errors import EvaluatorError
from evalwright.evaluators.code.judge import CodeJudge
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Output, Trace

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OPENAI_CALL = {"id": "1", "type": "function", "function": {"name": "find", "arguments": "{}"}}
SAID = [
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [OPENAI_CALL, {"tool": "read", "input": {}, "output": "text", "durationMs": None}],
    },
    {"role": "assistant", "content": "hello"},
]


def judged(program: str, **settings: Any) -> Evaluation:
    case = Case("a", "hi", extra={"expected_outcome": "greets", "input_messages": [{"role": "user", "content": "hi"}]})
    trace = Trace("a", "default", NOW, NOW, 0, None, Output("hello"), extra={"output_messages": SAID})
    return asyncio.run(CodeJudge([sys.executable, "-c", program], lenient=True, **settings).evaluate(case, trace))


def nulls(value: Any, place: str = "") -> list[str]:
    if isinstance(value, dict):
        return [found for key, inner in value.items() for found in nulls(inner, f"{place}.{key}")]
    if isinstance(value, list):
        return [found for inner in value for found in nulls(inner, f"{place}[]")]
    return [place] if value is None else []


def payload(**settings: Any) -> Any:
    program = "import json, sys; print(json.dumps({'score': 1, 'details': json.load(sys.stdin)}))"
    return judged(program, **settings).detail["details"]


def test_what_was_not_measured_is_left_out() -> None:
    given = payload()
    assert nulls(given) == [".config"]
    assert {"cost_usd", "token_usage"}.isdisjoint(given)
    assert {"cost_usd", "token_usage", "tool_durations"} & given["trace_summary"].keys() == {"tool_durations"}


def test_the_names_of_all_releases_are_there() -> None:
    given = payload()
    assert (given["expected_outcome"], given["criteria"]) == ("greets", "greets")
    assert given["candidate_answer"] == given["answer"] == given["candidateAnswer"] == "hello"
    assert given["input"] == given["input_messages"] == [{"role": "user", "content": "hi"}]
    assert given["trace_summary"]["tool_calls_by_name"] == given["traceSummary"]["tool_calls"] == {"find": 1, "read": 1}
    assert [call["tool"] for call in given["messages"][1]["tool_calls"]] == ["find", "read"]
    assert given["messages"][1]["tool_calls"][0]["function"] == OPENAI_CALL["function"]
    assert given["start_time"] == given["trace_summary"]["start_time"]


def test_the_trace_has_counts_messages_and_events() -> None:
    trace = payload()["trace"]
    assert (trace["event_count"], trace["tool_calls"], trace["error_count"]) == (2, {"find": 1, "read": 1}, 0)
    assert [message["role"] for message in trace["messages"]] == ["user", "assistant", "assistant"]
    assert [(event["event_id"], event["ordinal"], event["type"]) for event in trace["events"]] == [
        ("message-0", 0, "message"),
        ("message-1", 1, "message"),
        ("message-1-tool-0", 2, "tool_call"),
        ("message-1-tool-1", 3, "tool_call"),
        ("message-1-tool-1-result", 4, "tool_result"),
        ("message-2", 5, "message"),
        ("final-response", 6, "final_response"),
    ]
    assert trace["events"][2] == {
        "event_id": "message-1-tool-0",
        "parent_event_id": "message-1",
        "ordinal": 2,
        "type": "tool_call",
        "tool": {"name": "find", "call_id": "1", "status": "ok", "input": {}},
        "metadata": {"message_index": 1, "tool_index": 0},
    }
    assert trace["events"][-1]["message"] == {"role": "assistant", "content": "hello"}


def test_output_is_the_text_where_a_newer_program_reads_it() -> None:
    assert payload(newer=True)["output"] == "hello"
    assert "output" not in payload()


@pytest.mark.parametrize(
    ("said", "score"),
    [
        ("'assertions': [YES, NO]", 0.5),
        ("'assertions': [YES, NO], 'score': 1", 1.0),
        ("'assertions': [YES, NO], 'score': None", 0.5),
        ("'hits': [], 'misses': []", 0.0),
    ],
)
def test_assertions_are_hits_and_misses(said: str, score: float) -> None:
    yes, no = "{'text': 'is kind', 'passed': True, 'evidence': 'hello'}", "{'text': 'is long', 'passed': False}"
    program = f"import json; print(json.dumps({{{said.replace('YES', yes).replace('NO', no)}}}))"
    evaluation = judged(program)
    assert evaluation.score == score
    if "YES" in said:
        assert (evaluation.hits, evaluation.misses) == (["is kind (hello)"], ["is long"])


def test_a_newer_program_may_speak_by_its_exit_code() -> None:
    passed, failed = judged("print('good')", newer=True), judged("print('bad'); exit(1)", newer=True)
    assert (passed.score, passed.hits) == (1.0, ["good"])
    assert (failed.score, failed.misses) == (0.0, ["bad"])
    with pytest.raises(EvaluatorError, match="no such module"):
        judged("import sys; sys.exit('no such module')", newer=True)
    assert judged("print('good')").score == 0.0


def test_the_end_of_both_streams_is_told_when_a_program_fails() -> None:
    with pytest.raises(EvaluatorError, match=r"exit code 3: why; standard output: .*because"):
        judged("import sys; print('because'); print('why', file=sys.stderr); sys.exit(3)")
