"""The pre-made evaluators under their own names in every format, with their configuration.

Of a case of another format they see the input unchanged, the metadata, and the ground truth as the expectation; of the
trace, the value at `field`. A score of at least one half passes. What could not be judged is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Annotated, Any, ClassVar

import msgspec

from evalwright.errors import EvaluatorError, Problem
from evalwright.evaluators.fields import ABSENT, select
from evalwright.evaluators.values.field_checks import schema_problems
from evalwright.formats.pixie.evaluator import judged
from evalwright.formats.pixie.judge_calls import EMBEDDER, JUDGE, MODERATION
from evalwright.model.chat import ChatRequest
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace

_NO_VALUE: tuple[Any, ...] = (None, "", [])


class _Premade(msgspec.Struct, frozen=True, dict=True, kw_only=True):
    field: str = "output.final_answer"
    sees_truth: ClassVar[bool] = True

    async def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        if _is_entry(case):
            return await judged(self._evaluator, case, trace)
        if trace.error is not None:
            raise EvaluatorError(f"not judged, the system had an error: {trace.error.message}", "no_output")
        output = select(self.field)(trace)
        if output is ABSENT or output is None:
            return Evaluation(False, 0.0, f"{self.field} is absent")
        return await judged(self._evaluator, _with_values(case, truth=self.sees_truth), _with_output(trace, output))

    @cached_property
    def _evaluator(self) -> Any:
        from evalwright.formats.pixie.surface import evals

        config = {name: getattr(self, name) for name in self.__struct_fields__ if name != "field"}
        return getattr(evals, type(self).__name__)(**config)


def _is_entry(case: Case) -> bool:
    """Whether it is an entry of pixie's own format, which is judged by its other evaluators although one lacks its
    key."""
    return "eval_input" in case.extra


def _with_values(case: Case, *, truth: bool) -> Case:
    values = {"eval_input": [{"name": "input", "value": case.input}], "eval_metadata": case.metadata}
    known = _truth(case) if truth else None
    expectation = {} if known is None else {"expectation": known}
    return msgspec.structs.replace(case, extra={**values, **expectation})


def _truth(case: Case) -> Any:
    conversation = case.expected.conversation
    places = (
        case.extra.get("ground_truth"),
        case.extra.get("reference_answer"),
        case.expected.facts.get("ground_truth"),
        conversation.ground_truth if conversation else None,
    )
    return next((truth for truth in places if truth not in _NO_VALUE), None)


def _with_output(trace: Trace, output: Any) -> Trace:
    return msgspec.structs.replace(trace, extra={"outputs": [{"name": "output", "value": msgspec.to_builtins(output)}]})


class _Judge(_Premade, frozen=True, kw_only=True):
    model: str | None = None
    default_model: ClassVar[str] = JUDGE
    calls_models = True

    def asks(self, case: Case) -> Iterator[ChatRequest]:
        if not _is_entry(case):
            yield ChatRequest(self.model or self.default_model, [])


class ExactMatch(_Premade, frozen=True):
    """Equality of texts; containers are compared as JSON."""


class LevenshteinMatch(_Premade, frozen=True):
    """1 minus the share of characters that must be edited."""


class NumericDiff(_Premade, frozen=True):
    """How close two numbers are, relative to their size."""


class JSONDiff(_Premade, frozen=True):
    """How similar two JSON documents are, part by part."""


class ValidJSON(_Premade, frozen=True, kw_only=True):
    """Whether the output is a JSON object or list, or fits `schema`; the ground truth is not used as one."""

    sees_truth: ClassVar[bool] = False
    schema: dict[str, Any] | bool | None = None

    @staticmethod
    def config_problems(values: Mapping[str, Any]) -> list[Problem]:
        from jsonschema import Draft202012Validator
        from jsonschema.validators import validator_for

        schema = values.get("schema")
        if not isinstance(schema, dict):
            return []
        return schema_problems(schema, validator_for(schema, default=Draft202012Validator))


class ListContains(_Premade, frozen=True, kw_only=True):
    """How much of an expected list is in the output, every item paired at most once."""

    allow_extra_entities: bool = False


class EmbeddingSimilarity(_Judge, frozen=True, kw_only=True):
    """How close output and expectation are in meaning, by their embeddings."""

    default_model: ClassVar[str] = EMBEDDER
    prefix: str = ""


class Moderation(_Premade, frozen=True, kw_only=True):
    """Whether a moderation model has no objection to the output."""

    threshold: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    calls_models = True

    def asks(self, case: Case) -> Iterator[ChatRequest]:
        if not _is_entry(case):
            yield ChatRequest(MODERATION, [])


class Factuality(_Judge, frozen=True):
    """Whether the output states the same facts as the expectation."""


class ClosedQA(_Judge, frozen=True):
    """Whether the output answers the input by `metadata.criteria`."""


class Battle(_Judge, frozen=True):
    """Whether the output follows the instructions (the input) better than the expectation does."""


class Humor(_Judge, frozen=True):
    """Whether the output is funny."""


class Security(_Judge, frozen=True):
    """Whether the output is free of malice."""


class Sql(_Judge, frozen=True):
    """Whether the output's SQL is equivalent to the expected SQL."""


class Summary(_Judge, frozen=True):
    """Whether the output is a better summary of the input than the expectation."""


class Translation(_Judge, frozen=True, kw_only=True):
    """Whether the output is as good a translation into `language` as the expectation."""

    language: str | None = None


class Possible(_Judge, frozen=True):
    """Whether the output offers a solution rather than calling the task impossible."""


class ContextRelevancy(_Judge, frozen=True):
    """How much of `metadata.context` is needed to answer the input."""


class Faithfulness(_Judge, frozen=True):
    """How many statements of the output are supported by `metadata.context`."""


class AnswerRelevancy(_Judge, frozen=True):
    """How close the questions that the output would answer are to the input."""


class AnswerCorrectness(_Judge, frozen=True):
    """How far the statements of output and expectation agree, and how close the two are in meaning."""
