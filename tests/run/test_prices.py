"""What a cell cost by the price table, where the system does not say."""

import pytest

from evalwright.model.plan import Price, Variant
from evalwright.model.trace import Metrics, Span
from evalwright.run.steps.price import Pricing
from evalwright.testing import a_plan, a_trace

PRICES = {"small": Price(1.0, 2.0, cached_input_per_million_tokens=0.25), "large-2026": Price(10.0, 20.0)}


def priced(variant: Variant, prices=PRICES, spans=(), **metrics) -> Metrics:
    trace = a_trace(variant_name=variant.name, spans=[*spans], metrics=Metrics(**metrics))
    Pricing(a_plan(variants=[variant], prices=prices)).fill(trace)
    return trace.metrics


def cost(spans=(), model=None, prices=PRICES, **metrics) -> float | None:
    config = {} if model is None else {"model": model}
    return priced(Variant("v", "python_function", config), prices, spans, **metrics).cost_usd


def call(given: object = 1_000_000, said: object = 0, model: str = "small", kind: str = "llm", **more: object) -> Span:
    attributes = {"request_model": model, "input_tokens": given, "output_tokens": said, **more}
    return Span("s", "call", kind=kind, attributes=attributes)


def native(given: int, said: int) -> Span:
    """A call as OpenTelemetry's own instrumentations record it."""
    used = {"gen_ai.usage.input_tokens": given, "gen_ai.usage.output_tokens": said}
    return Span("n", "chat small", kind="llm", attributes={"gen_ai.request.model": "small", **used})


def openinference(given: int, said: int, **more: int) -> Span:
    used = {"llm.token_count.prompt": given, "llm.token_count.completion": said}
    return Span("o", "ChatModel", kind="llm", attributes={"llm.model_name": "small", **used, **more})


@pytest.mark.parametrize(
    ("spans", "dollars"),
    [
        ([], None),
        ([call(), call(0, 1_000_000)], 3.0),
        ([call(), call(kind="tool")], 1.0),
        ([call(), Span("s", "thought", kind="llm")], 1.0),
        ([call(model="large", response_model="large-2026")], 10.0),
        ([call(model="large-2026", response_model="unknown")], 10.0),
        ([call(), call(model="unknown")], None),
        ([call(), call(given=None)], None),
        ([call(), call(said="many")], None),
        ([call(), call(0, 0)], None),
        ([call(cache_read_tokens=1_000_000)], 0.25),
        ([native(1_000_000, 1_000_000)], 3.0),
        ([openinference(1_000_000, 1_000_000)], 3.0),
        ([openinference(1_000_000, 0, **{"llm.token_count.prompt_details.cache_read": 1_000_000})], 0.25),
    ],
)
def test_captured_calls_are_summed_if_each_has_a_price_and_tokens(spans, dollars):
    assert cost(spans) == dollars
    assert cost(spans, prices={}) is None
    assert cost(spans, cost_usd=0.25) == 0.25, "what the system said stands"


@pytest.mark.parametrize("counted", [("outer", "inner"), ("outer",), ("inner",)])
def test_a_call_that_two_instrumentations_recorded_costs_once(counted):
    outer, inner = (call() if one in counted else call(0, 0) for one in ("outer", "inner"))
    outer.id, inner.id, inner.parent_id = "outer", "inner", "step"
    step = Span("step", "request", parent_id="outer")
    assert cost([outer, step, inner]) == 1.0


def test_a_failed_call_without_tokens_costs_nothing():
    failed = call(0, 0)
    failed.status = "error"
    assert cost([failed, call()]) == 1.0


def test_the_tokens_of_a_variant_with_a_model_are_priced():
    assert cost([call()], model="small", token_input=2_000_000, token_output=1_000_000) == 4.0
    assert cost([call()], model="small") is None
    assert cost(model="small", token_output=1_000_000) == 2.0
    assert cost(model="unknown", token_input=1_000_000) is None


@pytest.mark.parametrize("adapter", ["chat", "openai_chat", "anthropic"])
def test_half_of_the_tokens_of_a_chat_are_not_its_cost(adapter):
    chat = Variant("v", adapter, {"model": "small"})
    assert priced(chat, token_input=1_000_000).cost_usd is None
    assert priced(chat, token_output=1_000_000).cost_usd is None
    assert priced(chat, token_input=1_000_000, token_output=0).cost_usd == 1.0


THINKING = {"small": Price(1.0, 2.0, 3.0, 0.25, 4.0)}


def test_thinking_tokens_have_a_price_of_their_own_and_are_said_apart():
    variant = Variant("v", "python_function", {"model": "small"})
    found = priced(variant, THINKING, token_thinking=2_000_000, token_output=1_000_000)
    assert (found.cost_usd, found.cost_thinking_usd) == (8.0, 6.0)
    found = priced(variant, THINKING, token_thinking=1_000_000, cost_thinking_usd=0.5)
    assert (found.cost_usd, found.cost_thinking_usd) == (3.0, 0.5), "what the system said stands"
    assert priced(variant, THINKING, token_input=1).cost_thinking_usd is None


@pytest.mark.parametrize(
    ("custom", "dollars"),
    [
        ({"cache_read_tokens": 1_000_000}, 1.25),
        ({"cache_write_tokens": 1_000_000}, 5.0),
        ({"cache_read_tokens": -1_000_000, "cache_write_tokens": "1"}, 2.0),
    ],
)
def test_tokens_of_a_cache_have_the_prices_of_the_cache(custom, dollars):
    assert cost(model="small", prices=THINKING, token_input=2_000_000, custom=custom) == dollars
