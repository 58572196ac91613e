"""One assertion of a test as an evaluator, by the rules of its type."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from evalwright.errors import EvaluatorError, InputError, Problem, did_you_mean
from evalwright.files.key_paths import as_written
from evalwright.formats.promptfoo.faults import ScriptError, TemplateError
from evalwright.formats.promptfoo.kinds import CHECKS, SET, asked_of_judge, base_of, calls_judge
from evalwright.formats.promptfoo.sources import SCRIPTS, in_file, split_function
from evalwright.formats.promptfoo.templates import render
from evalwright.formats.promptfoo.values import shown_text
from evalwright.model.chat import ChatRequest
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Metrics, Span, Trace
from evalwright.registry import resolve

__all__ = [
    "AssertionInput", "PromptfooAssertion", "add_measured", "context_of", "expected_or_forbidden",
    "transform_context_of",
]  # fmt: skip

_WIDEST = (-sys.float_info.max, sys.float_info.max)
_LIMIT = 600.0


@cache
def _check_of(kind: str) -> Callable[[AssertionInput], Evaluation | Awaitable[Evaluation]]:
    check: Callable[[AssertionInput], Evaluation | Awaitable[Evaluation]] = resolve(CHECKS[kind])
    return check


class AssertionInput(NamedTuple):
    """What an assertion asks about one output."""

    kind: str
    """The type without `not-`."""
    negated: bool
    value: Any
    assertion: Mapping[str, Any]
    options: Mapping[str, Any]
    """The options of the test that graders need."""
    output: Any
    text: str
    names: Mapping[str, Any]
    """The variables of the cell."""
    case: Case
    trace: Trace
    folder: str

    def of(self, holds: bool, missing: str, present: str = "") -> Evaluation:
        """The result for a plain finding, inverted for `not-`; `missing` says what is wrong if it was not found,
        `present` if it was, unless that is the same."""
        passed = holds != self.negated
        reason = "" if passed else (present or missing) if holds else missing
        return Evaluation(passed, 1.0 if passed else 0.0, reason)

    @property
    def threshold(self) -> float | None:
        value: float | None = self.assertion.get("threshold")
        return value


def expected_or_forbidden(finding: str, wanted: str) -> tuple[str, str]:
    """What is wrong with something else than was wanted, and, for `not-`, with what must not be."""
    return f"{finding}, expected {wanted}", f"{finding}, forbidden: {wanted}"


class PromptfooAssertion:
    """An `assertion` as written in a configuration; the `options` of its test, and the `folder` of its files."""

    scores: tuple[float, float] = _WIDEST
    timeout_seconds: float = _LIMIT

    @staticmethod
    def calls_models(config: Mapping[str, Any]) -> bool:
        return calls_judge(config["assertion"])

    def __init__(
        self, assertion: Mapping[str, Any], options: Mapping[str, Any] | None = None, folder: str = "."
    ) -> None:
        self._assertion, self._options, self._folder = assertion, options or {}, folder
        kind = assertion.get("type")
        self._negated, self._kind = base_of(str(kind))
        if self._kind != SET and self._kind not in CHECKS:
            near = did_you_mean(self._kind, (*CHECKS, SET))
            raise InputError(
                Problem("", f"expected the type of an assertion, found {as_written(kind)}{near}", key="assertion.type")
            )
        self._check = None if self._kind == SET else _check_of(self._kind)

    def asks(self, case: Case) -> Iterator[ChatRequest]:
        """The calls of graders that are models, including those of members of sets."""
        for assertion in _flat(self._assertion):
            if calls_judge(assertion):
                from evalwright.formats.promptfoo.graders import grader_requests

                wanted = asked_of_judge(assertion["type"])[0]
                yield from grader_requests(assertion, self._options, self._folder, wanted)

    def evaluate(self, case: Case, trace: Trace) -> Evaluation | Awaitable[Evaluation]:
        if trace.extra.get("promptfoo", {}).get("left_out"):
            return Evaluation(False, skipped=True)
        if self._check is None or self._waits:
            return self._awaited_evaluation(case, trace)
        returned = self._check(self._question(case, trace))
        if inspect.isawaitable(returned):
            return self._finished_evaluation(returned, trace)
        return self._finish(returned, trace)

    @property
    def _waits(self) -> bool:
        return bool(self._assertion.get("transform")) or self._computes

    @property
    def _computes(self) -> bool:
        """Whether a file contains the code of the value; in `javascript` and `python` it contains the check itself."""
        return in_file(self._assertion.get("value")) and self._kind not in ("javascript", "python")

    async def _finished_evaluation(self, pending: Awaitable[Evaluation], trace: Trace) -> Evaluation:
        return self._finish(await pending, trace)

    def _finish(self, evaluation: Evaluation, trace: Trace) -> Evaluation:
        weight = self._assertion.get("weight")
        if "metric" in self._assertion and (metric := self._metric(trace)):
            evaluation.detail = {**evaluation.detail, "metric": metric}
        if weight is not None and weight != 1:
            evaluation.detail = {**evaluation.detail, "weight": weight}
        if weight == 0 and self._kind != SET:  # a set without weight still decides, as in promptfoo
            evaluation.passed = True
        return evaluation

    def _question(self, case: Case, trace: Trace) -> AssertionInput:
        seen: Mapping[str, Any] = trace.extra.get("promptfoo", {})
        output = seen.get("output", trace.output.final_answer)
        names: Mapping[str, Any] = _names(seen)
        return AssertionInput(
            self._kind, self._negated, self._value(names), self._assertion, self._options, output, shown_text(output),
            names, case, trace, self._folder,
        )  # fmt: skip

    def _value(self, names: Mapping[str, Any]) -> Any:
        """The value with the variables of the cell; what was read from a file holds no templates."""
        value, as_is = self._assertion.get("value"), self._assertion.get("as_is")
        if as_is is True or in_file(value):
            return value
        try:
            if isinstance(value, list):
                return [
                    render(item, names) if isinstance(item, str) and i not in (as_is or ()) else item
                    for i, item in enumerate(value)
                ]
            return render(value, names) if isinstance(value, str) else value
        except TemplateError as error:
            raise EvaluatorError(str(error), "template_error") from None

    async def _awaited_evaluation(self, case: Case, trace: Trace) -> Evaluation:
        if self._check is None:
            return self._finish(await self._set(case, trace), trace)
        question = self._question(case, trace)
        if code := self._assertion.get("transform"):
            from evalwright.formats.promptfoo.transforms import transformed

            try:
                output = await transformed(code, question.output, transform_context_of(question), self._folder)
            except ScriptError as error:
                raise EvaluatorError(f"transform: {error}", "transform_error") from None
            question = question._replace(output=output, text=shown_text(output))
        if self._computes:
            question = question._replace(value=await self._value_of_file(question))
        returned = self._check(question)
        return self._finish(await returned if inspect.isawaitable(returned) else returned, trace)

    async def _value_of_file(self, question: AssertionInput) -> Any:
        """The value of a function that is named in place of a value."""
        from evalwright.formats.promptfoo.scripts import call_file

        named = str(question.value)
        if not split_function(named)[0].endswith(SCRIPTS):
            raise EvaluatorError(f"there is no file {named!r}", "missing_file")
        try:
            value = await call_file(self._folder, named, "get_assert", [question.output, context_of(question)])
        except ScriptError as error:
            raise EvaluatorError(f"{named}: {error}", error.type) from None
        if isinstance(value, bool) or (isinstance(value, dict) and "pass" in value):
            message = f"{named} gave a verdict, {value!r:.80}, where {self._kind} needs a value to compare with"
            raise EvaluatorError(f"{message}; code that judges is a javascript or python assertion", "bad_value")
        return value

    async def _set(self, case: Case, trace: Trace) -> Evaluation:
        """The members, one after the other, and their weighted mean."""
        from evalwright.formats.promptfoo.verdicts import is_blocked, weighted

        rows = []
        cost: float | None = None
        for i, member in enumerate(self._assertion["assert"]):
            returned = PromptfooAssertion(member, self._options, self._folder).evaluate(case, trace)
            result = await returned if inspect.isawaitable(returned) else returned
            rows.append({
                "evaluator": f"{member['type']}#{i}", "evaluator_type": member["type"], "passed": result.passed,
                "score": result.score, "reason": result.reason, "detail": result.detail,
            })  # fmt: skip
            cost = cost if result.cost_usd is None else (cost or 0.0) + result.cost_usd
        score = weighted((row["score"], row["detail"].get("weight", 1)) for row in rows)
        threshold = self._assertion.get("threshold")
        passed = all(row["passed"] for row in rows) if threshold is None else score >= threshold
        passed = passed or is_blocked(row["detail"] for row in rows)
        failed = [f"{row['evaluator']}: {row['reason']}" for row in rows if not row["passed"]]
        return Evaluation(passed, score, "" if passed else "; ".join(failed), {"children": rows}, cost_usd=cost)

    def _metric(self, trace: Trace) -> str:
        return render(str(self._assertion.get("metric") or ""), _names(trace.extra.get("promptfoo", {})))


def _names(seen: Mapping[str, Any]) -> Mapping[str, Any]:
    """The variables of a cell as they were rendered."""
    names: Mapping[str, Any] = seen.get("vars", {})
    return {**names, **seen["resolved"]} if "resolved" in seen else names


def add_measured(response: dict[str, Any], metrics: Metrics) -> None:
    """Add what the call took to a response, under promptfoo's names; nothing that is unknown."""
    if metrics.cost_usd is not None:
        response["cost"] = metrics.cost_usd
    if metrics.token_input is not None or metrics.token_output is not None:
        sent, received = metrics.token_input or 0, metrics.token_output or 0
        usage = {"prompt": sent, "completion": received, "total": sent + received}
        response["tokenUsage"] = usage | response.get("tokenUsage", {})


def context_of(question: AssertionInput) -> dict[str, Any]:
    """What code of a configuration gets to know about the cell, under promptfoo's names."""
    seen: Mapping[str, Any] = question.trace.extra.get("promptfoo", {})
    own = question.case.extra.get("promptfoo", {})
    remarks = seen.get("remarks", {})
    output = seen.get("output", question.trace.output.final_answer)
    response = {**remarks, "output": output, "metadata": seen.get("metadata", {})}
    if "raw" in seen:
        response["raw"] = seen["raw"]
    add_measured(response, question.trace.metrics)
    context: dict[str, Any] = {
        "prompt": seen.get("prompt"),
        "vars": dict(question.names),
        "test": {
            "vars": question.case.input,
            "assert": [
                evaluator.config["assertion"]
                for evaluator in question.case.evaluators or ()
                if "assertion" in evaluator.config
            ],
            "metadata": question.case.metadata,
            "options": own.get("options", {}),
            **({"description": question.case.description} if question.case.description else {}),
            **({"threshold": own["threshold"]} if own.get("threshold") is not None else {}),
        },
        "provider": seen.get("provider", {}),
        "providerResponse": response,
        "metadata": seen.get("metadata", {}),
        "latencyMs": question.trace.latency_ms,
    }
    if "logProbs" in remarks:
        context["logProbs"] = remarks["logProbs"]
    if (config := question.assertion.get("config")) is not None:
        context["config"] = config
    if question.trace.spans:
        context["trace"] = {
            "evaluationId": question.trace.run_id,
            "testCaseId": question.case.id,
            "metadata": {},
            "spans": [*map(_shown_span, question.trace.spans)],
        }
    return context


def _shown_span(span: Span) -> dict[str, Any]:
    """A span under promptfoo's names; times are milliseconds since 1970, the code is 2 if it failed."""
    values = (("input.value", span.input), ("output.value", span.output))
    attributes = {**span.attributes, **{key: value for key, value in values if value is not None}}
    fields = {
        "spanId": span.id,
        "parentSpanId": span.parent_id,
        "name": span.name,
        "startTime": span.started_at and span.started_at.timestamp() * 1000,
        "endTime": span.finished_at and span.finished_at.timestamp() * 1000,
        "attributes": attributes,
        "statusCode": 2 if span.status == "error" else 0,
        "statusMessage": span.error,
    }
    return {key: value for key, value in fields.items() if value is not None}


def transform_context_of(question: AssertionInput) -> dict[str, Any]:
    """The same for an assertion's own transforms, where the prompt is a mapping."""
    context = context_of(question)
    return {**context, "prompt": {"label": context["prompt"]}}


def _flat(assertion: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The assertion, or the members if it is a set."""
    if assertion["type"] != SET:
        yield assertion
    for member in assertion["assert"] if assertion["type"] == SET else ():
        yield from _flat(member)
