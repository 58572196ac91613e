"""Recorded conversations in the form of OpenAI's chat completions, or of LangChain, as cases with their traces.

`import_files` reads any JSON or JSON Lines file whose records contain such a conversation somewhere; a mapping says
where (see `mapping`). The roles `developer` and `function` become `system` and `tool`; parts of a message that are not
text are kept as their type in brackets, such as `[image_url]`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evalwright.importers.blocks import lost_with
from evalwright.importers.call_payloads import chat_message, langchain_fields
from evalwright.importers.imported_cases import import_recordings
from evalwright.importers.record_values import described
from evalwright.importers.recording import RecordedConversation, ReportMistake
from evalwright.importers.span_messages import attachments, has_more_than_texts, json_content, plain_messages
from evalwright.importers.token_counts import Tokens, token_count
from evalwright.importers.transcript import arguments_of, object_or_text
from evalwright.importers.ui_messages import messages_in_parts
from evalwright.model.import_result import ImportResult
from evalwright.model.trace import ToolCall, ToolResult, TraceMessage
from evalwright.model.unread_calls import unread_calls

__all__ = ["OpenAIMessages", "read_conversation"]

_ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_READ_KEYS = (
    "role", "content", "name", "tool_calls", "tool_call_id", "function_call", "refusal", "audio", "reasoning_content",
    "reasoning", "reasoning_details", "id", "type", "is_error",
)  # fmt: skip
"""Keys of a message that are read, or that repeat others or only name it."""
_SPEAKERS = {"human": "user", "gpt": "assistant", "observation": "tool"}
"""Roles in the form of ShareGPT's that have another name there."""


class OpenAIMessages:
    """Conversations in the form of OpenAI's chat messages, as JSON or JSON Lines."""

    @staticmethod
    def import_files(sources: Sequence[Path], out: Path, mapping: Mapping[str, str] | None = None) -> ImportResult:
        """Write `cases.jsonl` and an `eval.yaml` that replays and evaluates the recordings into folder `out`.

        Records of one case in several files are its trials. Raises InputError with every mistake of the files, or if
        `out` has such files already; then nothing is written.
        """
        return import_recordings(sources, out, mapping, read_conversation)


def read_conversation(messages: Any, key: str, report: ReportMistake) -> RecordedConversation:
    """The messages of one record. `report` gets the path, below `key`, of each part that cannot be used."""
    reader = _Reader(report)
    if not isinstance(messages, list):
        report(key, f"expected a list of messages, found {described(messages)}")
        return reader.conversation
    if not messages:
        report(key, "expected at least one message")
    for position, message in enumerate(messages):
        reader.read(message, f"{key}[{position}]")
    return reader.conversation


class _Reader:
    """One pass over a conversation; remembers which call id belongs to which tool."""

    def __init__(self, report: ReportMistake) -> None:
        self.conversation = RecordedConversation()
        self._report = report
        self._tools: dict[str, str] = {}

    def read(self, message: Any, at: str) -> None:
        if not isinstance(message, dict):
            self._report(at, f"expected a message, found {described(message)}")
            return
        if "role" not in message and {"from", "value"} <= message.keys():
            if (written := self._of_sharegpt(message, at)) is None:
                return
            message = written
        if "role" not in message and chat_message(message) is not None:  # as LangChain writes it
            for plain in plain_messages([message], "user"):
                self.read(plain, at)
            self._add_langchain(langchain_fields(message))
            return
        if isinstance(message.get("parts"), list):
            for plain in messages_in_parts(message, self.conversation.lost):
                self.read(plain, at)
            return
        filled = [key for key, value in message.items() if value not in (None, [], {}, "")]
        self.conversation.lost.lose_keys(filled, _READ_KEYS, "messages")
        if message.get("role") in _ROLES and has_more_than_texts(content := message.get("content")):
            for kind in attachments(content):
                self.conversation.lost.lose(lost_with(kind))
            for plain in plain_messages([message], "user"):
                self._read_by_role({**message, **plain}, at)
        else:
            self._read_by_role(message, at)

    def _of_sharegpt(self, message: dict[str, Any], at: str) -> dict[str, Any] | None:
        """A message in the form of ShareGPT's, where calls are a text, and results follow in their order."""
        more = {key: value for key, value in message.items() if key not in ("from", "value")}
        speaker, value = message["from"], message["value"]
        role = _SPEAKERS.get(speaker, speaker) if isinstance(speaker, str) else None
        if role == "function_call":
            value = json_content(value)
            called = value if isinstance(value, list) else [value]
            if called and all(isinstance(call, dict) and isinstance(call.get("name"), str) for call in called):
                return {**more, "role": "assistant", "tool_calls": [{"function": call} for call in called]}
            self._report(f"{at}.value", f"expected the JSON of calls {{name, arguments}}, found {described(value)}")
            return None
        if role not in _ROLES:
            expected = "expected system, human, gpt, function_call or observation"
            self._report(f"{at}.from", f"{expected}, found {described(speaker)}")
            return None
        calls, results = self.conversation.tool_calls, len(self.conversation.tool_results)
        named = {"name": calls[min(results, len(calls) - 1)].name} if role == "tool" and calls else {}
        return {**named, **more, "role": role, "content": value}

    def _read_by_role(self, message: dict[str, Any], at: str) -> None:
        match message.get("role"):
            case "system" | "developer":
                self._add_text("system", self._text(message, at))
            case "user":
                self._user(message, at)
            case "assistant":
                self._assistant(message, at)
            case "tool" | "function":
                self._tool(message, at)
            case role:
                expected = "expected system, developer, user, assistant, tool or function"
                self._report(f"{at}.role", f"{expected}, found {described(role)}")

    def _add_langchain(self, fields: Mapping[str, Any]) -> None:
        """Count what a message of LangChain says beside its text: the tokens of its call, or that its tool failed."""
        usage = fields.get("usage_metadata")
        if isinstance(usage, dict):
            read, written = (usage.get(f"{side}_token_details") for side in ("input", "output"))
            self.conversation.tokens += Tokens(
                input=self._count(usage, "input_tokens"),
                output=self._count(usage, "output_tokens"),
                thinking=self._count(written, "reasoning"),
                cache_read=self._count(read, "cache_read"),
                cache_write=self._count(read, "cache_creation"),
            )
        self.conversation.failed_results += fields.get("status") == "error"

    def _count(self, counts: Any, key: str) -> int | None:
        return token_count(counts.get(key), self.conversation.lost) if isinstance(counts, dict) else None

    def _add_text(self, role: str, text: str | None, **more: Any) -> None:
        self.conversation.messages.append(TraceMessage(role, text, **more))

    def _user(self, message: dict[str, Any], at: str) -> None:
        text = self._text(message, at)
        if self.conversation.user_message is None:
            self.conversation.user_message = text
        self._add_text("user", text)

    def _assistant(self, message: dict[str, Any], at: str) -> None:
        text = self._text(message, at) or None
        if text is None and isinstance(message.get("refusal"), str):
            text = message["refusal"]
        if text is None and isinstance(audio := message.get("audio"), dict):
            text = audio.get("transcript") if isinstance(audio.get("transcript"), str) else None
        thoughts = (message.get(key) for key in ("reasoning_content", "reasoning"))
        thinking = next((thought for thought in thoughts if isinstance(thought, str)), None)
        if text and text.strip():
            self.conversation.final_answer, self.conversation.thinking = text, thinking
        calls = self._calls(message, at)
        read = [{"id": call.id, "name": call.name} for call in calls]
        if next(unread_calls([{"content": message.get("content"), "tool_calls": read}]), None) is not None:
            self._report(at, "has a tool call in another form than tool_calls")
        self.conversation.tool_calls += calls
        self._add_text("assistant", text, thinking=thinking, tool_call=calls[0] if calls else None)
        for call in calls[1:]:
            self._add_text("assistant", None, tool_call=call)

    def _tool(self, message: dict[str, Any], at: str) -> None:
        call_id = message.get("tool_call_id")
        call_id = call_id if isinstance(call_id, str) else None
        name = message.get("name") or self._tools.get(call_id or "")
        if not isinstance(name, str):
            self._report(at, "names no tool: expected a name, or the tool_call_id of an earlier call")
            return
        self.conversation.failed_results += message.get("is_error") is True
        content = message.get("content")
        result = content if isinstance(content, dict) else object_or_text(self._text(message, at) or "")
        self.conversation.tool_results.append(ToolResult(name, result, call_id))
        self.conversation.messages.append(TraceMessage("tool", result, name=name))

    def _calls(self, message: dict[str, Any], at: str) -> list[ToolCall]:
        """The calls of an assistant message, the legacy `function_call` included."""
        calls = message.get("tool_calls") or []
        if not isinstance(calls, list):
            self._report(f"{at}.tool_calls", f"expected a list of calls, found {described(calls)}")
            return []
        places = [(call, f"{at}.tool_calls[{i}]") for i, call in enumerate(calls)]
        if message.get("function_call"):
            places.append(({"function": message["function_call"]}, f"{at}.function_call"))
        read = [self._call(call, place) for call, place in places]
        return [call for call in read if call is not None]

    def _call(self, call: Any, at: str) -> ToolCall | None:
        function = call.get("function", call.get("custom")) if isinstance(call, dict) else None
        name = function.get("name") if isinstance(function, dict) else None
        if not isinstance(function, dict) or not isinstance(name, str) or not name:
            self._report(at, "expected a call with a function that has a name")
            return None
        call_id = call.get("id")
        call_id = call_id if isinstance(call_id, str) else None
        if call_id is not None:
            self._tools[call_id] = name
        arguments = function.get("arguments", function.get("input"))
        if not isinstance(arguments, str | dict | None):
            self._report(at, f"expected arguments as JSON text, found {described(arguments)}")
        return ToolCall(name, call_id, arguments_of(arguments))

    def _text(self, message: dict[str, Any], at: str) -> str | None:
        """The content as text; parts are joined by line breaks."""
        content = message.get("content")
        if content is None or isinstance(content, str):
            return content
        if not isinstance(content, list):
            self._report(f"{at}.content", f"expected text, parts or null, found {described(content)}")
            return None
        return "\n".join(self._part(part, f"{at}.content[{i}]") for i, part in enumerate(content))

    def _part(self, part: Any, at: str) -> str:
        if isinstance(part, str):
            return part
        if isinstance(part, dict):
            for key in ("text", "refusal"):
                if isinstance(part.get(key), str):
                    return str(part[key])
            if isinstance(kind := part.get("type"), str) and kind != "text":
                self.conversation.lost.lose(lost_with(kind))
                return f"[{kind}]"
        self._report(at, "expected a part with its type and text")
        return ""
