"""Bounds on time, money and tokens."""

from __future__ import annotations

from typing import Any

import pytest

from evalwright.errors import EvaluatorError
from evalwright.evaluators.build import build_evaluator
from evalwright.model.trace import Metrics
from evalwright.testing import a_case, a_trace


@pytest.mark.parametrize(
    ("type_name", "config", "trace", "passed", "said"),
    [
        ("latency_under", {"max_ms": 500}, {"latency_ms": 499}, True, ""),
        ("latency_under", {"max_ms": 500}, {"latency_ms": 500}, False, "500 ms, expected under 500"),
        ("latency_under", {"max_ms": 500}, {"latency_ms": 1234567}, False, "1234567 ms"),
        ("cost_under", {"max_usd": 0.04}, {"cost_usd": 0.039}, True, ""),
        ("cost_under", {"max_usd": 0.04}, {"cost_usd": 0.04}, False, "0.04 USD, expected under 0.04"),
        ("cost_under", {"max_usd": 1}, {"cost_usd": 0.0}, True, ""),
        ("cost_under", {"max_usd": 1}, {}, False, "not reported"),
        ("thinking_tokens_under", {"max_tokens": 3}, {"token_thinking": 2}, True, ""),
        ("thinking_tokens_under", {"max_tokens": 3}, {"token_thinking": 3}, False, "expected under 3"),
        ("thinking_tokens_under", {"max_tokens": 3}, {"token_thinking": 0}, True, ""),
        ("thinking_tokens_under", {"max_tokens": 3}, {}, False, "not reported"),
        ("latency_first_token_under", {"max_ms": 9}, {"latency_first_token_ms": 8}, True, ""),
        ("latency_first_token_under", {"max_ms": 9}, {"latency_first_token_ms": 9}, False, "expected under 9"),
        ("latency_first_token_under", {"max_ms": 9}, {}, False, "not reported"),
        ("tokens_per_second_above", {"min_tps": 30}, {"tokens_per_second": 30.0}, True, ""),
        ("tokens_per_second_above", {"min_tps": 30}, {"tokens_per_second": 29.5}, False, "29.5 tokens per second"),
        ("tokens_per_second_above", {"min_tps": 30}, {}, False, "not reported"),
        ("stream_completed", {}, {"stream_completed": True}, True, ""),
        ("stream_completed", {}, {"stream_completed": False}, False, "truncated"),
        ("stream_completed", {}, {}, False, "not streamed"),
    ],
)
def test_a_limit(type_name: str, config: dict[str, Any], trace: dict[str, Any], passed: bool, said: str) -> None:
    metrics = Metrics(**{key: value for key, value in trace.items() if key != "latency_ms"})
    evaluator: Any = build_evaluator(type_name, config)
    result = evaluator.evaluate(a_case(), a_trace(latency_ms=trace.get("latency_ms", 0), metrics=metrics))
    assert (result.passed, result.score, said in result.reason) == (passed, float(passed), True)


def test_a_latency_that_nobody_measured_is_not_judged() -> None:
    evaluator = build_evaluator("latency_under", {"max_ms": 5})
    with pytest.raises(EvaluatorError, match="latency was not measured"):
        evaluator.evaluate(a_case(), a_trace(latency_ms=None))
