"""What was traced while a provider ran, as the steps that assertions speak of."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from evalwright.errors import EvaluatorError
from evalwright.formats.promptfoo.evaluator import AssertionInput
from evalwright.model.trace import Span, Trace

__all__ = ["NO_ARGUMENTS", "TracedStep", "traced_spans", "traced_steps"]

_NAMES = (
    "gen_ai.tool.name", "tool.name", "tool_name", "tool", "function.name", "function_name", "ai.toolCall.name",
    "agent.tool_name", "agent.tool", "codex.mcp.tool",
)  # fmt: skip
"""Attributes with the name of the tool that a span called."""
_ARGUMENTS = (
    "gen_ai.tool.call.arguments", "gen_ai.tool.call.args", "gen_ai.tool.arguments", "tool.arguments", "tool.args",
    "tool.input", "tool_arguments", "tool_args", "tool_input", "function.arguments", "function.args",
    "ai.toolCall.arguments", "ai.toolCall.args", "arguments", "args", "input",
)  # fmt: skip
_COMMANDS = ("codex.command", "command", "command.name", "command_name")
_SEARCHES = ("codex.search.query", "search.query", "search_query")
_SHELLS = frozenset({"exec_command", "local_shell", "shell"})
"""Tools whose calls are steps of the type `command`."""
_UNDATED = datetime.min.replace(tzinfo=UTC)
NO_ARGUMENTS: Any = object()
"""Arguments of a call that has none."""


class TracedStep(NamedTuple):
    """One step: its type (tool, command, search, reasoning, message or span), its name, all names by which it can be
    matched, and the arguments of a call."""

    type: str
    name: str
    aliases: tuple[str, ...]
    args: Any = NO_ARGUMENTS

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


def traced_steps(question: AssertionInput) -> list[TracedStep]:
    """The steps of the cell in the order in which they began: its spans, then the calls that models requested and that
    have no span of their own. Raises EvaluatorError if nothing was traced."""
    spans = sorted(traced_spans(question), key=lambda span: span.started_at or _UNDATED)
    steps = [_step(span) for span in spans]
    if any(step.type in ("tool", "command") for step in steps):
        return steps
    calls = question.trace.tool_calls
    return steps + [TracedStep("tool", call.name, (call.name,), call.arguments) for call in calls]


def traced_spans(question: AssertionInput) -> Sequence[Span]:
    """The spans of the cell, none if only calls were traced. Raises EvaluatorError if nothing was traced."""
    trace: Trace = question.trace
    if not trace.spans and not trace.tool_calls:
        raise EvaluatorError(
            f"{question.kind}: nothing was traced: the provider has to make spans in Python, with OpenTelemetry for"
            " example",
            "not_measured",
        )
    return trace.spans


def _step(span: Span) -> TracedStep:
    known = span.attributes
    tool = _first(known, _NAMES) or (span.name.removeprefix("execute_tool ") if span.kind == "tool" else "")
    args = _arguments(span)
    command = _first(known, _COMMANDS) or (_command_in(args) if tool.lower() in _SHELLS else "")
    if command and (not tool or tool.lower() in _SHELLS):
        program = command.split()[0]
        names = (span.name, command, program, *([tool] if tool else []))
        return TracedStep("command", command, names, args if tool else NO_ARGUMENTS)
    if tool:
        return TracedStep("tool", tool, (span.name, tool), args)
    if query := _first(known, _SEARCHES):
        return TracedStep("search", query, (span.name, query))
    item = known.get("codex.item.type")
    if item == "reasoning" or re.match(r"reasoning([_\s]|$)", span.name, re.IGNORECASE):
        return TracedStep("reasoning", span.name, (span.name, "reasoning"))
    if item == "agent_message" or span.name in ("agent response", "send input"):
        return TracedStep("message", span.name, (span.name, "message"))
    return TracedStep("span", span.name, (span.name,))


def _first(known: Mapping[str, Any], keys: Sequence[str]) -> str:
    return next((text.strip() for key in keys if isinstance(text := known.get(key), str) and text.strip()), "")


def _arguments(span: Span) -> Any:
    arguments = next(
        (span.attributes[key] for key in _ARGUMENTS if span.attributes.get(key) not in (None, "")), span.input
    )
    if arguments is None:
        return NO_ARGUMENTS
    if isinstance(arguments, str):
        try:
            return json.loads(arguments)
        except (ValueError, RecursionError):
            return arguments
    return arguments


def _command_in(args: Any) -> str:
    command = (
        next((args[key] for key in ("cmd", "command", "commands") if key in args), "")
        if isinstance(args, Mapping)
        else ""
    )
    return " ".join(str(word).strip() for word in (command if isinstance(command, list) else [command])).strip()
