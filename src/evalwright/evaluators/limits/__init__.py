"""Limits of time, tokens and cost."""

from evalwright.model.format import EvaluatorEntry, entry

__all__ = ["EVALUATORS"]

EVALUATORS: dict[str, EvaluatorEntry] = {
    "cost": entry(
        "evalwright.evaluators.limits.execution:Cost",
        "The cost is ≤ `budget` US dollars. A cost that was not reported fails.",
        format="AgentV",
        see={"cost_under": "< the limit", "cost_within": "the limit may come from the case"},
        example={"budget": 0.01},
    ),
    "cost_under": entry(
        "evalwright.evaluators.limits.metrics:CostUnder",
        "The cost is < `max_usd` US dollars. A cost that was not reported fails.",
        see={"cost": "≤ the limit", "cost_within": "≤ the limit, which may come from the case"},
        example={"max_usd": 0.01},
    ),
    "execution_metrics": entry(
        "evalwright.evaluators.limits.execution:ExecutionMetrics",
        "Score: the share of limits kept (≤). A number that was not reported breaks its limit.",
        format="AgentV",
        see={"token_usage": "tokens only, all or nothing"},
        example={"max_tool_calls": 5, "max_cost_usd": 0.01, "all_or_nothing": True},
    ),
    "latency": entry(
        "evalwright.evaluators.limits.execution:Latency",
        "The answer took ≤ `threshold` milliseconds.",
        format="AgentV",
        see={"latency_under": "< the limit", "latency_within": "the limit may come from the case"},
        example={"threshold": 10000},
    ),
    "latency_first_token_under": entry(
        "evalwright.evaluators.limits.metrics:LatencyFirstTokenUnder",
        "The first token came in < `max_ms` milliseconds. Fails if not streamed.",
        example={"max_ms": 500},
    ),
    "latency_under": entry(
        "evalwright.evaluators.limits.metrics:LatencyUnder",
        "The answer took < `max_ms` milliseconds. An error if a recording does not say.",
        see={"latency": "≤ the limit", "latency_within": "≤ the limit, which may come from the case"},
        example={"max_ms": 10000},
    ),
    "stream_completed": entry(
        "evalwright.evaluators.limits.metrics:StreamCompleted",
        "The stream of the answer reached its end.",
    ),
    "thinking_tokens_under": entry(
        "evalwright.evaluators.limits.metrics:ThinkingTokensUnder",
        "There are < `max_tokens` thinking tokens.",
        see={"token_usage": "input, output and total, ≤"},
        example={"max_tokens": 1000},
    ),
    "token_usage": entry(
        "evalwright.evaluators.limits.execution:TokenUsage",
        "All limits of tokens are kept (≤); `max_total` counts cached ones too.",
        format="AgentV",
        see={"thinking_tokens_under": "thinking only, <"},
        example={"max_total": 4000},
    ),
    "tokens_per_second_above": entry(
        "evalwright.evaluators.limits.metrics:TokensPerSecondAbove",
        "There are ≥ `min_tps` tokens per second. Fails if not streamed.",
        example={"min_tps": 20},
    ),
}
