"""A Python function as an evaluator: its parameters select what it gets, its return value decides whether that
passes."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import deepcopy
from functools import cached_property
from typing import Annotated, Any, ClassVar

import msgspec

from evalwright.errors import EvaluatorError, InputError, Problem, did_you_mean
from evalwright.evaluators.plugin import readable
from evalwright.evaluators.wording import shown
from evalwright.model.artifact import Artifact
from evalwright.model.result import Evaluation, EvaluationResult
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace
from evalwright.session.named_objects import named_object

__all__ = ["FunctionEvaluator"]

_ARGUMENTS: dict[str, Callable[[Case, Trace, Any], Any]] = {
    "input": lambda case, trace, extra: case.input,
    "output": lambda case, trace, extra: _output(trace),
    "expected": lambda case, trace, extra: case.expected,
    "case": lambda case, trace, extra: case,
    "trace": lambda case, trace, extra: trace,
    "artifact": lambda case, trace, extra: extra,
    "results": lambda case, trace, extra: {row.evaluator: row for row in extra},
}
"""What a parameter gets by its name; `extra` is the artifact or the results."""

Extra = Artifact | Sequence[EvaluationResult] | None


class FunctionEvaluator(msgspec.Struct, frozen=True, dict=True):
    """Whether a Python function passes the answer.

    Its parameters are filled by name: `input`, `output` (the text, else the structured answer), `expected`, `case`,
    `trace`, `artifact`, `results`. It returns a bool, a number from 0 to 1, either with a reason, a mapping with
    `passed`, `score` and `reason`, or an `Evaluation`; it raises if it cannot judge. It may be asynchronous.
    """

    function: str
    """`module.path:callable`."""
    threshold: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.5
    """The lowest number that passes, if the function returns no verdict."""
    uses_model: bool = False
    """Whether it waits for a model; several cells are then evaluated at a time."""

    imports_code = True
    passes_from: ClassVar[str] = "threshold"

    @staticmethod
    def calls_models(config: Mapping[str, Any]) -> bool:
        return bool(config.get("uses_model"))

    @staticmethod
    def config_problems(values: Mapping[str, Any]) -> list[Problem]:
        place = values.get("function")
        if not isinstance(place, str):
            return []
        try:
            function = named_object(place, "function")
        except InputError as error:
            return list(error.listed)
        return [Problem("", message, key="function") for message in _faults(function)]

    @property
    def uses_case(self) -> bool:
        return not {"input", "expected", "case"}.isdisjoint(self._parameters)

    @property
    def uses_artifact(self) -> bool:
        return "artifact" in self._parameters

    @property
    def uses_results(self) -> bool:
        return "results" in self._parameters

    @property
    def blocks(self) -> bool:
        return not inspect.iscoroutinefunction(self._function)

    @cached_property
    def _function(self) -> Callable[..., Any]:
        function: Callable[..., Any] = named_object(self.function, "function")
        return function

    @cached_property
    def _parameters(self) -> list[str]:
        return [name for name in _names(self._function) if name in _ARGUMENTS]

    def evaluate(self, case: Case, trace: Trace, extra: Extra = None) -> Evaluation | Awaitable[Evaluation]:
        if trace.error is not None and "trace" not in self._parameters:
            raise EvaluatorError(f"there is no answer to evaluate: {trace.error.type}", "no_answer")
        # copies: what a function changes must not be what the next evaluator, trial or variant sees
        arguments = {name: deepcopy(_ARGUMENTS[name](case, trace, extra)) for name in self._parameters}
        returned = self._function(**arguments)
        if isinstance(returned, Awaitable):
            return self._awaited_evaluation(returned)
        return self._evaluation(returned)

    async def _awaited_evaluation(self, returned: Awaitable[Any]) -> Evaluation:
        return self._evaluation(await returned)

    def _evaluation(self, returned: Any) -> Evaluation:
        if isinstance(returned, Evaluation):
            return readable(returned)
        if isinstance(returned, Mapping):
            return self._evaluation_in_mapping(returned)
        reason = ""
        if isinstance(returned, tuple) and len(returned) == 2 and isinstance(returned[1], str):
            returned, reason = returned
        passed, score = self._verdict(returned)
        return Evaluation(passed, score, reason)

    def _evaluation_in_mapping(self, returned: Mapping[str, Any]) -> Evaluation:
        unknown = sorted(map(str, returned.keys() - {"passed", "score", "reason"}))
        if unknown or returned.keys().isdisjoint({"passed", "score"}):
            keys = ", ".join(map(repr, returned)) or "none"
            raise EvaluatorError(f"expected a mapping with 'passed' or 'score', and maybe 'reason', found keys {keys}")
        passed, score = returned.get("passed"), returned.get("score")
        verdicts = [self._verdict(value) for value in (passed, score) if value is not None]
        if not verdicts or (passed is not None and not isinstance(_scalar(passed), bool)):
            raise EvaluatorError(f"expected a bool at 'passed', found {shown(passed)}")
        if isinstance(_scalar(score), bool):
            raise EvaluatorError(f"expected a number from 0 to 1 at 'score', found {score}: a bool belongs at 'passed'")
        return Evaluation(verdicts[0][0], verdicts[-1][1], str(returned.get("reason") or ""))

    def _verdict(self, value: Any) -> tuple[bool, float]:
        value = _scalar(value)
        if isinstance(value, bool):
            return value, float(value)
        if isinstance(value, int | float):
            if not 0 <= value <= 1:
                raise EvaluatorError(f"expected a number from 0 to 1, found {value!r}")
            return value >= self.threshold, float(value)
        wanted = "a bool, a number from 0 to 1, either with a reason, a mapping or an Evaluation"
        raise EvaluatorError(f"expected {wanted}, found {'None' if value is None else type(value).__name__}")


def _scalar(value: Any) -> Any:
    """Numbers and bools of numpy and the like as Python ones."""
    if isinstance(value, bool | int | float) or not hasattr(value, "item"):
        return value
    try:
        return value.item()
    except (TypeError, ValueError):
        return value


def _output(trace: Trace) -> Any:
    output = trace.output
    return output.structured if output.final_answer is None and output.structured is not None else output.final_answer


def _faults(function: Any) -> list[str]:
    if not callable(function):
        return [f"expected a function, found {type(function).__name__}"]
    known = ", ".join(_ARGUMENTS)
    required = _names(function, required=True)
    faults = [
        f"unknown parameter {name!r}{did_you_mean(name, _ARGUMENTS)} (a function may take {known})"
        for name in required
        if name not in _ARGUMENTS
    ]
    by_position = [name for name in required if name in _ARGUMENTS and name not in _names(function)]
    faults += [f"the parameter {name!r} accepts no keyword, by which it would be filled" for name in by_position]
    if {"artifact", "results"} <= set(_names(function)):
        faults.append("expected 'artifact' or 'results' as a parameter, found both")
    return faults


def _names(function: Callable[..., Any], *, required: bool = False) -> list[str]:
    """Names of parameters that can be passed by name."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    if required:
        kinds = (*kinds, inspect.Parameter.POSITIONAL_ONLY)  # type: ignore[assignment]
        return [p.name for p in parameters if p.kind in kinds and p.default is inspect.Parameter.empty]
    return [p.name for p in parameters if p.kind in kinds]
