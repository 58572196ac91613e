"""Users' code, `file.py:Name`: found, executed once, and turned into a runnable or an evaluator."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from evalwright.errors import InputError, did_you_mean
from evalwright.formats import shims
from evalwright.formats.pixie import FORMAT
from evalwright.registry import PREMADE
from evalwright.session import import_from
from evalwright.session.imports import module_at
from evalwright.session.parsed_modules import NotExecuted

__all__ = ["attribute_at", "evaluator_at", "runnable_at"]


def runnable_at(place: str, folders: Sequence[Path]) -> Any:
    """The class or function at `file.py:Name`. Raises InputError."""
    if ":" not in place:
        raise InputError(f"Runnable must use filepath:name format (pixie_qa/scripts/run_app.py:App), found {place!r}")
    attribute = attribute_at(place, folders, "runnable")
    if not callable(attribute):
        raise InputError(f"Runnable {place!r} does not resolve to a callable.")
    return attribute


def evaluator_at(place: str, folders: Sequence[Path]) -> Any:
    """The pre-made evaluator of that name, or the evaluator at `file.py:Name`. Raises InputError."""
    if ":" not in place:
        if place not in PREMADE:
            raise InputError(
                f"Unknown evaluator {place!r}{did_you_mean(place, PREMADE)} Pre-made evaluators have bare names "
                f"(Factuality), your own are named by filepath:name (pixie_qa/evaluators.py:check)"
            )
        from evalwright.formats.pixie.surface import evals

        return getattr(evals, place)()
    attribute = attribute_at(place, folders, "evaluator")
    if not callable(attribute):
        raise InputError(f"Evaluator {place!r} does not resolve to a callable.")
    if isinstance(attribute, NotExecuted) and attribute.always_raises:
        raise InputError(f"Invalid evaluator {place!r}: making one raises {attribute.always_raises}")
    if not (inspect.isclass(attribute) or (inspect.isfunction(attribute) and _is_factory(attribute))):
        return attribute
    try:
        made = attribute()
    except Exception as error:
        raise InputError(f"Invalid evaluator {place!r}: {type(error).__name__}: {error}") from error
    if not callable(made):
        raise InputError(f"Evaluator {place!r} does not resolve to a callable: it returned {type(made).__name__}")
    return made


def _is_factory(function: Callable[..., Any]) -> bool:
    """Whether a function can be called without arguments: then it creates the evaluator."""
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    return all(p.default is not p.empty or p.kind in kinds for p in parameters)


def attribute_at(place: str, folders: Sequence[Path], role: str) -> Any:
    """The object at `file.py:Name`; the file is searched for in each of `folders`. Raises InputError."""
    path, _, name = place.rpartition(":")
    file = next((candidate for folder in folders if os.path.isfile(candidate := folder / path)), None)
    if file is None:
        raise InputError(f"Invalid {role} {place!r}: there is no file {path!r}")
    import_from([str(folders[0].resolve()), str(file.parent.resolve())])
    try:
        module: Any = _module(file)
        for part in name.split("."):
            module = getattr(module, part)
    except AttributeError as error:
        known = [word for word in vars(module) if not word.startswith("_")] if isinstance(module, ModuleType) else []
        raise InputError(f"Invalid {role} {place!r}: {path} has no {name!r}{did_you_mean(name, known)}") from error
    except (KeyboardInterrupt, InputError):
        raise
    except BaseException as error:
        why = f"{error.msg} ({error.filename}, line {error.lineno})" if isinstance(error, SyntaxError) else error
        raise InputError(f"Invalid {role} {place!r}: {type(error).__name__}: {why}") from error
    return module


def _module(file: Path) -> ModuleType:
    shims.serve(FORMAT)
    try:
        return module_at(file)
    except AttributeError as error:  # raised by the user's own code, not for the missing name
        raise InputError(f"{file.name} cannot be imported: AttributeError: {error}") from error
