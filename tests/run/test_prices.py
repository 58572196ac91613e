"""What a cell cost by the price table, where the system does not say."""

import pytest

from evalwright.model.plan import Price, Variant
from evalwright.model.trace import Metrics, Span
from evalwright.run.steps.price import Pricing
from evalwright.testing import a_plan, a_trace

PRICES = {"small": Price(1.0, 2.0), "large-2026": Price(10.0, 20.0)}


def cost(spans=(), model=None, prices=PRICES, **metrics) -> float | None:
    config = {} if model is None else {"model": model}
    trace = a_trace(variant_name="v", spans=[*spans], metrics=Metrics(**metrics))
    Pricing(a_plan(variants=[Variant("v", "python_function", config)], prices=prices)).fill(trace)
    return trace.metrics.cost_usd


def call(given: object = 1_000_000, said: object = 0, model: str = "small", kind: str = "llm", **more: object) -> Span:
    attributes = {"request_model": model, "input_tokens": given, "output_tokens": said, **more}
    return Span("s", "call", kind=kind, attributes=attributes)


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
    ],
)
def test_captured_calls_are_summed_if_each_has_a_price_and_tokens(spans, dollars):
    assert cost(spans) == dollars
    assert cost(spans, prices={}) is None
    assert cost(spans, cost_usd=0.25) == 0.25, "what the system said stands"


def test_the_tokens_of_a_variant_with_a_model_are_priced():
    assert cost([call()], model="small", token_input=2_000_000, token_output=1_000_000) == 4.0
    assert cost([call()], model="small") is None
