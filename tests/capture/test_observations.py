"""Spans of observed steps and of model calls."""

import asyncio

import pytest
from opentelemetry import trace as otel

from evalwright.capture.listeners import init, listening
from evalwright.capture.observations import observe, start_observation
from evalwright.capture.traces import metrics_of, spans_of
from evalwright.capture.tree import tree_of


@observe()
def outer(x):
    return inner(x) + 1


@observe()
def inner(x):
    return x * 2


def test_observed_calls_make_a_tree():
    with listening() as heard:
        outer(3)
    (root,) = tree_of(heard.spans)
    assert (root.name, [child.name for child in root.children]) == ("outer", ["inner"])


def test_an_error_is_named_and_raised():
    with listening() as heard, pytest.raises(KeyError), start_observation(input=1, name="step"):
        raise KeyError("x")
    assert heard.spans[0].error == "KeyError"


def test_runs_at_the_same_moment_keep_their_own_spans():
    async def app(word):
        with listening() as heard, start_observation(input=word, name=word):
            await asyncio.sleep(0)
        return [span.name for span in heard.spans]

    async def both():
        return await asyncio.gather(app("a"), app("b"))

    assert asyncio.run(both()) == [["a"], ["b"]]


def model_call():
    init()
    tracer = otel.get_tracer("test")
    with listening() as heard, start_observation(input="q", name="agent"), tracer.start_as_current_span("call") as span:
        span.set_attribute("openinference.span.kind", "LLM")
        span.set_attribute("llm.model_name", "gpt-x")
        span.set_attribute("llm.token_count.prompt", 11)
        span.set_attribute("llm.token_count.completion", 7)
        span.set_attribute("llm.output_messages.0.message.role", "assistant")
        span.set_attribute("llm.output_messages.0.message.content", "yo")
    return heard.spans


def test_a_model_call_lies_below_the_step_that_made_it():
    agent, call = spans_of(model_call())
    assert (call.kind, call.name, call.parent_id) == ("llm", "gpt-x", agent.id)


def test_tokens_of_model_calls_are_counted():
    metrics = metrics_of(model_call())
    assert (metrics.token_input, metrics.token_output) == (11, 7)
