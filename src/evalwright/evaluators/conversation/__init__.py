"""Checks of conversations, and extractors of their texts."""

from evalwright.model.format import EvaluatorEntry, entry

__all__ = ["EVALUATORS"]

EVALUATORS: dict[str, EvaluatorEntry] = {
    "contains": entry(
        "evalwright.evaluators.conversation.response:Contains",
        "The final response contains every phrase, ignoring case.",
        format="NorthStar",
        see={"contains_text": "also one of and none of, any field"},
        example={"phrases": ["refunded"]},
    ),
    "cost_within": entry(
        "evalwright.evaluators.conversation.limits:CostWithin",
        "The recorded cost is ≤ `max_usd`. A cost that was not measured fails.",
        format="NorthStar",
        see={"cost_under": "< the limit", "cost": "≤ `budget`"},
        example={"max_usd": 0.01},
    ),
    "forbidden_tools": entry(
        "evalwright.evaluators.conversation.tool_use:ForbiddenTools",
        "None of these tools was called.",
        format="NorthStar",
        see={"tool_called": "`must_appear: false` for one tool and its arguments"},
        example={"names": ["delete_account"]},
    ),
    "ground_truth_match": entry(
        "evalwright.evaluators.conversation.response:GroundTruthMatch",
        "The final response contains the ground truth, ignoring case and white space.",
        format="NorthStar",
        see={"ground_truth_contained": "white space counts"},
        example={"text": "21 degrees"},
    ),
    "latency_within": entry(
        "evalwright.evaluators.conversation.limits:LatencyWithin",
        "The recorded latency is ≤ `max_ms`. A latency that was not measured fails.",
        format="NorthStar",
        see={"latency_under": "< the limit", "latency": "≤ `threshold`"},
        example={"max_ms": 10000},
    ),
    "max_tool_calls": entry(
        "evalwright.evaluators.conversation.tool_use:MaxToolCalls",
        "There are ≤ `limit` tool calls, repeated ones included.",
        format="NorthStar",
        see={"execution_metrics": "other counts too", "tool_called": "`max_calls` of one tool"},
        example={"limit": 5},
    ),
    "not_contains": entry(
        "evalwright.evaluators.conversation.response:NotContains",
        "There is a final response and it contains none of the phrases, ignoring case.",
        format="NorthStar",
        see={"contains_text": "`none_of` also passes for an empty answer"},
        example={"phrases": ["as an AI"]},
    ),
    "required_tools": entry(
        "evalwright.evaluators.conversation.tool_use:RequiredTools",
        "Each of these tools was called.",
        format="NorthStar",
        see={"tool_called": "counts, arguments and success"},
        example={"names": ["find_order"]},
    ),
    "tool_arguments_match": entry(
        "evalwright.evaluators.conversation.tool_use:ToolArgumentsMatch",
        "For each expected call, some call of that tool has these arguments, among others.",
        format="NorthStar",
        see={"tool_calls_match": "each call counts once, order, exact arguments"},
        example={"expected": [{"name": "refund", "arguments": {"order": "1001"}}]},
    ),
    "tool_output_referenced": entry(
        "evalwright.evaluators.conversation.response:ToolOutputReferenced",
        "The final response contains enough of the terms of one tool's output.",
        format="NorthStar",
        see={"faithfulness_judge": "a judge decides"},
        example={"required": True, "threshold": 0.35},
    ),
    "tool_sequence": entry(
        "evalwright.evaluators.conversation.tool_use:ToolSequence",
        "The names of the called tools, in order and with repeats, are exactly these.",
        format="NorthStar",
        see={"tool_calls_match": "`mode: exact`, with arguments"},
        example={"names": ["find_order", "refund"]},
    ),
}
