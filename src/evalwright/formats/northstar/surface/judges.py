"""Judges that call a model, or a user's function instead."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model, field_validator, model_validator

from evalwright.errors import EvaluatorError
from evalwright.evaluators.judges.conversation import ConversationJudge, Question
from evalwright.evaluators.judges.readable_reply import JudgeReply
from evalwright.evaluators.judges.scales import Reading, Scoring, scale_problem
from evalwright.formats.northstar.authored import EvalCase
from evalwright.formats.northstar.surface.graders import Grader
from evalwright.formats.northstar.surface.judge_keys import check_key
from evalwright.formats.northstar.surface.results import GradeResult, failed_grade
from evalwright.formats.northstar.surface.runs import EvalRun
from evalwright.llm.kept_calls import kept_call
from evalwright.llm.routes import route_of
from evalwright.model.chat import ChatReply, ChatRequest
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace
from evalwright.session import session

__all__ = [
    "DEFAULT_RUBRIC_JUDGE_MODEL",
    "BinaryJudgeOutput",
    "CompletionFn",
    "FaithfulnessJudge",
    "HallucinatedToolResultJudge",
    "JudgeScoringConfig",
    "PlanningActionMismatchJudge",
    "RubricJudge",
    "numeric_judge_output_model",
]

DEFAULT_RUBRIC_JUDGE_MODEL = "openrouter/deepseek/deepseek-v4-flash"
"""The original's default, for programs written for it; the command line uses the one in `formats.northstar.plans`."""
CompletionFn = Callable[..., Any]
"""Called with model, messages, temperature and response_format (the model of a reply); returns an object with
`choices[0].message.content`."""


class JudgeScoringConfig(BaseModel):
    """The scale of a judge."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    mode: Literal["binary", "numeric"]
    min_score: float = 0.0
    max_score: float = 1.0
    passing_score: float | None = None
    labels: dict[float, str] | None = None

    @model_validator(mode="after")
    def _sound(self) -> JudgeScoringConfig:
        if self.mode == "binary" and self.passing_score is None:
            self.passing_score = self.max_score
        problem = scale_problem(Scoring(self.mode, self.min_score, self.max_score, self.passing_score))
        if problem is not None:
            raise ValueError(problem)
        return self


class _JudgeOutput(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    reason: str
    feedback: str
    label: str | None = None
    confidence: float | None = Field(default=None, ge=0, le=1)
    evidence: list[str] = Field(default_factory=list)

    @field_validator("reason", "feedback")
    @classmethod
    def _not_blank(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("must not be blank")
        return value.strip()


class BinaryJudgeOutput(_JudgeOutput):
    """The reply of a judge that passes or fails."""

    passed: bool


def numeric_judge_output_model(min_score: float | JudgeScoringConfig = 0.0, max_score: float = 1.0) -> type[BaseModel]:
    """The reply of a judge with a scale, given by its ends or as a configuration."""
    if isinstance(min_score, JudgeScoringConfig):
        return numeric_judge_output_model(min_score.min_score, min_score.max_score)
    return create_model("NumericJudgeOutput", __base__=_JudgeOutput, score=(float, Field(ge=min_score, le=max_score)))


class _Judge(Grader):
    requires_feedback = True

    def __init__(
        self,
        name: str,
        type: str,
        config: Mapping[str, Any],
        completion_fn: CompletionFn | None,
        scoring: JudgeScoringConfig | Mapping[str, Any] | None,
    ) -> None:
        settings = {key: value for key, value in config.items() if value is not None}
        if scoring is not None:
            checked = JudgeScoringConfig.model_validate(scoring)
            settings["scoring"] = checked.model_dump(exclude={"labels"})
            settings["scoring"]["labels"] = {str(key): label for key, label in (checked.labels or {}).items()}
        super().__init__(name, type, settings)
        self.model: Any = config["model"]
        self.temperature: Any = config["temperature"]
        self.completion_fn: CompletionFn | None = completion_fn
        self.scoring: JudgeScoringConfig = _scale(scoring, config["threshold"])
        span = self.scoring.max_score - self.scoring.min_score
        self.threshold: float = ((self.scoring.passing_score or 0.0) - self.scoring.min_score) / span

    def grade(self, case: EvalCase, run: EvalRun) -> GradeResult:
        """Grade the run that is given.

        Raises JudgeAuthenticationError without the key of the model, and whatever `completion_fn` raises.
        """
        try:
            return self.graded(case, run)
        except EvaluatorError as error:
            return self.failed(error)

    def failed(self, error: Exception) -> GradeResult:
        """The grade for a missing verdict; a reply that could not be read is in `metadata.raw_response`."""
        grade = failed_grade(self, error)
        if isinstance(error, EvaluatorError) and error.type == "bad_reply":
            grade.reason = "LLM judge returned invalid JSON."
            grade.feedback = "The judge response did not include valid pass/fail feedback."
        return grade

    def evaluate(self, case: Case, trace: Trace) -> Evaluation | Awaitable[Evaluation]:
        assert isinstance(self.evaluator, ConversationJudge)
        question = self.evaluator.question_for(case, trace)
        return question if isinstance(question, Evaluation) else self._judged_by(self.evaluator, question)

    async def _judged_by(self, judge: ConversationJudge, question: Question) -> Evaluation:
        if self.completion_fn is not None:
            reply = await _completed_by(self.completion_fn, question.request, self._reply_model())
        else:
            if route_of(question.request).key is None:
                check_key(question.request.model)
            reply = await session().models.chat(question.request, "judge")
        read = _read(question, reply)
        if read.value is None and self.completion_fn is None:
            session().models.forget(question.request)
        return judge.verdict(question, read)

    def _reply_model(self) -> type[BaseModel]:
        if self.scoring.mode == "binary":
            return BinaryJudgeOutput
        return numeric_judge_output_model(self.scoring.min_score, self.scoring.max_score)


def _read(question: Question, reply: ChatReply) -> JudgeReply[Reading]:
    try:
        return JudgeReply(question.scale.read(reply.text, as_original=True), [reply], ())
    except ValueError as error:
        return JudgeReply(None, [reply], (), str(error))


def _scale(scoring: JudgeScoringConfig | Mapping[str, Any] | None, threshold: float) -> JudgeScoringConfig:
    if scoring is None:
        return JudgeScoringConfig(mode="numeric", passing_score=threshold)
    return JudgeScoringConfig.model_validate(scoring)


async def _completed_by(function: CompletionFn, request: ChatRequest, reply_model: type[BaseModel]) -> ChatReply:
    messages = [{"role": "system", "content": request.system}] if request.system else []
    messages += [{"role": message.role, "content": message.content} for message in request.messages]
    fields = {
        "model": request.model,
        "messages": messages,
        "temperature": request.temperature,
        "response_format": reply_model,
    }
    with kept_call(request.model, messages) as call:
        reply = await asyncio.to_thread(function, **fields)
        if inspect.isawaitable(reply):
            reply = await reply
        return ChatReply(call.note_output(_content_of(reply)), request.model)


def _content_of(reply: Any) -> str:
    """`choices[0].message.content`, from objects or mappings."""
    for step in ("choices", 0, "message", "content"):
        reply = reply[step] if isinstance(step, int) or isinstance(reply, Mapping) else getattr(reply, step)
    return reply if isinstance(reply, str) else ""


class RubricJudge(_Judge):
    """Whether a conversation reaches its goal, by a rubric."""

    def __init__(
        self,
        name: str,
        model: str = DEFAULT_RUBRIC_JUDGE_MODEL,
        *,
        rubric: str | None = None,
        completion_fn: CompletionFn | None = None,
        threshold: float = 0.5,
        temperature: float = 0.0,
        scoring: JudgeScoringConfig | Mapping[str, Any] | None = None,
    ) -> None:
        config = {"model": model, "rubric": rubric, "threshold": threshold, "temperature": temperature}
        super().__init__(name, "rubric_judge", config, completion_fn, scoring)
        self.rubric = rubric


class _NamedJudge(_Judge):
    type: ClassVar[str]
    """The wrapped evaluator, and its name unless another is given."""

    def __init__(
        self,
        name: str | None = None,
        model: str = DEFAULT_RUBRIC_JUDGE_MODEL,
        *,
        completion_fn: CompletionFn | None = None,
        threshold: float = 0.7,
        temperature: float = 0.0,
        scoring: JudgeScoringConfig | Mapping[str, Any] | None = None,
    ) -> None:
        config = {"model": model, "threshold": threshold, "temperature": temperature}
        super().__init__(self.type if name is None else name, self.type, config, completion_fn, scoring)


class FaithfulnessJudge(_NamedJudge):
    """Whether what the final response claims is supported."""

    type = "faithfulness_judge"


class HallucinatedToolResultJudge(_NamedJudge):
    """Whether the answer claims results of tools that no tool returned."""

    type = "hallucinated_tool_result_judge"


class PlanningActionMismatchJudge(_NamedJudge):
    """Whether the actions fit the plans."""

    type = "planning_action_mismatch_judge"
