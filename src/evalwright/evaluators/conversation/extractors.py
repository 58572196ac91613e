"""Extractors: each picks, from a whole conversation, the text that is evaluated (letta-evals 0.9, `extractor`).

An extractor is a `msgspec.Struct` class whose fields are its configuration. `extract` returns one text, "" if there
is none.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

import msgspec

from evalwright.errors import EvaluatorError, Problem
from evalwright.evaluators.conversation.turns import Turn, assistant_texts, text_or_json
from evalwright.sandbox.patterns import compiled_pattern, find_all, search

__all__ = [
    "AfterMarker",
    "AllAssistant",
    "FirstAssistant",
    "LastAssistant",
    "LastTurn",
    "MemoryBlock",
    "Pattern",
    "ToolArguments",
    "ToolOutputText",
]

Blocks = dict[str, str] | None
_Name = Annotated[str, msgspec.Meta(min_length=1)]


class LastAssistant(msgspec.Struct, frozen=True):
    """The last assistant message of the conversation, even if later turns have none."""

    def extract(self, turns: list[Turn], blocks: Blocks) -> str:
        texts = assistant_texts(turns)
        return texts[-1] if texts else ""


class FirstAssistant(msgspec.Struct, frozen=True):
    """The first assistant message."""

    def extract(self, turns: list[Turn], blocks: Blocks) -> str:
        texts = assistant_texts(turns)
        return texts[0] if texts else ""


class AllAssistant(msgspec.Struct, frozen=True):
    """All assistant messages, joined."""

    separator: str = "\n"

    def extract(self, turns: list[Turn], blocks: Blocks) -> str:
        return self.separator.join(assistant_texts(turns))


class LastTurn(msgspec.Struct, frozen=True):
    """The assistant messages of the last turn, joined."""

    separator: str = "\n"

    def extract(self, turns: list[Turn], blocks: Blocks) -> str:
        return self.separator.join(assistant_texts(turns[-1:]))


class Pattern(msgspec.Struct, frozen=True):
    """What a regular expression finds in the newest assistant message that it matches.

    With `search_all` everything that it finds there, joined with spaces; if it has several groups, the one at `group`,
    counted from 0. Without it, `group` may be the name of a group.
    """

    pattern: _Name
    group: Annotated[int, msgspec.Meta(ge=0)] | str = 0
    search_all: bool = False

    @staticmethod
    def config_problems(values: dict[str, Any]) -> list[Problem]:
        pattern = values.get("pattern")
        if not isinstance(pattern, str):
            return []
        try:
            compiled = compiled_pattern(pattern)
        except ValueError as error:
            return [Problem("", f"'pattern' is not a regular expression: {error}", key="pattern")]
        group, groups = values.get("group", 0), compiled.groups
        if isinstance(group, str) and (values.get("search_all") or group not in compiled.groupindex):
            named = ", ".join(compiled.groupindex) or "none"
            expected = "a number with 'search_all'" if values.get("search_all") else f"a number or a name ({named})"
            return [Problem("", f"'group' is {group!r}, expected {expected}", key="group")]
        last = groups - 1 if values.get("search_all") and groups > 1 else groups
        if isinstance(group, int) and group > last:
            return [Problem("", f"'group' is {group}, but the pattern's last one is {last}", key="group")]
        return []

    def extract(self, turns: list[Turn], blocks: Blocks) -> str:
        for text in reversed(assistant_texts(turns)):
            if self.search_all:
                if hits := find_all(re.compile(self.pattern), text):
                    return " ".join(item if isinstance(item, str) else item[int(self.group)] for item in hits)
            elif match := search(re.compile(self.pattern), text):
                return match.group(self.group) or ""
        return ""


class ToolArguments(msgspec.Struct, frozen=True):
    """The arguments of the first call of a tool as JSON text; `{}` if it was not called."""

    tool_name: _Name

    def extract(self, turns: list[Turn], blocks: Blocks) -> str:
        call = _first_call(turns, self.tool_name)
        return "{}" if call is None else text_or_json(call.get("arguments"))


class ToolOutputText(msgspec.Struct, frozen=True):
    """What the first call of a tool returned, whatever its status."""

    tool_name: _Name

    def extract(self, turns: list[Turn], blocks: Blocks) -> str:
        call = _first_call(turns, self.tool_name)
        if call is None:
            return ""
        for message in (message for turn in turns for message in turn):
            if message.get("message_type") == "tool_return_message" and _answers(message, call):
                return text_or_json(message.get("tool_return"))
        return ""


class AfterMarker(msgspec.Struct, frozen=True):
    """The text after the first occurrence of a marker in the newest assistant message that has it."""

    marker: _Name
    include_marker: bool = False

    def extract(self, turns: list[Turn], blocks: Blocks) -> str:
        for text in reversed(assistant_texts(turns)):
            _, marker, after = text.partition(self.marker)
            if marker:
                return (self.marker + after if self.include_marker else after).strip()
        return ""


class MemoryBlock(msgspec.Struct, frozen=True):
    """A block of the system's memory after the last turn; "" if there is no block with this label."""

    block_label: _Name

    def extract(self, turns: list[Turn], blocks: Blocks) -> str:
        if blocks is None:
            raise EvaluatorError("the trace does not say what is in the system's memory", "extraction_error")
        return blocks.get(self.block_label, "")


def _answers(message: dict[str, Any], call: dict[str, Any]) -> bool:
    """Whether what a tool returned belongs to a call: by the call's id, or by the tool's name if neither has an id."""
    ids = message.get("tool_call_id") or None, call.get("tool_call_id") or None
    return ids[0] == ids[1] and (ids[1] is not None or message.get("name") == call.get("name"))


def _first_call(turns: list[Turn], name: str) -> dict[str, Any] | None:
    for message in (message for turn in turns for message in turn):
        if message.get("message_type") == "tool_call_message":
            calls = message.get("tool_calls") or [message.get("tool_call")]
            for call in calls if isinstance(calls, list) else [calls]:
                if isinstance(call, dict) and call.get("name") == name:
                    return call
    return None
