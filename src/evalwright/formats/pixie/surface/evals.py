"""The pre-made evaluators, under the names that datasets use."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec

from evalwright.capture.tree import MemoryTraceHandler, ObservationNode
from evalwright.formats.pixie import judges, retrieval, scorers
from evalwright.formats.pixie.adapter import AutoevalsAdapter
from evalwright.formats.pixie.llm_evaluator import create_llm_evaluator
from evalwright.formats.pixie.recorded import as_evaluable, capture_traces, last_llm_call, root
from evalwright.formats.pixie.surface.assertions import (
    EvalAssertionError,
    ScoreThreshold,
    assert_dataset_pass,
    assert_pass,
    run_and_evaluate,
)
from evalwright.formats.pixie.surface.evaluation import Evaluation, Evaluator, evaluate
from evalwright.formats.pixie.surface.scorecard import (
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

P = ParamSpec("P")


def _pre_made_evaluator(make: Callable[P, AutoevalsAdapter]) -> Callable[P, AutoevalsAdapter]:
    """Gives an evaluator the name and options by which a stored run refers to it."""

    @wraps(make)
    def evaluator_of(*arguments: P.args, **options: P.kwargs) -> AutoevalsAdapter:
        adapter = make(*arguments, **options)
        adapter.made_by = (make.__name__, options)
        return adapter

    return evaluator_of


@_pre_made_evaluator
def ExactMatch() -> AutoevalsAdapter:
    """Equality of texts; containers are compared as JSON."""
    return AutoevalsAdapter(scorers.ExactMatch())


@_pre_made_evaluator
def LevenshteinMatch() -> AutoevalsAdapter:
    """1 minus the share of characters that must be edited."""
    return AutoevalsAdapter(scorers.Levenshtein())


@_pre_made_evaluator
def NumericDiff() -> AutoevalsAdapter:
    """How close two numbers are, relative to their size."""
    return AutoevalsAdapter(scorers.NumericDiff())


@_pre_made_evaluator
def JSONDiff(*, string_scorer: Any = None) -> AutoevalsAdapter:
    """How similar two JSON documents are, part by part."""
    return AutoevalsAdapter(scorers.JSONDiff(string_scorer))


@_pre_made_evaluator
def ValidJSON(*, schema: Any = None) -> AutoevalsAdapter:
    """Whether the output is a JSON object or list, or fits a JSON Schema."""
    return AutoevalsAdapter(scorers.ValidJSON(schema))


@_pre_made_evaluator
def ListContains(*, pairwise_scorer: Any = None, allow_extra_entities: bool = False) -> AutoevalsAdapter:
    """How much of an expected list is in the output, every item paired at most once."""
    return AutoevalsAdapter(scorers.ListContains(pairwise_scorer, allow_extra_entities))


@_pre_made_evaluator
def EmbeddingSimilarity(*, prefix: str = "", model: str | None = None, client: Any = None) -> AutoevalsAdapter:
    """How close output and expectation are in meaning, by their embeddings."""
    return AutoevalsAdapter(retrieval.EmbeddingSimilarity(prefix, model, client))


@_pre_made_evaluator
def Moderation(*, threshold: float | None = None, client: Any = None) -> AutoevalsAdapter:
    """Whether a moderation model has no objection to the output."""
    return AutoevalsAdapter(judges.ModerationScorer(threshold, client))


@_pre_made_evaluator
def Factuality(*, model: str | None = None, client: Any = None) -> AutoevalsAdapter:
    """Whether the output states the same facts as the expectation."""
    return AutoevalsAdapter(judges.ChoiceScorer("Factuality", model, client))


@_pre_made_evaluator
def ClosedQA(*, model: str | None = None, client: Any = None) -> AutoevalsAdapter:
    """Whether the output answers the input by `eval_metadata.criteria`."""
    return AutoevalsAdapter(judges.ChoiceScorer("ClosedQA", model, client), extra_metadata_keys=("criteria",))


@_pre_made_evaluator
def Battle(*, model: str | None = None, client: Any = None) -> AutoevalsAdapter:
    """Whether the output follows the instructions better than the expectation does."""
    return AutoevalsAdapter(judges.ChoiceScorer("Battle", model, client), input_key="instructions")


@_pre_made_evaluator
def Humor(*, model: str | None = None, client: Any = None) -> AutoevalsAdapter:
    """Whether the output is funny."""
    return AutoevalsAdapter(judges.ChoiceScorer("Humor", model, client), input_key=None)


@_pre_made_evaluator
def Security(*, model: str | None = None, client: Any = None) -> AutoevalsAdapter:
    """Whether the output is free of malice."""
    return AutoevalsAdapter(judges.ChoiceScorer("Security", model, client), input_key="instructions")


@_pre_made_evaluator
def Sql(*, model: str | None = None, client: Any = None) -> AutoevalsAdapter:
    """Whether the output's SQL is equivalent to the expected SQL."""
    return AutoevalsAdapter(judges.ChoiceScorer("Sql", model, client))


@_pre_made_evaluator
def Summary(*, model: str | None = None, client: Any = None) -> AutoevalsAdapter:
    """Whether the output is a better summary of the input than the expectation."""
    return AutoevalsAdapter(judges.ChoiceScorer("Summary", model, client))


@_pre_made_evaluator
def Translation(*, language: str | None = None, model: str | None = None, client: Any = None) -> AutoevalsAdapter:
    """Whether the output is as good a translation as the expectation."""
    return AutoevalsAdapter(judges.ChoiceScorer("Translation", model, client), language=language or "")


@_pre_made_evaluator
def Possible(*, model: str | None = None, client: Any = None) -> AutoevalsAdapter:
    """Whether the output offers a solution rather than calling the task impossible."""
    return AutoevalsAdapter(judges.ChoiceScorer("Possible", model, client))


@_pre_made_evaluator
def ContextRelevancy(*, model: str | None = None, client: Any = None) -> AutoevalsAdapter:
    """The share of `eval_metadata.context` that is needed to answer the input."""
    return AutoevalsAdapter(retrieval.ContextRelevancy(model, client), extra_metadata_keys=("context",))


@_pre_made_evaluator
def Faithfulness(*, model: str | None = None, client: Any = None) -> AutoevalsAdapter:
    """The share of the output's statements that `eval_metadata.context` supports."""
    return AutoevalsAdapter(retrieval.Faithfulness(model, client), extra_metadata_keys=("context",))


@_pre_made_evaluator
def AnswerRelevancy(*, model: str | None = None, client: Any = None) -> AutoevalsAdapter:
    """How close the questions that the output would answer are to the input."""
    return AutoevalsAdapter(retrieval.AnswerRelevancy(model, client), extra_metadata_keys=("context",))


@_pre_made_evaluator
def AnswerCorrectness(*, model: str | None = None, client: Any = None) -> AutoevalsAdapter:
    """How far the statements of output and expectation agree, and how close the two are in meaning."""
    return AutoevalsAdapter(retrieval.AnswerCorrectness(model, client))
