"""The arguments of a dataset's entries, checked with the model of its Runnable before anything runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from evalwright.errors import InputError
from evalwright.formats.pixie.argument_fields import argument_model, is_function
from evalwright.formats.pixie.surface.runnable import arguments_model, is_runnable
from evalwright.formats.pixie.user_code import runnable_at
from evalwright.formats.shared.findings import mistakes_in
from evalwright.session.imports import executes_code

__all__ = ["HeldArguments", "hold_arguments"]


class HeldArguments(NamedTuple):
    """The findings about the entries."""

    unfit: list[tuple[int, str, str]]
    """The number of an entry, from 0; one of its arguments; and why the model would reject it."""
    unsure: int
    """Number of entries that could still be rejected, which is only known after importing the Runnable."""


class _Model(Protocol):
    def mismatches(self, arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]: ...

    def is_sure_of(self, arguments: Mapping[str, Any]) -> bool: ...


class _ImportedModel:
    """The model itself."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def mismatches(self, arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        from pydantic import ValidationError

        try:
            self._model.model_validate(arguments)
        except ValidationError as error:
            for argument, mistake in mistakes_in(error):
                yield argument, f"the Runnable's model rejects it: {mistake}"
        except Exception as error:  # raised by a validator, which is the user's code
            yield "", f"the Runnable's model raises {type(error).__name__}: {error}"

    def is_sure_of(self, arguments: Mapping[str, Any]) -> bool:
        return True


def hold_arguments(place: str, folders: Sequence[Path], entries: Iterable[Any], *, to_run: bool) -> HeldArguments:
    """Check the entries' arguments with the Runnable's model: the model itself if code may be executed, else its
    text."""
    file, _, name = place.rpartition(":")
    existing = next((path for folder in folders if file and os.path.isfile(path := folder / file)), None)
    arguments = [(number, entry) for number, entry in enumerate(entries) if isinstance(entry, dict)]
    if existing is None or is_function(existing, name):
        return HeldArguments([], 0)
    if to_run and executes_code():
        model = _imported_model(place, folders)
        return HeldArguments([], 0) if model is None else _arguments_held(model, arguments)
    unread = argument_model(existing, name)
    return HeldArguments([], len(arguments)) if unread is None else _arguments_held(unread, arguments)


def _arguments_held(model: _Model, arguments: list[tuple[int, dict[str, Any]]]) -> HeldArguments:
    unfit = [(number, *wrong) for number, argument in arguments for wrong in model.mismatches(argument)]
    rejected = {number for number, *_ in unfit}
    unsure = sum(number not in rejected and not model.is_sure_of(argument) for number, argument in arguments)
    return HeldArguments(unfit, unsure)


def _imported_model(place: str, folders: Sequence[Path]) -> _Model | None:
    """None for a runnable that takes any arguments, and for one that cannot be imported, which is reported
    elsewhere."""
    try:
        runnable = runnable_at(place, folders)
        return _ImportedModel(arguments_model(runnable)) if is_runnable(runnable) else None
    except (InputError, ValueError):
        return None
