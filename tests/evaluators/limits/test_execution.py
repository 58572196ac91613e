"""Limits of what a trace reports as used, by the rules of AgentEvals."""

from __future__ import annotations

from typing import Any

import pytest

from evaluators.agentv_traces import call, judged, trace
from evalwright.model.trace import Metrics

USED = Metrics(token_input=100, token_output=50, cost_usd=0.02)


@pytest.mark.parametrize(
    ("config", "score"),
    [
        ({"max_tool_calls": 1}, 1.0),
        ({"max_tool_calls": 0}, 0.0),
        ({"max_tokens": 150, "max_cost_usd": 0.01}, 0.5),
        ({"max_tokens": 150, "max_cost_usd": 0.01, "all_or_nothing": True}, 0.0),
        ({"max_duration_ms": 30, "max_llm_calls": 1}, 1.0),
        ({"target_exploration_ratio": 1.0}, 1.0),
        ({"target_exploration_ratio": 0.5}, 0.0),
    ],
)
def test_the_score_is_the_share_of_limits_that_were_kept(config: dict[str, Any], score: float) -> None:
    assert judged("execution_metrics", config, trace(call("read"), metrics=USED, latency=30)).score == score


@pytest.mark.parametrize(
    ("kind", "config", "passed"),
    [
        ("latency", {"threshold": 30}, True),
        ("latency", {"threshold": 29}, False),
        ("cost", {"budget": 0.02}, True),
        ("token_usage", {"max_total": 160, "max_input": 100}, True),
        ("token_usage", {"max_total": 159}, False),
    ],
)
def test_a_limit_includes_its_bound(kind: str, config: dict[str, Any], passed: bool) -> None:
    given = trace(metrics=USED, latency=30, token_usage={"cached": 10})
    assert judged(kind, config, given).passed is passed


@pytest.mark.parametrize(
    ("kind", "config", "misses"),
    [
        ("cost", {"budget": 1}, ["US dollars: not reported, the limit is 1"]),
        ("token_usage", {"max_total": 9}, ["tokens: not reported, the limit is 9"]),
        ("execution_metrics", {"max_tokens": 9}, ["tokens: not reported, the limit is 9"]),
    ],
)
def test_a_number_that_was_not_reported_breaks_its_limit(kind: str, config: dict[str, Any], misses: list[str]) -> None:
    evaluation = judged(kind, config, trace(metrics=Metrics(token_input=5)))
    assert (evaluation.passed, evaluation.misses) == (False, misses)
