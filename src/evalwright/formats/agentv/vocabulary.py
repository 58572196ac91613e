"""The terms of AgentEvals files for evaluators: their types in old and new spellings, and the keys of each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

__all__ = [
    "AGENT_JUDGES",
    "ALIASES",
    "COMMON",
    "MEMBERS",
    "NEWER_AGGREGATORS",
    "NEWER_CODE",
    "NEWER_KEYS",
    "OF_MODEL",
    "OWN_KEYS",
    "READ",
    "TEXT_CHECKS",
    "TYPES",
    "snake_case",
    "snake_keys",
]  # fmt: skip

ALIASES = {
    "code_grader": "code_judge", "script": "code_judge", "llm_grader": "llm_judge", "llm_rubric": "llm_judge",
    "rubrics": "rubric", "assert_set": "composite", "agent_judge": "llm_judge", "agent_grader": "llm_judge",
}  # fmt: skip
NEWER_CODE = ("code_grader", "script")
TEXT_CHECKS = (
    "contains", "icontains", "contains_any", "contains_all", "icontains_any", "icontains_all", "starts_with",
    "ends_with", "equals", "regex", "is_json",
)  # fmt: skip
TYPES = (
    "code_judge", "llm_judge", "rubric", "composite", "tool_trajectory", "field_accuracy", "execution_metrics",
    "latency", "cost", "token_usage", "skill_trigger", *TEXT_CHECKS,
)  # fmt: skip
COMMON = {"name", "metric", "type", "weight", "required", "min_score", "negate"}
OF_MODEL = ("temperature", "max_tokens")
_OF_JUDGE = {
    "target",
    "provider",
    "config",
    "max_steps",
    *OF_MODEL,
}  # one question is one step, however many are allowed
MEMBERS = ("assertions", "assert", "evaluators")
"""Where the members of a composite are; the first of them is used, and names are needed only in the last."""
READ = {
    "llm_judge": {"prompt", *_OF_JUDGE},
    "rubric": {"rubrics", "criteria", *_OF_JUDGE},
    "composite": {*MEMBERS, "aggregator"},
    **{kind: {"value"} for kind in TEXT_CHECKS},
    "regex": {"value", "flags"},
}
"""Keys that are read of an evaluator, besides those that all have; a code judge gets every key."""
OWN_KEYS = {
    "tool_trajectory": {"mode", "minimums", "expected", "args_match"},
    "field_accuracy": {"fields", "aggregation"},
    "latency": {"threshold"},
    "skill_trigger": {"skill", "should_trigger"},
    "cost": {"budget"},
    "token_usage": {"max_total", "max_input", "max_output"},
    "execution_metrics": {
        "max_tool_calls", "max_llm_calls", "max_tokens", "max_input_tokens", "max_output_tokens", "max_cost_usd",
        "max_duration_ms", "target_exploration_ratio", "exploration_tolerance", "all_or_nothing",
    },
}  # fmt: skip
NEWER_KEYS = {
    "latency": {"max_ms": "threshold"},
    "cost": {"max_usd": "budget"},
    "token_usage": {"max_total_tokens": "max_total"},
}
AGENT_JUDGES = ("agent_judge", "agent_grader")
"""Judges that look into the workspace themselves in AgentV; here they are shown what changed in it."""
NEWER_AGGREGATORS = {"code_grader": "code_judge", "llm_grader": "llm_judge"}
"""Newer names for ways to combine the members of a composite."""


def snake_case(key: str) -> str:
    """A key in the spelling of older and newer files alike: `max_steps` for `maxSteps`."""
    return re.sub(r"(?<=[a-z])[A-Z]", lambda match: "_" + match[0].lower(), key)


def snake_keys(raw: Mapping[Any, Any]) -> dict[str, Any]:
    """A mapping with its keys in that spelling."""
    return {snake_case(str(key)): value for key, value in raw.items()}
