"""Similarity of an answer and a reference: the cosine of their embeddings (evalh 2.0, `semantic_similarity`)."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from evalwright.errors import EvaluatorError, InputError, Problem
from evalwright.evaluators.fields import ABSENT, select, text_at
from evalwright.evaluators.judges.calls import OF_THE_RUN
from evalwright.evaluators.similarity.embedders import Embed, embedder
from evalwright.evaluators.wording import number
from evalwright.model.chat import ChatRequest, Embedding
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace

__all__ = ["SemanticSimilarity", "configured_reference", "cosine", "reference_problems", "vectors_of"]

_Vectors = Sequence[Sequence[float]]


class SemanticSimilarity(msgspec.Struct, frozen=True, dict=True):
    """A cosine of at least `threshold` between a field and `reference_text`, or what is at `reference_path`.

    The path starts at `{case: ...}`; the text takes precedence over it.
    """

    embedder_name: str
    reference_text: str | None = None
    reference_path: str | None = None
    threshold: Annotated[float, msgspec.Meta(ge=-1, le=1)] = 0.8
    field: str = "output.final_answer"
    absent: Literal["error", "empty"] = "error"
    """A field that the trace does not have is an error, or "" as in the original evalh."""

    calls_models = True

    @staticmethod
    def config_problems(values: Mapping[str, Any]) -> list[Problem]:
        problems = reference_problems(values)
        name = values.get("embedder_name")
        try:
            if isinstance(name, str):
                embedder(name)
        except InputError as error:
            problems.append(Problem("", str(error), key="embedder_name"))
        return problems

    @cached_property
    def _embed(self) -> Embed:
        return embedder(self.embedder_name)

    def asks(self, case: Case) -> Iterator[ChatRequest]:
        model = getattr(self._embed, "model", None)
        if model is not None:
            yield ChatRequest(model, [])

    scores: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    passes_from: ClassVar[str] = "threshold"

    async def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        reference = configured_reference(self.reference_text, self.reference_path, case)
        answer = text_at(self.field, trace, absent=self.absent)
        embedding = await vectors_of(self._embed, [answer, reference])
        score = cosine(*embedding.vectors)
        detail: dict[str, Any] = {"embedder": self.embedder_name, "field": self.field, "threshold": self.threshold}
        if embedding.cached:
            detail["cached"] = 1
        relation = "at least" if score >= self.threshold else "below"
        reason = f"similarity {number(round(score, 6))}, {relation} {number(self.threshold)}"
        return Evaluation(score >= self.threshold, score, reason, detail, cost_usd=embedding.cost_usd)


def reference_problems(values: Mapping[str, Any]) -> list[Problem]:
    """Problems of the reference in a configuration: one of the two keys is required."""
    if values.get("reference_text") is None and values.get("reference_path") is None:
        return [Problem("", "needs 'reference_text' or 'reference_path', found neither", key="reference_text")]
    return []


def configured_reference(text: str | None, path: str | None, case: Case) -> str:
    """The configured text, or what is at a path into `{case: ...}`. Raises EvaluatorError `missing_reference`."""
    if text is not None:
        return text
    value = select(path or "")({"case": case.argument()})
    if value is None or value is ABSENT:
        raise EvaluatorError(f"nothing at {path!r}", "missing_reference")
    return str(value)


async def vectors_of(embed: Embed, texts: Sequence[str]) -> Embedding:
    """A vector of finite numbers for each text, all of the same length.

    Raises EvaluatorError `embedder_error`, or the type of what the run's own settings forbid (`OF_THE_RUN`).
    """
    try:
        if inspect.iscoroutinefunction(embed):
            vectors = await embed(texts)
        else:
            vectors = await asyncio.to_thread(embed, texts)
        if isinstance(vectors, Awaitable):
            vectors = await vectors
        embedding = vectors if isinstance(vectors, Embedding) else Embedding(_plain_vectors(vectors), "")
    except EvaluatorError as error:
        kind = error.type if error.type in OF_THE_RUN else "embedder_error"
        raise EvaluatorError(str(error), kind, {"failure": error.type}) from error
    except Exception as error:
        raise EvaluatorError(f"{type(error).__name__}: {error}", "embedder_error") from error
    _check(embedding.vectors, len(texts))
    return embedding


def _plain_vectors(vectors: Any) -> list[list[float]]:
    return [[float(x) for x in vector] for vector in vectors]


def _check(vectors: _Vectors, count: int) -> None:
    sizes = {len(vector) for vector in vectors}
    if len(vectors) != count:
        raise _unusable(f"expected {count} vectors, found {len(vectors)}")
    if 0 in sizes or len(sizes) > 1:
        raise _unusable(f"expected vectors of one size, found sizes {', '.join(map(str, sorted(sizes)))}")
    if not all(math.isfinite(x) for vector in vectors for x in vector):
        raise _unusable("a vector has numbers that are not finite")


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """The cosine of the angle between two vectors, -1 to 1. Raises EvaluatorError for a vector of zeros."""
    norms = math.hypot(*one), math.hypot(*other)
    if 0.0 in norms:
        raise _unusable("a vector has no direction: all its numbers are 0")
    product = math.fsum(a / norms[0] * (b / norms[1]) for a, b in zip(one, other, strict=True))
    return max(-1.0, min(1.0, round(product, 12)))  # rounded, so that the cosine of a vector with itself is exactly 1


def _unusable(message: str) -> EvaluatorError:
    return EvaluatorError(message, "embedder_error")
