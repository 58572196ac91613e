"""The types of assertions: those that are judged here, and promptfoo's others."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["CHECKS", "COMPARISONS", "PLACE", "SET", "UNSUPPORTED", "base_of"]

SET = "assert-set"
PLACE = "evalwright.formats.promptfoo.checks."
CHECKS: Mapping[str, str] = {
    **{
        name: f"{PLACE}texts:{name.replace('-', '_')}"
        for name in (
            "contains", "icontains", "contains-any", "contains-all", "icontains-any", "icontains-all", "equals",
            "regex", "starts-with", "word-count",
        )
    },
    **{name: f"{PLACE}structures:{name.replace('-', '_')}" for name in ("is-json", "contains-json")},
    **{
        name: f"{PLACE}markup:{name.replace('-', '_')}"
        for name in ("is-xml", "contains-xml", "is-html", "contains-html")
    },
    **{name: f"{PLACE}similarity:{name.replace('-', '_')}" for name in ("levenshtein", "rouge-n", "bleu", "gleu")},
    **{name: f"{PLACE}limits:{name}_limit" for name in ("latency", "cost")},
    **{name: f"{PLACE}code:{name}" for name in ("javascript", "python")},
    **{
        name: f"{PLACE}judged:{name.replace('-', '_')}"
        for name in (
            "llm-rubric", "factuality", "model-graded-factuality", "model-graded-closedqa", "g-eval", "similar",
            "answer-relevance", "context-recall", "context-relevance", "context-faithfulness",
        )
    },
    **{name: f"{PLACE}openai:{name.replace('-', '_')}" for name in ("is-refusal", "tool-call-f1")},
}  # fmt: skip
"""The function of each type."""
COMPARISONS = frozenset(("select-best", "max-score"))
"""Types that judge the outputs of all columns together, after all other assertions."""
UNSUPPORTED = (
    "agent-rubric", "classifier", "contains-sql", "conversation-relevance", "finish-reason", "guardrails", "human",
    "is-sql", "is-valid-function-call", "is-valid-openai-function-call", "is-valid-openai-tools-call", "meteor",
    "moderation", "perplexity", "perplexity-score", "pi", "rouge-l", "rouge-s", "ruby", "search-rubric",
    "similar:dot", "similar:euclidean", "skill-used", "trace-error-spans", "trace-span-count",
    "trace-span-duration", "trajectory:goal-success", "trajectory:step-count", "trajectory:tool-args-match",
    "trajectory:tool-sequence", "trajectory:tool-used", "webhook",
)  # fmt: skip
"""Types that promptfoo has and we do not: rejected by name."""


def base_of(kind: str) -> tuple[bool, str]:
    """Whether a type is inverted, and the type without that."""
    return (True, kind[4:]) if kind.startswith("not-") else (False, kind)
