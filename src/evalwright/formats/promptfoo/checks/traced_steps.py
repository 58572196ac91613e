"""What was traced while a provider ran, as the steps that assertions speak of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from evalwright.errors import EvaluatorError
from evalwright.formats.promptfoo.evaluator import AssertionInput
from evalwright.formats.promptfoo.values import json_parse, template_text
from evalwright.model.trace import Span, Trace

__all__ = ["NO_ARGUMENTS", "TracedStep", "traced_spans", "traced_steps"]

_NAMES = (
    "tool.name", "tool_name", "tool", "function.name", "function_name", "ai.toolCall.name", "gen_ai.tool.name",
    "agent.tool_name", "agent.tool", "agent.toolName", "codex.mcp.tool",
)  # fmt: skip
"""Attributes with the name of the tool that a span called, in the order in which they count."""
_ARGUMENTS = (
    "tool.args", "tool.arguments", "tool.input", "tool_args", "tool_arguments", "tool_input", "function.args",
    "function.arguments", "function.input", "function_args", "function_arguments", "ai.toolCall.args",
    "ai.toolCall.arguments", "ai.toolCall.input", "gen_ai.tool.args", "gen_ai.tool.arguments", "gen_ai.tool.input",
    "gen_ai.tool.call.args", "gen_ai.tool.call.arguments", "agent.tool.args", "agent.tool.arguments",
    "agent.tool.input", "codex.mcp.args", "codex.mcp.arguments", "codex.mcp.input", "args", "arguments", "input",
)  # fmt: skip
_COMMANDS = ("codex.command", "command", "command.name", "command_name")
_SEARCHES = ("codex.search.query", "search.query", "search_query")
_NAMES_TOOL = re.compile(r"(?:tool|function).?name", re.IGNORECASE)
_OF_TOOL = re.compile(r"(?:^|[._])tool(?:$|[._])", re.IGNORECASE)
_NO_NAME = re.compile(r"result|output|definition", re.IGNORECASE)
_HAS_ARGUMENTS = re.compile(r"(?:^|[._])(?:arguments|args|input)(?:$|[._])", re.IGNORECASE)
_NO_ARGUMENT = re.compile(r"result|output|error|status", re.IGNORECASE)
_HAS_COMMAND = re.compile(r"command", re.IGNORECASE)
_NO_COMMAND = re.compile(r"output|result", re.IGNORECASE)
_OF_SEARCH = re.compile(r"(?:^|[._])(?:search|lookup|retriev(?:e|al))(?:$|[._])", re.IGNORECASE)
_SEARCHING = re.compile(r"(?:^|[\s._:/-])(?:search|find|lookup|retriev(?:e|al))(?:$|[\s._:/-])", re.IGNORECASE)
_SHELLS = frozenset({"exec_command", "local_shell", "shell"})
"""Tools whose calls are steps of the type `command`."""
_SEPARATORS = {"cmd": " ", "command": " ", "commands": "; "}
"""Arguments of such a tool that have the command, and what joins its parts."""
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
    spans = sorted(traced_spans(question), key=lambda span: (span.started_at or _UNDATED, span.finished_at or _UNDATED))
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
    known = span.attributes if span.input is None else {**span.attributes, "input.value": span.input}
    tool, args = _tool(span, known), _arguments(known)
    is_shell = tool.lower() in _SHELLS
    command = _command(span, known, args if is_shell else None)
    if command and (not tool or is_shell):
        names = (span.name, command, *([tool] if tool else []), command.split()[0])
        return TracedStep("command", command, names, args if tool else NO_ARGUMENTS)
    if tool:
        return TracedStep("tool", tool, (span.name, tool), args)
    if query := _query(span, known):
        return TracedStep("search", query, (span.name, query))
    item = known.get("codex.item.type")
    if item == "reasoning" or re.match(r"reasoning(?:[_\s]|\Z)", span.name, re.IGNORECASE):
        return TracedStep("reasoning", span.name, (span.name, "reasoning"))
    if item == "agent_message" or span.name in ("agent response", "send input"):
        return TracedStep("message", span.name, (span.name, "message"))
    return TracedStep("span", span.name, (span.name,))


def _tool(span: Span, known: Mapping[str, Any]) -> str:
    """The name of the tool that a span called, by its attributes, its name or its kind; empty if it called none."""
    if name := _first(known, _NAMES):
        return name
    for key, text in _texts(known):
        named = _NAMES_TOOL.search(key) or (_OF_TOOL.search(key) and not _NO_NAME.search(key))
        if named and not isinstance(_structured(text), (dict, list)):
            return text
    place, _, tool = span.name.rpartition("/")
    if place.startswith("mcp ") and tool:
        return tool.strip()
    return span.name.removeprefix("execute_tool ") if span.kind == "tool" else ""


def _arguments(known: Mapping[str, Any]) -> Any:
    others = (key for key in known if _HAS_ARGUMENTS.search(key) and not _NO_ARGUMENT.search(key))
    found = (_structured(known.get(key)) for key in (*_ARGUMENTS, *others))
    return next((value for value in found if value is not NO_ARGUMENTS), NO_ARGUMENTS)


def _command(span: Span, known: Mapping[str, Any], args: Any) -> str:
    """The command that a span ran, also in `args`, those of a shell; empty if it ran none."""
    others = (text for key, text in _texts(known) if _HAS_COMMAND.search(key) and not _NO_COMMAND.search(key))
    command = _first(known, _COMMANDS) or next(others, "")
    if not command and isinstance(args, Mapping) and (key := next((key for key in _SEPARATORS if key in args), "")):
        given = args[key]
        if isinstance(given, list):
            command = _SEPARATORS[key].join(filter(None, (template_text(part).strip() for part in given)))
        elif isinstance(given, str):
            command = given.strip()
    return command or (span.name[5:].strip() if span.name.startswith("exec ") else "")


def _query(span: Span, known: Mapping[str, Any]) -> str:
    """What a span searched for; empty if it did not search."""
    if query := _first(known, _SEARCHES):
        return query
    searches = _SEARCHING.search(span.name) or any(_OF_SEARCH.search(key) for key in known if key != "query")
    if searches and (query := _first(known, ("query",))):
        return query
    return re.sub(r'^"|"$', "", span.name[7:]).strip() if span.name.startswith("search ") else ""


def _first(known: Mapping[str, Any], keys: Sequence[str]) -> str:
    return next((text.strip() for key in keys if isinstance(text := known.get(key), str) and text.strip()), "")


def _texts(known: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Attributes that are text, without blanks around it."""
    return ((key, text) for key, value in known.items() if isinstance(value, str) and (text := value.strip()))


def _structured(value: Any) -> Any:
    """The value of an attribute, of which JSON is read; NO_ARGUMENTS if it is empty."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return NO_ARGUMENTS
    if not isinstance(value, str):
        return value
    try:
        return json_parse(value.strip())
    except (ValueError, RecursionError):
        return value.strip()
