"""A call of a model counts once, whoever recorded it: a framework, its library, or both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import warm

pytest.importorskip("opentelemetry.sdk", reason="needs the extra openinference")

AGENT = """
import json
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

trace.set_tracer_provider(TracerProvider())
CALL = "llm.output_messages.0.message.tool_calls.0.tool_call"

def openinference(scope, question, tokens_in=10, tokens_out=2):
    return trace.get_tracer(scope).start_span("call", attributes={
        "openinference.span.kind": "LLM", "llm.model_name": "small",
        "llm.token_count.prompt": tokens_in, "llm.token_count.completion": tokens_out,
        "llm.token_count.prompt_details.cache_read": tokens_in // 2,
        # as the Responses API is recorded: the first message is kept for instructions
        "llm.input_messages.1.message.role": "user", "llm.input_messages.1.message.content": question,
        "llm.output_messages.0.message.role": "assistant",
        f"{CALL}.function.name": "look_up", f"{CALL}.function.arguments": json.dumps({"q": question}),
    })

def native(scope, question, **content):
    return trace.get_tracer(scope).start_span("chat small", attributes={
        "gen_ai.operation.name": "chat", "gen_ai.request.model": "small",
        "gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 2,
        "gen_ai.usage.cache_read.input_tokens": 5, **content,
    })

def framework(question):  # its spans are not made current
    outer = openinference("framework", question)
    openinference("library", question).end()
    outer.end()

def streaming_framework(question):  # whose library does not count tokens
    outer = openinference("framework", question)
    openinference("library", question, 0, 0).end()
    outer.end()

def library(question):
    with trace.use_span(openinference("library", question), end_on_exit=True):
        native("sdk", question).end()

def stream(question):  # neither span is within the other, and each counts in its own way
    outer = native("instrumentation", question, **{"gen_ai.response.id": question, "gen_ai.usage.output_tokens": 3})
    inner = native("sdk", question, **{"gen_ai.response.id": question})
    outer.end()
    inner.end()

def two_libraries(question):  # at the same time, one of which does not count its tokens
    first, second = openinference("library", question), openinference("other", f"{question}b", 0, 0)
    second.end()
    first.end()

def at_once(question):  # the same call twice, at the same time
    first, second = openinference("library", question), openinference("library", question)
    second.end()
    first.end()

def conventions(question):
    call = {"type": "tool_call", "id": "c", "name": "look_up", "arguments": {"q": question}}
    reply = json.dumps([{"role": "assistant", "parts": [call]}])
    native("instrumentation", question, **{"gen_ai.output.messages": reply}).end()

def answer(case, variant):
    question = case["input"]["user_message"]
    globals()[question](f"{question} 1")
    globals()[question](f"{question} 2")
    return {"final_answer": question}
"""
SUITE = """
schema_version: "1.0"
eval: {name: calls}
dataset: {type: jsonl, path: cases.jsonl}
systems: [{name: main, adapter: python_function, target: "agent:answer"}]
evaluators: [{name: answered, type: answered}]
metrics: {price_table_path: prices.yaml}
output: [{type: local_files, path: runs}]
"""
PRICES = """
table_version: "1"
freshness_date: 2026-01-01
models:
  small:
    input_per_million_tokens: 1000000
    output_per_million_tokens: 1000000
    cached_input_per_million_tokens: 100000
"""
ONCE = ("framework", "streaming_framework", "library", "conventions")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder: Path = tmp_path_factory.mktemp("calls")
    cases = [
        {"schema_version": "1.0", "id": one, "input": {"user_message": one}}
        for one in (*ONCE, "stream", "two_libraries", "at_once")
    ]
    lines = "".join(json.dumps({**case, "expected": {"facts": {}}}) + "\n" for case in cases)
    texts = {"agent.py": AGENT, "eval.yaml": SUITE, "prices.yaml": PRICES, "cases.jsonl": lines}
    for name, text in texts.items():
        (folder / name).write_text(text)
    done = warm.run(["-m", "evalwright", "run", "eval.yaml"], cwd=folder)
    (written,) = folder.glob("runs/*/traces.jsonl")
    traces = [json.loads(line) for line in written.read_text().splitlines()]
    assert len(traces) == len(cases), done.stdout + done.stderr
    return {trace["case_id"]: trace for trace in traces}


@pytest.mark.parametrize("how", ONCE)
def test_each_call_counts_once_whoever_recorded_it(found, how):
    trace = found[how]
    assert (trace["metrics"]["token_input"], trace["metrics"]["token_output"]) == (20, 4)
    assert [(call["name"], call["arguments"]) for call in trace["tool_calls"]] == [
        ("look_up", {"q": f"{how} 1"}), ("look_up", {"q": f"{how} 2"})
    ]  # fmt: skip
    assert trace["metrics"]["cost_usd"] == pytest.approx(2 * (5 + 0.5 + 2)), "half of the input was cached"


def test_one_response_is_that_of_one_call(found):
    assert found["stream"]["metrics"]["token_output"] == 4


def test_calls_of_one_library_at_the_same_time_are_several(found):
    trace = found["at_once"]
    assert (trace["metrics"]["token_input"], len(trace["tool_calls"])) == (40, 4)


def test_calls_of_two_libraries_with_different_replies_are_several(found):
    assert len(found["two_libraries"]["tool_calls"]) == 4


def test_the_call_of_a_library_is_below_that_of_its_framework(found):
    spans = found["framework"]["spans"]
    assert [span["parent_id"] for span in spans] == [None, spans[0]["id"], None, spans[2]["id"]]


def test_messages_are_kept_whichever_number_the_first_one_has(found):
    questions = [span["input"][0]["content"][0]["text"] for span in found["at_once"]["spans"]]
    assert questions == ["at_once 1", "at_once 1", "at_once 2", "at_once 2"]


def recorded(**attributes: Any):
    """A model call with further attributes, as it is captured."""
    from opentelemetry.sdk.trace import TracerProvider

    from evalwright.capture.openinference import llm_span_of

    span = TracerProvider().get_tracer("library").start_span("call", attributes={"openinference.span.kind": "LLM"})
    span.set_attributes({name.replace("__", "."): value for name, value in attributes.items()})
    span.end()
    return llm_span_of(span)


@pytest.mark.parametrize("name", ["llm__token_count__prompt_details__cache_read", "llm__token_count__cache_read"])
def test_cached_tokens_have_the_name_of_openinference_or_of_pixie(name):
    assert recorded(**{name: 3}).cache_read_tokens == 3


@pytest.mark.parametrize("tokens", ["many", [1, 2], -3, float("inf"), float("nan")])
def test_what_is_no_number_of_tokens_counts_as_none(tokens):
    call = recorded(llm__token_count__prompt=tokens, llm__token_count__completion="7")
    assert (call.input_tokens, call.output_tokens) == (0, 7)


@pytest.mark.parametrize(("numbers", "kept"), [((0, 1), 2), ((1, 2), 2), ((0, 2), 1), ((2, 3), 0)])
def test_messages_are_numbered_from_0_or_1_and_a_gap_ends_them(numbers, kept):
    attributes = {f"llm__input_messages__{number}__message__role": "user" for number in numbers}
    attributes |= {f"llm__input_messages__{number}__message__content": "a" for number in numbers}
    assert len(recorded(**attributes).input_messages) == kept
