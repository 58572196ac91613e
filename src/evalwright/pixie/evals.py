"""The pre-made evaluators, by the names under which datasets ask for them."""

from __future__ import annotations

from typing import Any

from evalwright.capture.tree import MemoryTraceHandler, ObservationNode
from evalwright.pixie import judges, retrieval, scorers
from evalwright.pixie.adapter import AutoevalsAdapter
from evalwright.pixie.assertions import (
    EvalAssertionError,
    ScoreThreshold,
    assert_dataset_pass,
    assert_pass,
    run_and_evaluate,
)
from evalwright.pixie.evaluation import Evaluation, Evaluator, evaluate
from evalwright.pixie.llm_evaluator import create_llm_evaluator
from evalwright.pixie.recorded import as_evaluable, capture_traces, last_llm_call, root
from evalwright.pixie.scorecard import (
    DatasetEntryResult,
    DatasetScorecard,
    generate_dataset_scorecard_html,
    save_dataset_scorecard,
)

__all__ = [
    "AnswerCorrectness",
    "AnswerRelevancy",
    "AutoevalsAdapter",
    "Battle",
    "ClosedQA",
    "ContextRelevancy",
    "DatasetEntryResult",
    "DatasetScorecard",
    "EmbeddingSimilarity",
    "EvalAssertionError",
    "Evaluation",
    "Evaluator",
    "ExactMatch",
    "Factuality",
    "Faithfulness",
    "Humor",
    "JSONDiff",
    "LevenshteinMatch",
    "ListContains",
    "MemoryTraceHandler",
    "Moderation",
    "NumericDiff",
    "ObservationNode",
    "Possible",
    "ScoreThreshold",
    "Security",
    "Sql",
    "Summary",
    "Translation",
    "ValidJSON",
    "as_evaluable",
    "assert_dataset_pass",
    "assert_pass",
    "capture_traces",
    "create_llm_evaluator",
    "evaluate",
    "generate_dataset_scorecard_html",
    "last_llm_call",
    "root",
    "run_and_evaluate",
    "save_dataset_scorecard",
]


def ExactMatch() -> AutoevalsAdapter:
    """Equality of texts; containers are compared as JSON."""
    return AutoevalsAdapter(scorers.ExactMatch())


def LevenshteinMatch() -> AutoevalsAdapter:
    """One less the share of characters that must be edited."""
    return AutoevalsAdapter(scorers.Levenshtein())


def NumericDiff() -> AutoevalsAdapter:
    """How near two numbers are, relative to their size."""
    return AutoevalsAdapter(scorers.NumericDiff())


def JSONDiff(*, string_scorer: Any = None) -> AutoevalsAdapter:
    """How alike two JSON documents are, part by part."""
    return AutoevalsAdapter(scorers.JSONDiff(string_scorer))


def ValidJSON(*, schema: Any = None) -> AutoevalsAdapter:
    """Whether the output is a JSON object or list, or fits a JSON Schema."""
    return AutoevalsAdapter(scorers.ValidJSON(schema))


def ListContains(*, pairwise_scorer: Any = None, allow_extra_entities: bool = False) -> AutoevalsAdapter:
    """How much of an expected list is in the output, every item paired at most once."""
    return AutoevalsAdapter(scorers.ListContains(pairwise_scorer, allow_extra_entities))


def EmbeddingSimilarity(*, prefix: str = "", model: str | None = None, client: Any = None) -> AutoevalsAdapter:
    """How near output and expectation are in meaning, by their embeddings."""
    return AutoevalsAdapter(retrieval.EmbeddingSimilarity(prefix, model, client))


def Moderation(*, threshold: float | None = None, client: Any = None) -> AutoevalsAdapter:
    """Whether a moderation model takes no offence at the output."""
    return AutoevalsAdapter(judges.Moderation(threshold, client))


def Factuality(*, model: str | None = None, client: Any = None) -> AutoevalsAdapter:
    """Whether the output's facts are those of the expectation."""
    return AutoevalsAdapter(judges.Choice("Factuality", model, client))


def ClosedQA(*, model: str | None = None, client: Any = None) -> AutoevalsAdapter:
    """Whether the output answers the input by `eval_metadata.criteria`."""
    return AutoevalsAdapter(judges.Choice("ClosedQA", model, client), extra_metadata_keys=("criteria",))


def Battle(*, model: str | None = None, client: Any = None) -> AutoevalsAdapter:
    """Whether the output follows the instructions better than the expectation does."""
    return AutoevalsAdapter(judges.Choice("Battle", model, client), input_key="instructions")


def Humor(*, model: str | None = None, client: Any = None) -> AutoevalsAdapter:
    """Whether the output is funny."""
    return AutoevalsAdapter(judges.Choice("Humor", model, client), input_key=None)


def Security(*, model: str | None = None, client: Any = None) -> AutoevalsAdapter:
    """Whether the output is free of malice."""
    return AutoevalsAdapter(judges.Choice("Security", model, client), input_key="instructions")


def Sql(*, model: str | None = None, client: Any = None) -> AutoevalsAdapter:
    """Whether the output's SQL means what the expected SQL means."""
    return AutoevalsAdapter(judges.Choice("Sql", model, client))


def Summary(*, model: str | None = None, client: Any = None) -> AutoevalsAdapter:
    """Whether the output is a better summary of the input than the expectation."""
    return AutoevalsAdapter(judges.Choice("Summary", model, client))


def Translation(*, language: str | None = None, model: str | None = None, client: Any = None) -> AutoevalsAdapter:
    """Whether the output is as good a translation as the expectation."""
    return AutoevalsAdapter(judges.Choice("Translation", model, client), language=language or "")


def Possible(*, model: str | None = None, client: Any = None) -> AutoevalsAdapter:
    """Whether the output offers a solution rather than saying that there is none."""
    return AutoevalsAdapter(judges.Choice("Possible", model, client))


def ContextRelevancy(*, model: str | None = None, client: Any = None) -> AutoevalsAdapter:
    """How much of `eval_metadata.context` is needed to answer the input."""
    return AutoevalsAdapter(retrieval.ContextRelevancy(model, client), extra_metadata_keys=("context",))


def Faithfulness(*, model: str | None = None, client: Any = None) -> AutoevalsAdapter:
    """How many statements of the output `eval_metadata.context` bears out."""
    return AutoevalsAdapter(retrieval.Faithfulness(model, client), extra_metadata_keys=("context",))


def AnswerRelevancy(*, model: str | None = None, client: Any = None) -> AutoevalsAdapter:
    """How near the questions that the output would answer are to the input."""
    return AutoevalsAdapter(retrieval.AnswerRelevancy(model, client), extra_metadata_keys=("context",))


def AnswerCorrectness(*, model: str | None = None, client: Any = None) -> AutoevalsAdapter:
    """How many statements of output and expectation agree, and how near both are in meaning."""
    return AutoevalsAdapter(retrieval.AnswerCorrectness(model, client))
