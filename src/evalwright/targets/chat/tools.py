"""Python functions that a chat model may call: offered with their schemas, called one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from evalwright.errors import AllMistakes, InputError, Interrupted, LimitExceeded, Problem
from evalwright.files.plain import plain
from evalwright.model.trace import ToolCall, ToolResult
from evalwright.session.named_objects import named_object
from evalwright.targets.failures import text_of
from evalwright.targets.threads import Threads

__all__ = ["ToolSettings", "Tools"]


class ToolSettings(msgspec.Struct, forbid_unknown_fields=True):
    """One tool: `function` is `module.path:callable`, called with the arguments by name."""

    function: str
    name: str | None = None
    """None: the function's own name."""
    description: str | None = None
    """None: the function's docstring."""
    parameters: dict[str, Any] = {}
    """JSON Schema of the arguments; empty for a tool that takes none."""


class Tools:
    """The tools of one target. Raises InputError with keys in `tools`."""

    def __init__(self, tools: Sequence[ToolSettings]) -> None:
        self._functions: dict[str, Callable[..., Any]] = {}
        self.offers: list[dict[str, Any]] = []
        self._threads = Threads()
        mistakes = AllMistakes()
        for number, tool in enumerate(tools):
            with mistakes:
                self._add(tool, f"tools[{number}]")
        mistakes.refuse()

    def _add(self, tool: ToolSettings, place: str) -> None:
        function = named_object(tool.function, f"{place}.function")
        if not callable(function):
            raise InputError(Problem("", f"{tool.function!r} is not callable", key=f"{place}.function"))
        name = tool.name or tool.function.rpartition(":")[2].rpartition(".")[2]
        if name in self._functions:
            raise InputError(Problem("", f"two tools are named {name!r}", key=f"{place}.name"))
        self._functions[name] = function
        description = tool.description or (function.__doc__ or "").strip()
        parameters = tool.parameters or {"type": "object", "properties": {}}
        self.offers.append({"name": name, "description": description, "parameters": parameters})

    async def use(self, call: ToolCall) -> ToolResult:
        """The result of a tool. An exception, or a call that cannot be made, becomes a result that says so."""
        function = self._functions.get(call.name)
        if function is None:
            return _failed_result(
                call, f"there is no tool {call.name!r}, tools are: {', '.join(self._functions) or 'none'}"
            )
        if "_raw" in call.arguments:
            return _failed_result(call, "the arguments are not a JSON object")
        try:
            result = await self._threads.call(_call_with(function, call.arguments))
            while isinstance(result, Awaitable):
                result = await result
            content = plain(result, "result", [])
        except BaseException as error:  # tools are user code: SystemExit, too, is only the error of this call
            if _is_stop(error):
                raise
            return _failed_result(call, f"{type(error).__name__}: {text_of(error)}")
        text = content if isinstance(content, str | dict) else msgspec.json.encode(content).decode()
        return ToolResult(call.name, text, call.id)

    def close(self) -> None:
        self._threads.close()


def _call_with(function: Callable[..., Any], arguments: dict[str, Any]) -> Callable[[], Any]:
    fresh = msgspec.to_builtins(arguments)  # a copy: the trace must show what the model sent, whatever the tool does
    return lambda: function(**fresh)


def _is_stop(error: BaseException) -> bool:
    """Whether the call of the system is to end, or is being discarded; otherwise the tool itself raised it."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is None or task.cancelling() > 0
    return isinstance(error, Interrupted | LimitExceeded | GeneratorExit)


def _failed_result(call: ToolCall, why: str) -> ToolResult:
    return ToolResult(call.name, {"error": str(plain(why, "error", []))}, call.id)
