"""The types of assertions: those that are judged here, and promptfoo's others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = [
    "CALL_MODELS",
    "CHECKS",
    "COMPARISONS",
    "NODE_PACKAGES",
    "SET",
    "UNSUPPORTED",
    "asked_of_judge",
    "base_of",
    "calls_judge",
    "in_module",
    "reads_tools",
]

SET = "assert-set"
_PLACE = "evalwright.formats.promptfoo.checks."
CHECKS: Mapping[str, str] = {
    **{
        name: f"{_PLACE}texts:{name.replace('-', '_')}"
        for name in (
            "contains", "icontains", "contains-any", "contains-all", "icontains-any", "icontains-all", "equals",
            "regex", "starts-with", "word-count",
        )
    },
    **{name: f"{_PLACE}structures:{name.replace('-', '_')}" for name in ("is-json", "contains-json")},
    **{
        name: f"{_PLACE}markup:{name.replace('-', '_')}"
        for name in ("is-xml", "contains-xml", "is-html", "contains-html")
    },
    **{name: f"{_PLACE}similarity:{name.replace('-', '_')}" for name in ("levenshtein", "rouge-n", "bleu", "gleu")},
    **{name: f"{_PLACE}limits:{name}_limit" for name in ("latency", "cost")},
    **{name: f"{_PLACE}code:{name}" for name in ("javascript", "python")},
    **{
        name: f"{_PLACE}judged:{name.replace('-', '_')}"
        for name in (
            "llm-rubric", "factuality", "model-graded-closedqa", "g-eval",
        )
    },
    "model-graded-factuality": f"{_PLACE}judged:factuality",
    **{
        name: f"{_PLACE}contexts:{name.replace('-', '_')}"
        for name in (
            "answer-relevance", "context-recall", "context-relevance", "context-faithfulness",
            "conversation-relevance",
        )
    },
    **dict.fromkeys(("similar", "similar:cosine", "similar:dot", "similar:euclidean"), f"{_PLACE}embeddings:similar"),
    **{
        name: f"{_PLACE}responses:{name.replace('-', '_')}"
        for name in ("finish-reason", "guardrails", "skill-used", "perplexity", "perplexity-score")
    },
    **{
        name: f"{_PLACE}openai:{name.replace('-', '_')}"
        for name in ("is-refusal", "tool-call-f1", "is-valid-openai-tools-call", "is-valid-function-call")
    },
    "is-valid-openai-function-call": f"{_PLACE}openai:is_valid_function_call",
    **{
        f"trajectory:{name}": f"{_PLACE}trajectory:{name.replace('-', '_')}"
        for name in ("tool-used", "tool-sequence", "tool-args-match", "step-count")
    },
    **{
        f"trace-{name}": f"{_PLACE}trajectory:{name.replace('-', '_')}"
        for name in ("span-count", "span-duration", "error-spans")
    },
    "trajectory:goal-success": f"{_PLACE}judged:goal_success",
    **{name: f"{_PLACE}sql:{name.replace('-', '_')}" for name in ("is-sql", "contains-sql")},
    **{name: f"{_PLACE}services:{name}" for name in ("moderation", "webhook")},
}  # fmt: skip
"""The function of each type."""
COMPARISONS = frozenset(("select-best", "max-score"))
"""Types that judge the outputs of all columns together, after all other assertions."""
NODE_PACKAGES: Mapping[str, str] = dict.fromkeys(("is-sql", "contains-sql"), "node-sql-parser")
"""The packages of Node that types need, as in promptfoo; a suite with such assertions has them installed beside it."""
UNSUPPORTED: Mapping[str, str] = {
    "classifier": "call the service in a Python file, {type: python, value: file://check.py}",
    "ruby": "write the check as javascript or python",
    **dict.fromkeys(("agent-rubric", "pi", "search-rubric"), "use llm-rubric"),
    "meteor": "use rouge-n, or gleu",
    "human": "label the outputs in evalwright view",
}
"""Types that promptfoo has and we do not, rejected by name, and what comes closest to them."""


def base_of(kind: str) -> tuple[bool, str]:
    """Whether a type is inverted, and the type without that."""
    return (True, kind[4:]) if kind.startswith("not-") else (False, kind)


def in_module(module: str) -> frozenset[str]:
    """The types whose checks are in a module of `checks`."""
    return frozenset(kind for kind, place in CHECKS.items() if place.startswith(f"{_PLACE}{module}:"))


CALL_MODELS: frozenset[str] = frozenset(("moderation",)).union(*map(in_module, ("judged", "contexts", "embeddings")))
"""The types that call models."""


def calls_judge(assertion: Mapping[str, Any]) -> bool:
    """Whether an assertion, or a member of a set, calls a model."""
    kind = assertion["type"]
    if kind == SET:
        return any(map(calls_judge, assertion["assert"]))
    return kind == "select-best" or base_of(kind)[1] in CALL_MODELS


def asked_of_judge(kind: str) -> tuple[str, ...]:
    """What an assertion of a type wants from its judge: `text`, an `embedding`, both, a `moderation`, or nothing."""
    base = base_of(kind)[1]
    if base == "answer-relevance":
        return ("text", "embedding")
    if base.startswith("similar"):
        return ("embedding",)
    if base == "moderation":
        return ("moderation",)
    return ("text",) if base == "select-best" or base in CALL_MODELS else ()


_READS_TOOLS = frozenset(("is-valid-openai-tools-call", "is-valid-function-call", "is-valid-openai-function-call"))


def reads_tools(assertion: Mapping[str, Any]) -> bool:
    """Whether an assertion, or a member of a set, compares calls with the tools that the provider offers."""
    kind = assertion["type"]
    return any(map(reads_tools, assertion["assert"])) if kind == SET else base_of(kind)[1] in _READS_TOOLS
