"""Graders as objects and functions, for programs that grade without a suite."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

from evalwright.errors import EvaluatorError
from evalwright.evaluators.build import build_evaluator
from evalwright.evaluators.judges.rubric_template import RubricTemplate, filled, names_in_template
from evalwright.formats.letta.functions import function_at
from evalwright.formats.letta.graders import TOOL_GRADERS
from evalwright.formats.letta.surface.decorators import grader
from evalwright.formats.letta.surface.helpers import Trajectory, get_extractor
from evalwright.formats.letta.surface.models import AgentState, GradeResult, Sample
from evalwright.formats.shared.python_errors import as_the_original
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Output, Trace

__all__ = [
    "AgentJudgeGrader",
    "Grader",
    "RubricGrader",
    "ToolGrader",
    "ascii_printable_only",
    "build_judge_prompt",
    "contains",
    "exact_match",
    "extractor_requires_agent_state",
    "load_object",
    "regex_match",
]


class Grader(ABC):
    """Grades a trajectory: `grade` returns the grade and the text that was graded."""

    @property
    @abstractmethod
    def requires_agent_state(self) -> bool:
        """Whether the extractor reads the agent's memory."""

    @abstractmethod
    async def grade(
        self, sample: Sample, trajectory: Trajectory, agent_state: AgentState | None = None
    ) -> tuple[GradeResult, str]: ...


class _Extracting(Grader):
    """Grades what an extractor takes from the trajectory; if that is nothing, the grade is 0."""

    def __init__(self, extractor: str, config: dict[str, Any] | None, base_dir: Path | None) -> None:
        self._needs_state = extractor_requires_agent_state(extractor, base_dir)
        self._extract = _extractor(extractor, config, base_dir)

    @property
    def requires_agent_state(self) -> bool:
        return self._needs_state

    async def grade(
        self, sample: Sample, trajectory: Trajectory, agent_state: AgentState | None = None
    ) -> tuple[GradeResult, str]:
        if not any(trajectory):
            return GradeResult(score=0.0, rationale="Empty trajectory - agent produced no messages"), ""
        before = perf_counter()
        submission = self._extract(trajectory, agent_state=agent_state)
        took = {"extraction_time": perf_counter() - before}
        if not submission:
            return GradeResult(score=0.0, rationale="Empty submission - extractor found no content"), ""
        returned = self._grade(sample, submission)
        grade = await returned if isinstance(returned, Awaitable) else returned
        grade.metadata = {**grade.metadata, **took}
        return grade, submission

    @abstractmethod
    def _grade(self, sample: Sample, submission: str) -> GradeResult | Awaitable[GradeResult]: ...


class ToolGrader(_Extracting):
    """A built-in function or `file.py:name`. Raises ValueError for an unknown one, FileNotFoundError if there is no
    file."""

    def __init__(
        self,
        function: str,
        extractor: str = "last_assistant",
        extractor_config: dict[str, Any] | None = None,
        base_dir: Path | None = None,
    ) -> None:
        super().__init__(extractor, extractor_config, base_dir)
        if function not in _FUNCTIONS and ":" not in function:
            raise ValueError(f"no grader {function!r} (there are: {', '.join(_FUNCTIONS)}, or file.py:name)")
        self.func: Callable[..., Any] = _FUNCTIONS.get(function) or load_object(function, base_dir, "grader")

    def _grade(self, sample: Sample, submission: str) -> GradeResult | Awaitable[GradeResult]:
        return self.func(sample, submission)  # type: ignore[no-any-return]


class RubricGrader(_Extracting):
    """A judge with the author's prompt. Raises EvaluatorError if the judge cannot judge."""

    def __init__(
        self,
        prompt: str,
        model: str = "gpt-4o-mini",
        temperature: float = 0.0,
        provider: Any = "openai",
        max_retries: int = 5,
        timeout: float = 120.0,
        extractor: str = "last_assistant",
        extractor_config: dict[str, Any] | None = None,
        base_dir: Path | None = None,
        rubric_vars: list[str] | None = None,
        system_prompt: str | None = None,
    ) -> None:
        super().__init__(extractor, extractor_config, base_dir)
        self._judge = RubricTemplate(
            prompt=prompt,
            model=model,
            temperature=temperature,
            provider=str(provider),  # type: ignore[arg-type]
            system_prompt=system_prompt,
            timeout=timeout,
            max_attempts=1 + max_retries,
            rubric_vars=rubric_vars or [],
        )

    async def _grade(self, sample: Sample, submission: str) -> GradeResult:
        evaluation = await self._judge.evaluate(_case(sample), _trace(submission))
        return _result(evaluation)


class AgentJudgeGrader(RubricGrader):
    """In the original, a judge that is an agent on a Letta server; here a model judges with the same prompt."""

    def __init__(
        self,
        agent_file: Any = None,
        prompt: str = "",
        client: Any = None,
        project_id: str | None = None,
        judge_tool_name: str = "submit_grade",
        **settings: Any,
    ) -> None:
        super().__init__(prompt, **settings)


def load_object(spec: str, base_dir: Path | None = None, role: str | None = None) -> Any:
    """The object at `file.py:name`. Raises FileNotFoundError if there is no file, ValueError if it lacks the name."""
    named, colon, name = spec.rpartition(":")
    if not colon:
        raise ValueError(f"expected file.py:name, found {spec!r}")
    path = (base_dir or Path()) / named
    with as_the_original(path):
        return function_at(f"{path}:{name}", role)


def build_judge_prompt(rubric: str, sample: Sample, submission: str) -> str:
    """The rubric with the data that a judge needs. Raises KeyError for a name without a value, ValueError for a
    variable with one of the three reserved names."""
    own = {"input": sample.input, "ground_truth": sample.ground_truth or "", "submission": submission}
    if clashing := sorted(own.keys() & (sample.rubric_vars or {}).keys()):
        raise ValueError(f"rubric_vars: {clashing[0]!r} is the name of one of the sample's own fields")
    values = {**own, **(sample.rubric_vars or {})}
    if missing := sorted(names_in_template(rubric, doubled=True) - values.keys()):
        raise KeyError(missing[0])
    return filled(rubric, values, doubled=True)


def extractor_requires_agent_state(name: str, base_dir: Path | None = None) -> bool:
    """Whether an extractor reads the agent's memory."""
    if ":" not in name:
        return name == "memory_block"
    return load_object(name, base_dir, "extractor").__code__.co_argcount > 2  # type: ignore[no-any-return]


def _extractor(name: str, config: dict[str, Any] | None, base_dir: Path | None) -> Callable[..., str]:
    if ":" not in name:
        return get_extractor(name, config)
    function, needs = load_object(name, base_dir, "extractor"), extractor_requires_agent_state(name, base_dir)

    def extract(trajectory: Trajectory, agent_state: AgentState | None = None) -> str:
        return str(function(trajectory, config or {}, *([agent_state] if needs else [])))

    return extract


def _builtin(name: str) -> Callable[[Sample, str], GradeResult]:
    judge = build_evaluator(TOOL_GRADERS[name], {})

    @grader
    def grade(sample: Sample, submission: str) -> GradeResult:
        try:
            evaluation: Any = judge.evaluate(_case(sample), _trace(submission))
        except EvaluatorError as error:
            raise ValueError(str(error)) from error
        return _result(evaluation)

    grade.__name__ = grade.__qualname__ = name
    return grade


def _case(sample: Sample) -> Case:
    fields = {name: getattr(sample, name) for name in ("ground_truth", "rubric_vars", "rubric")}
    return Case(str(sample.id), sample.input, extra={key: value for key, value in fields.items() if value is not None})


def _trace(submission: str) -> Trace:
    now = datetime.now(UTC)
    return Trace("", "", now, now, 0, input="", output=Output(submission))


def _result(evaluation: Evaluation) -> GradeResult:
    return GradeResult(score=evaluation.score or 0.0, rationale=evaluation.reason, metadata=evaluation.detail)


ascii_printable_only: Callable[[Sample, str], GradeResult] = _builtin("ascii_printable_only")
contains: Callable[[Sample, str], GradeResult] = _builtin("contains")
exact_match: Callable[[Sample, str], GradeResult] = _builtin("exact_match")
regex_match: Callable[[Sample, str], GradeResult] = _builtin("regex_match")
_FUNCTIONS = {
    "ascii_printable_only": ascii_printable_only,
    "contains": contains,
    "exact_match": exact_match,
    "regex_match": regex_match,
}
