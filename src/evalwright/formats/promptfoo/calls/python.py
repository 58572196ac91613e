"""Providers in Python files: `call_api(prompt, options, context)`, in this process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalwright.errors import InputError, Problem, TargetError
from evalwright.formats.promptfoo.calls import Caller, ProviderCall, ProviderReply
from evalwright.formats.promptfoo.calls.replies import reply_in
from evalwright.formats.promptfoo.faults import ScriptError
from evalwright.formats.promptfoo.providers import Provider, called_of
from evalwright.formats.promptfoo.scripts import called, python_function
from evalwright.formats.promptfoo.sources import split_function
from evalwright.targets.threads import Threads

__all__ = ["PythonFile"]

_DEFAULT = "call_api"


class PythonFile(Caller):
    """Calls a function in a Python file, by default `call_api`. Raises InputError if it cannot be loaded."""

    def __init__(self, provider: Provider, folder: str) -> None:
        path, name = split_function(called_of(provider).removeprefix("python:"))
        name = _DEFAULT if name in ("", "default") else name
        self._config: dict[str, Any] = provider.get("config", {})
        self._options = {"id": provider["id"], "env": provider.get("env", {})}
        self._threads, self._name = Threads(), name
        try:
            self._function = python_function(Path(folder, path), name)
        except ScriptError as error:
            raise InputError(Problem(str(Path(folder, path)), str(error), key=provider["label"])) from None

    async def __call__(self, call: ProviderCall) -> ProviderReply:
        options = {**self._options, "config": {**self._config}}
        try:
            returned = await called(self._function, (call.prompt, options, call.context), self._threads)
        except ScriptError as error:
            raise TargetError(str(error), "provider_error") from error
        if not isinstance(returned, Mapping):
            raise TargetError(f"{self._name} gave {type(returned).__name__}, expected a mapping with output or error")
        return reply_in(returned)

    async def close(self) -> None:
        self._threads.close()
