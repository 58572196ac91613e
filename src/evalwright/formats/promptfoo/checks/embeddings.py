"""Assertions that compare embeddings."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from evalwright.errors import EvaluatorError
from evalwright.evaluators.similarity.cosine import cosine
from evalwright.formats.promptfoo.evaluator import AssertionInput
from evalwright.formats.promptfoo.graders import grader_of
from evalwright.formats.promptfoo.values import template_text
from evalwright.model.result import Evaluation

__all__ = ["EPSILON", "similar"]

EPSILON = 2.220446049250313e-16
"""JavaScript's: a similarity may be below its threshold by this much."""


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return math.fsum(a * b for a, b in zip(one, other, strict=True))


class _Measure(NamedTuple):
    """How near two embeddings are: the more, the nearer."""

    name: str
    of: Callable[[Sequence[float], Sequence[float]], float]
    is_distance: bool = False


_MEASURES = {
    "similar": _Measure("similarity", cosine),
    "similar:cosine": _Measure("similarity", cosine),
    "similar:dot": _Measure("dot product", _dot),
    "similar:euclidean": _Measure("distance", lambda one, other: -math.dist(one, other), is_distance=True),
}


async def similar(question: AssertionInput) -> Evaluation:
    """The embeddings of output and value are near enough: their cosine or dot product is at least `threshold` (0.75),
    their distance at most; for a list, with any of its values."""
    values = question.value if isinstance(question.value, list) else [question.value]
    texts = [template_text(value) for value in values]
    if not any(texts) or not isinstance(question.value, (str, list)):
        raise EvaluatorError(f"{question.kind} needs a value: expected text, or a list of texts", "bad_value")
    grader = grader_of(question.assertion, question.options, question.folder, "embedding")
    embedding = await grader.embed([question.text, *texts])
    own, *others = embedding.vectors
    limit = 0.75 if question.threshold is None else question.threshold
    measure = _MEASURES[question.kind]
    nearness = [measure.of(own, other) for other in others]  # a distance is negative here
    wanted = -limit if measure.is_distance else limit
    reached = [near for near in nearness if near >= wanted - EPSILON]
    nearest = reached[0] if reached and not question.negated else max(nearness)
    passed = nearest <= wanted + EPSILON if question.negated else bool(reached)
    score = 1 / (1 - nearest) if measure.is_distance else nearest
    detail = {"embedder": grader.model.model}
    message = "" if passed else f"the {measure.name} is {abs(nearest):.4g}, the threshold is {limit:g}"
    score = 1 - score if question.negated else score
    return Evaluation(passed, score, message, detail, cost_usd=embedding.cost_usd)
