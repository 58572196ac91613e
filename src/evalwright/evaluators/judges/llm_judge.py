"""A judge of assertions, of a rubric, or of both (evalh 2.0, `llm_judge`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Literal

import msgspec

from evalwright.errors import EvaluatorError, Problem
from evalwright.evaluators.judges.calls import JudgeOutcome, Prompt, ask, cost, failure, spending
from evalwright.evaluators.judges.prompt_data import DATA_RULE, data_blocks, expectation_of, fields_of
from evalwright.evaluators.judges.verdict import Assertion, Criteria, Rubric, RubricScale, Verdict, needed
from evalwright.evaluators.judges.votes import Panel, agreeing_share, first_error, majority, panel_problems
from evalwright.files.key_paths import as_written
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace

__all__ = ["LlmJudge"]

_RULES = ("all", "any", "majority")


class LlmJudge(Panel, frozen=True, kw_only=True, dict=True):
    """Whether, according to a model, assertions hold for an answer and a rubric's score is reached.

    The judge sees the fields of `include_in_prompt` (paths over the trace plus `case`) and what the case expects.
    """

    nl_assertions: list[str | Assertion] | None = None
    rubric: str | None = None
    pass_when: str = "all"
    scale: RubricScale = RubricScale()
    pass_threshold: float | None = None
    rubric_pass_threshold: float | None = None
    include_in_prompt: list[str] = msgspec.field(default_factory=lambda: ["input", "output.final_answer"])
    field: str | None = None
    """What is judged in place of the final answer: shown instead of it, or beside what `include_in_prompt` lists."""
    judge_response_schema: dict[str, Any] | None = None
    lenient: bool = False
    """As in the original evalh: an assertion without `passed` does not hold, true as a score is 1, and a field that is
    not there is shown as missing."""
    combine: Literal["majority", "mean"] = "majority"
    """With several judges: the majority of their verdicts, or the verdict on their mean."""

    passes_from: ClassVar[str] = "pass_threshold"

    @staticmethod
    def config_problems(values: Mapping[str, Any]) -> list[Problem]:
        problems = [*panel_problems(values), *_assertion_problems(values), *_rubric_problems(values)]
        schema = values.get("judge_response_schema")
        if isinstance(schema, dict):
            problems += _schema_problems(schema)
        return problems

    @staticmethod
    def config_doubts(config: Mapping[str, Any]) -> list[Problem]:
        scale, usual = config.get("scale"), RubricScale()
        ends = scale if isinstance(scale, Mapping) else {}
        low, high = ends.get("min", usual.min), ends.get("max", usual.max)
        return [
            Problem(
                "", f"{which} from {low:g} to {high:g} reaches it: set it within the scale, or set the scale", key=key
            )
            for key in ("pass_threshold", "rubric_pass_threshold")
            if (which := _reached_by(config.get(key), low, high))
        ]

    @cached_property
    def _shown(self) -> list[str]:
        if self.field is None or self.field in self.include_in_prompt:
            return self.include_in_prompt
        paths = [path for path in self.include_in_prompt if path != "output.final_answer"]
        return [*paths, self.field]

    @cached_property
    def criteria(self) -> Criteria:
        assertions = [Assertion(a) if isinstance(a, str) else a for a in self.nl_assertions or ()]
        threshold = self.rubric_pass_threshold if assertions else self.pass_threshold
        rubric = None if self.rubric is None else Rubric(self.rubric, self.scale, threshold or 0.0)
        return Criteria(assertions, self.pass_when.strip(), rubric, self.lenient)

    @property
    def scores(self) -> tuple[float, float]:
        """The share of assertions or, with only a rubric, the rubric's own scale."""
        return (0.0, 1.0) if self.nl_assertions else (self.scale.min, self.scale.max)

    async def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        prompt = self._prompt(case, trace)
        detail = {"judge_model": self.label, "judge_prompt_hash": prompt.digest}
        schema = self.judge_response_schema or self.criteria.schema()
        questions = [(model, prompt, repeat) for model, repeat in self.planned_calls]
        try:
            outcomes = await ask(self, questions, schema, self.criteria.read)
        except EvaluatorError as error:
            raise failure(error, detail) from error
        try:
            return self._evaluation(outcomes, {**detail, **spending(outcomes)})
        except EvaluatorError as error:
            raise failure(error, {**detail, **self._votes(outcomes)}, outcomes) from error

    def _evaluation(self, outcomes: Sequence[JudgeOutcome[Verdict]], detail: dict[str, Any]) -> Evaluation:
        criteria = self.criteria
        verdicts = [outcome.value for outcome in outcomes if outcome.value is not None]
        if self.combine == "majority":
            passed = majority(outcomes, criteria.passes)
        elif len(verdicts) < len(outcomes):
            raise first_error(outcomes)
        together = _joint_verdict(verdicts)
        if self.combine == "mean":
            passed = criteria.passes(together)
        scores = [score for verdict in verdicts if (score := criteria.score(verdict)) is not None]
        detail |= criteria.detail(together) | self._votes(outcomes, passed)
        return Evaluation(passed, sum(scores) / len(scores), criteria.reason(together), detail, cost_usd=cost(outcomes))

    def _votes(self, outcomes: Sequence[JudgeOutcome[Verdict]], decision: bool | None = None) -> dict[str, Any]:
        """Each vote, if there are several, and the share that agrees with the decision."""
        if len(outcomes) == 1:
            return {}
        votes = [self._vote(outcome) for outcome in outcomes]
        if decision is None:
            return {"votes": votes}
        return {"votes": votes, "agreement": agreeing_share([vote.get("passed") for vote in votes], decision)}

    def _vote(self, outcome: JudgeOutcome[Verdict]) -> dict[str, Any]:
        if outcome.value is None:
            return {"model": outcome.model, "error": str(outcome.error)}
        criteria, verdict = self.criteria, outcome.value
        detail = {"passed": criteria.passes(verdict), "score": criteria.score(verdict)}
        return {"model": outcome.model, **detail, "reason": criteria.reason(verdict)}

    def _prompt(self, case: Case, trace: Trace) -> Prompt:
        shown = fields_of(self._shown, case, trace, or_missing=self.lenient)
        if (expected := expectation_of(case)) is not None:
            shown.append(("what the author of the case expects", expected))
        if not shown:
            message = "there is nothing to judge: 'include_in_prompt' is empty, and the case expects nothing"
            raise EvaluatorError(message, "absent_field")
        # What is the same for every cell comes first: providers cache the beginning of a prompt and charge less for it.
        return Prompt(f"{_TASK}\n\n{DATA_RULE}\n\n{_question(self.criteria)}", data_blocks(shown))


_TASK = (
    "You judge what an AI system answered. Below are the criteria; then you are shown data of one case. "
    "Judge by the criteria alone, strictly and literally, and reply with one JSON object and nothing else."
)


def _question(criteria: Criteria) -> str:
    parts = []
    reply = []
    if criteria.assertions:
        lines = [
            f"{i}. ({'required' if assertion.required else 'optional'}) {assertion.text}"
            for i, assertion in enumerate(criteria.assertions, 1)
        ]
        parts.append("\n".join(["Assertions:", *lines]))
        parts.append("Judge every assertion, required or optional, in this order: does it hold for the data?")
        reply.append('"assertions": [{"text": the assertion, "passed": true or false, "reason": one sentence}, ...]')
    if (rubric := criteria.rubric) is not None:
        scale = f"{rubric.scale.min:g} (worst) to {rubric.scale.max:g} (best)"
        parts.append(f"Rubric, with a score from {scale}:\n{rubric.text}")
        reply.append('"score": the number, "rubric_reason": one or two sentences')
    return "\n\n".join([*parts, f"Reply with this JSON object:\n{{{', '.join(reply)}}}"])


def _joint_verdict(verdicts: Sequence[Verdict]) -> Verdict:
    """The mean of several replies: an assertion holds if more than half of them agree; a score is the mean.

    Reasons are taken from the first judge that agrees.
    """
    if len(verdicts) == 1:
        return verdicts[0]
    positions = range(len(verdicts[0].holds))
    holds = [sum(verdict.holds[i] for verdict in verdicts) * 2 > len(verdicts) for i in positions]
    reasons = [next((v.reasons[i] for v in verdicts if v.holds[i] == holds[i]), "") for i in positions]
    scores = [verdict.score for verdict in verdicts if verdict.score is not None]
    mean = sum(scores) / len(scores) if scores else None
    nearest = min(verdicts, key=lambda verdict: abs((verdict.score or 0.0) - (mean or 0.0)))
    return Verdict(holds, reasons, mean, nearest.rubric_reason)


def _reached_by(threshold: Any, low: Any, high: Any) -> str:
    """Which scores of a scale reach a threshold, if that is all of them or none; else, and for no numbers, empty."""
    if not all(isinstance(number, (int, float)) for number in (threshold, low, high)):
        return ""
    return "every score" if threshold <= low else "no score" if threshold > high else ""


def _assertion_problems(values: Mapping[str, Any]) -> list[Problem]:
    assertions = values.get("nl_assertions")
    if assertions == []:
        return [Problem("", "'nl_assertions' must be a non-empty list of strings or mappings", key="nl_assertions")]
    problems = [
        Problem("", f"'nl_assertions[{i}]' must not be blank", key=f"nl_assertions[{i}]")
        for i, item in enumerate(assertions or ())
        if not (item if isinstance(item, str) else item.text).strip()
    ]
    rule = values.get("pass_when", "all")
    if not isinstance(rule, str) or rule.strip() in _RULES:
        return problems
    count, least = len(assertions or ()), needed(rule)
    if least is None:
        expected = ", ".join(map(repr, _RULES))
        message = f"'pass_when' must be one of {expected}, 'k_of_n=N', found {as_written(rule)}"
        return [*problems, Problem("", message, key="pass_when")]
    if assertions and not 1 <= least <= count:
        message = f"'pass_when' is {rule!r}, expected a number from 1 to {count}, the number of assertions"
        problems.append(Problem("", message, key="pass_when"))
    return problems


def _rubric_problems(values: Mapping[str, Any]) -> list[Problem]:
    rubric, scale = values.get("rubric"), values.get("scale")
    problems = []
    if rubric is None and values.get("nl_assertions") is None:
        problems.append(Problem("", "needs 'nl_assertions' or 'rubric', found neither", key="nl_assertions"))
    if isinstance(rubric, str) and not rubric.strip():
        problems.append(Problem("", "'rubric' must not be blank", key="rubric"))
    threshold = "pass_threshold" if values.get("nl_assertions") is None else "rubric_pass_threshold"
    if rubric is not None and values.get(threshold) is None:
        problems.append(Problem("", f"the required key {threshold!r} is missing, expected a number", key=threshold))
    if isinstance(scale, RubricScale) and not scale.min < scale.max:
        message = f"'scale' must have min below max, found {scale.min:g} and {scale.max:g}"
        problems.append(Problem("", message, key="scale"))
    return problems


def _schema_problems(schema: dict[str, Any]) -> list[Problem]:
    from jsonschema import Draft202012Validator, SchemaError

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return [Problem("", f"must be a JSON Schema, found: {error.message[:120]}", key="judge_response_schema")]
    return []
