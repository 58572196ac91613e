"""Checks of tool calls."""

from evalwright.model.format import EvaluatorEntry, entry

__all__ = ["EVALUATORS"]

EVALUATORS: dict[str, EvaluatorEntry] = {
    "tool_called": entry(
        "evalwright.evaluators.tools.called:ToolCalled",
        "A tool was called as often as expected, with these arguments, and succeeded.",
        see={"required_tools": "names only"},
        example={"tool_name": "refund", "max_calls": 1, "args_match": {"order": "1001"}},
    ),
    "tool_calls_match": entry(
        "evalwright.evaluators.tools.called:ToolCallsMatch",
        "The tool calls match the expected ones. Score: the share of expected calls made.",
        see={"tool_trajectory": "counts and durations", "tool_sequence": "names and order only"},
        example={"expected": [{"name": "refund", "arguments": {"order": "1001"}}], "mode": "any_order"},
    ),
    "tool_trajectory": entry(
        "evalwright.evaluators.tools.trajectory:ToolTrajectory",
        "Score: the share of expected calls made; `exact` allows no other calls.",
        format="AgentV",
        see={"tool_calls_match": "arguments as subsets"},
        example={"mode": "in_order", "expected": [{"tool": "find_order"}, {"tool": "refund"}]},
    ),
}
