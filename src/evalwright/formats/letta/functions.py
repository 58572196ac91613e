"""Functions in users' files, `path.py:name`, as graders and extractors."""

from __future__ import annotations

import inspect
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import ValidationError

from evalwright.errors import EvaluatorError, InputError, Problem, did_you_mean
from evalwright.evaluators.conversation.turns import Turn
from evalwright.files.paths import near_file
from evalwright.formats import shims
from evalwright.formats.letta import FORMAT
from evalwright.formats.letta.surface.decorators import role_of
from evalwright.formats.letta.surface.messages import trajectory_of
from evalwright.formats.letta.surface.models import AgentState, Block, GradeResult, sample_of
from evalwright.formats.shared.findings import joined_mistakes
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace
from evalwright.session import import_from
from evalwright.session.imports import module_at
from evalwright.session.parsed_modules import NotExecuted

__all__ = ["PythonExtractor", "PythonGrader", "final_state_of", "function_at"]


def function_at(place: str, role: str | None, key: str = "function") -> Callable[..., Any]:
    """The function at `path.py:name`, which must carry the decorator `role` if one is given.

    A file is executed once per process, with its folder importable. Raises InputError for a missing file or name, a
    missing decorator, and any exception while executing the file.
    """
    path, _, name = place.rpartition(":")
    if not name:
        raise _config_error(key, f"expected file.py:function, found {Path(path).name!r}")
    module = _module_at(Path(path), key)
    function = getattr(module, name, None)
    if function is None:
        known = [n for n, value in vars(module).items() if callable(value) and not n.startswith("_")]
        raise _config_error(
            key, f"{Path(path).name} has no {name!r}{did_you_mean(name, known)} (it has: {', '.join(known)})"
        )
    if role is not None and not isinstance(function, NotExecuted) and role_of(function) != role:
        raise _config_error(key, f"{Path(path).name}:{name} is not decorated with @{role}")
    return function  # type: ignore[no-any-return]


def _module_at(path: Path, key: str) -> ModuleType:
    if path.suffix != ".py":
        raise _config_error(key, f"expected a .py file, found {str(path)!r}")
    if not os.path.isfile(path):
        raise _config_error(key, f"there is no file {str(path)!r}{near_file(path)}")
    shims.serve(FORMAT)
    import_from([str(path.resolve().parent)])
    try:
        return module_at(path)
    except (KeyboardInterrupt, InputError):
        raise
    except BaseException as error:  # users' modules may call `sys.exit`
        hint = shims.known_names(error) if isinstance(error, ImportError) else ""
        raise _config_error(key, f"{path.name} cannot be imported: {type(error).__name__}: {error}{hint}") from error


def _config_error(key: str, message: str) -> InputError:
    return InputError(Problem("", f"{key}: {message}", key=key))


class PythonGrader:
    """A `@grader` function: `(sample, submission) -> GradeResult`. `function` is `path.py:name`.

    With `reported_errors`, a grade with an `error` in its metadata counts as a grader that failed.
    """

    imports_code = True

    def __init__(self, function: str, reported_errors: bool = False) -> None:
        self._function = function_at(function, "grader")
        self._reported_errors = reported_errors
        self.blocks: bool = not inspect.iscoroutinefunction(self._function)

    def evaluate(self, case: Case, trace: Trace) -> Evaluation | Awaitable[Evaluation]:
        try:
            function = self._function(sample_of(case), trace.output.final_answer or "")
        except Exception as error:
            raise _function_error(error) from error
        return self._later(function) if isinstance(function, Awaitable) else self._evaluation(function)

    async def _later(self, pending: Awaitable[Any]) -> Evaluation:
        try:
            graded = await pending
        except Exception as error:
            raise _function_error(error) from error
        return self._evaluation(graded)

    def _evaluation(self, returned: Any) -> Evaluation:
        try:
            graded = GradeResult.model_validate(returned, from_attributes=True)
        except ValidationError as error:
            raise EvaluatorError(
                f"the grader returned no GradeResult: {joined_mistakes(error)}", "grader_error"
            ) from error
        turns = [turn.model_dump() for turn in graded.per_turn_grades or ()]
        parts = {"metadata": graded.metadata, "per_turn": turns}
        detail = {key: part for key, part in parts.items() if part}
        if self._reported_errors and (reported := graded.metadata.get("error")):
            raise EvaluatorError(f"the grader reported an error: {reported}", "grader_error", detail)
        return Evaluation(graded.score >= 1.0, graded.score, graded.rationale or "", detail)


def _function_error(error: Exception) -> EvaluatorError:
    wrong = f"{error.title}: {joined_mistakes(error)}" if isinstance(error, ValidationError) else error
    return EvaluatorError(f"the grader raised {type(error).__name__}: {wrong}", "grader_error")


def final_state_of(blocks: dict[str, str] | None) -> AgentState | None:
    """The agent's final state; None if the trace does not say it, as in the original."""
    return None if blocks is None else AgentState(blocks=[Block(label=k, value=v) for k, v in blocks.items()])


class PythonExtractor:
    """An `@extractor` function: `(trajectory, config[, agent_state]) -> str`. Other keys are its `config`."""

    imports_code = True

    def __init__(self, function: str, config: dict[str, Any] | None = None) -> None:
        self._function = function_at(function, "extractor", "extractor")
        self._config = config or {}
        self._wants_state = len(inspect.signature(self._function).parameters) > 2

    def extract(self, turns: list[Turn], blocks: dict[str, str] | None) -> str:
        more = (final_state_of(blocks),) if self._wants_state else ()
        text: str = self._function(trajectory_of(turns), dict(self._config), *more)
        return text
