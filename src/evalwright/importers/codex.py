"""Sessions of Codex: rollout files, and what `codex exec --json` prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from evalwright.importers.blocks import dictionaries, texts_of
from evalwright.importers.recordings import moment
from evalwright.importers.sources import ImportNotes, records, stem
from evalwright.importers.traces import Imported, ImportFindings, Read, TraceImporter
from evalwright.importers.transcript import Tokens, Transcript, arguments_of, object_or_text
from evalwright.model.trace import TraceError

__all__ = ["Codex"]

_WRITTEN_BY_THE_TOOL = ("<environment_context>", "<user_instructions>", "# AGENTS.md instructions")
"""Beginnings of messages that stand in the user's name, but are none of the user's."""
_EXEC = ("thread.", "turn.", "item.")
_KNOWN_EVENTS = {
    "token_count", "error", "turn_aborted", "user_message", "agent_message", "agent_reasoning", "task_started",
    "task_complete", "agent_reasoning_section_break", "agent_reasoning_raw_content", "turn_started", "turn_complete",
    "exec_command_begin", "exec_command_end", "exec_command_output_delta", "patch_apply_begin", "patch_apply_end",
    "mcp_tool_call_begin", "mcp_tool_call_end", "web_search_begin", "web_search_end", "context_compacted",
}  # fmt: skip
"""Events that are read, and those that repeat response items."""


def read(files: Sequence[Path], reading: ImportFindings) -> Iterator[Imported]:
    """The sessions in the files, one a file."""
    for file in files:
        session = _Session(file, reading.notes)
        for number, value in records(file, reading.mistakes, may_be_cut=True):
            session.read(number, value)
        if len(reading.mistakes):
            continue
        talk = session.finished()
        if talk.empty and talk.error is None:
            reading.mistakes.add(file, "has no messages of a session of Codex")
            continue
        origin = {"imported_from": {"file": file.name, "format": "codex"}}
        yield Imported(
            file, session.id or stem(file), {"user_message": talk.user_message or ""}, talk.trace("recorded", origin)
        )


class _Session:
    """One file of a session, line by line; both forms share what they say of it."""

    def __init__(self, file: Path, notes: ImportNotes) -> None:
        self.id: str | None = None
        self._file, self._notes = file, notes
        self._talk = Transcript()
        self._repeated: list[tuple[str, str, Any]] = []
        """What events say that repeat response items: of old files, which have no items, it is the conversation."""
        self._items = 0
        self._end: TraceError | None = None
        self._open: dict[str, dict[str, Any]] = {}

    def read(self, number: int, value: dict[str, Any] | None) -> None:
        if value is None:
            self._talk.breaks_off(self._file, number, self._notes)
            return
        kind = str(value.get("type"))
        if kind.startswith(_EXEC) or (kind == "error" and "payload" not in value):
            self._exec(kind, value)
            return
        at = moment(value.get("timestamp"))
        self._talk.at(at)
        payload = value.get("payload")
        payload = payload if isinstance(payload, dict) else {}
        match kind:
            case "session_meta":
                self._meta(payload)
            case "turn_context":
                self._keep(payload, "model")
            case "response_item":
                self._item(payload, at)
            case "event_msg":
                self._event(payload, at)
            case "compacted":
                pass
            case _:
                self._notes.lose(f"lines of type {kind!r}")

    def finished(self) -> Transcript:
        if not self._items:
            for role, text, at in self._repeated:
                if role == "user":
                    self._talk.user(text, asks=not text.startswith(_WRITTEN_BY_THE_TOOL))
                elif role == "thinking":
                    self._talk.think(text)
                else:
                    self._talk.say(text, at)
        for id, item in self._open.items():
            # begun and never ended: what the agent thought before belongs to no answer that is there
            self._begun(id, item)
        self._talk.error = self._end
        return self._talk

    def _begun(self, id: str, item: dict[str, Any]) -> None:
        called = _exec_call(item)
        if called is not None:
            self._talk.calls_in(self._talk.turn(), called[0], id, called[1])

    def _meta(self, payload: dict[str, Any]) -> None:
        id = payload.get("id")
        if self.id is None and isinstance(id, str) and id:
            self.id = id
        for key in ("cwd", "cli_version", "model"):
            self._keep(payload, key)

    def _keep(self, payload: dict[str, Any], key: str) -> None:
        if payload.get(key) is not None:
            self._talk.extra[key] = payload[key]

    def _item(self, item: dict[str, Any], at: Any) -> None:
        kind = item.get("type")
        talk = self._talk
        call_id = item.get("call_id") or item.get("id")
        call_id = call_id if isinstance(call_id, str) else None
        match kind:
            case "message":
                self._items += 1
                self._message(item, at)
            case "reasoning":
                for part in dictionaries(item.get("summary")):
                    talk.think(str(part.get("text", "")))
            case "function_call":
                talk.call(str(item.get("name", "tool")), call_id, arguments_of(item.get("arguments")), at)
            case "custom_tool_call":
                talk.call(str(item.get("name", "tool")), call_id, arguments_of(item.get("input")), at)
            case "local_shell_call" | "web_search_call":
                talk.call(str(kind).removesuffix("_call"), call_id, arguments_of(item.get("action")), at)
            case "function_call_output" | "custom_tool_call_output" | "local_shell_call_output":
                talk.result(call_id, _output(item.get("output"), self._notes), at=at)
            case "ghost_snapshot" | "compaction":
                pass
            case _:
                self._notes.lose(f"items of type {kind!r}")

    def _message(self, item: dict[str, Any], at: Any) -> None:
        text = texts_of(item.get("content"), self._notes)
        match item.get("role"):
            case "assistant":
                self._end = None
                self._talk.say(text, at)
            case "user":
                self._talk.user(text, asks=not text.startswith(_WRITTEN_BY_THE_TOOL))
            case _:
                self._talk.system(text)

    def _event(self, event: dict[str, Any], at: Any) -> None:
        kind = event.get("type")
        match kind:
            case "token_count":
                info = event.get("info")
                if isinstance(info, dict) and isinstance(info.get("total_token_usage"), dict):
                    self._talk.tokens = _tokens(info["total_token_usage"])  # a running total, not a share of it
            case "turn_aborted":
                self._end = TraceError("aborted", str(event.get("reason") or "the turn was aborted"))
            case "error":
                self._end = TraceError("agent_error", str(event.get("message") or "error"))
            case "task_started" | "turn_started":
                self._end = None
            case "user_message":
                self._repeated.append(("user", str(event.get("message", "")), at))
            case "agent_message":
                self._repeated.append(("assistant", str(event.get("message", "")), at))
                self._end = None
            case "agent_reasoning":
                self._repeated.append(("thinking", str(event.get("text", "")), at))
            case _ if str(kind) not in _KNOWN_EVENTS:
                self._notes.lose(f"events of type {kind!r}")

    def _exec(self, kind: str, value: dict[str, Any]) -> None:
        self._items += 1
        item = value.get("item")
        item = item if isinstance(item, dict) else {}
        match kind:
            case "thread.started":
                thread = value.get("thread_id")
                self.id = thread if isinstance(thread, str) and thread else self.id
            case "item.started" | "item.updated":
                self._open[str(item.get("id"))] = item
            case "item.completed":
                self._open.pop(str(item.get("id")), None)
                self._completed(item)
            case "turn.completed":
                usage = value.get("usage")
                self._talk.tokens += _tokens(usage if isinstance(usage, dict) else {})
            case "turn.failed":
                error = value.get("error")
                said = error.get("message") if isinstance(error, dict) else error
                self._end = TraceError("agent_error", str(said or "the turn failed"))
            case "error":
                self._end = TraceError("agent_error", str(value.get("message") or "error"))
            case "turn.started":
                self._end = None
            case _:
                self._notes.lose(f"lines of type {kind!r}")

    def _completed(self, item: dict[str, Any]) -> None:
        talk = self._talk
        kind = item.get("type") or item.get("item_type")
        if kind in ("agent_message", "assistant_message"):
            self._end = None
            talk.say(str(item.get("text", "")))
        elif kind == "reasoning":
            talk.think(str(item.get("text", "")))
        elif (called := _exec_call(item)) is not None:
            id = item.get("id") if isinstance(item.get("id"), str) else None
            talk.call(called[0], id, called[1])
            if (output := _exec_output(item, self._notes)) is not None:
                failed = item.get("status") == "failed" or item.get("exit_code") not in (0, None)
                talk.result(id, output, failed=failed)
        elif kind == "error":
            self._notes.say(f"{self._file.name}: {item.get('message')}")
        else:
            self._notes.lose(f"items of type {kind!r}")


def _exec_call(item: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """The name and arguments of an item that is a call, None for another."""
    match item.get("type") or item.get("item_type"):
        case "command_execution":
            return "command_execution", {"command": item.get("command")}
        case "file_change":
            return "file_change", {"changes": item.get("changes")}
        case "mcp_tool_call":
            return f"{item.get('server')}.{item.get('tool')}", arguments_of(item.get("arguments"))
        case "web_search":
            return "web_search", {"query": item.get("query")}
        case "todo_list":
            return "todo_list", {"items": item.get("items")}
    return None


def _exec_output(item: dict[str, Any], notes: ImportNotes) -> Any:
    if "aggregated_output" in item:
        return str(item["aggregated_output"] or "")
    error = item.get("error")
    if error:
        return str(error.get("message", error)) if isinstance(error, dict) else str(error)
    result = item.get("result")
    if isinstance(result, dict) and isinstance(result.get("content"), list):
        return texts_of(result["content"], notes)
    return result if isinstance(result, dict | str | None) else str(result)


def _output(value: Any, notes: ImportNotes) -> Any:
    """A result: text, an object, or text of an object that wraps the text."""
    read = object_or_text(value) if isinstance(value, str) else value
    if isinstance(read, dict) and isinstance(read.get("output"), str) and "metadata" in read:
        return read["output"]
    return read if isinstance(read, dict | str) else texts_of(read, notes)


def _tokens(usage: dict[str, Any]) -> Tokens:
    """Usage as OpenAI counts it: cached tokens are in the input, those of reasoning in the output."""

    def number(key: str) -> int | None:
        value = usage.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    return Tokens(
        number("input_tokens"),
        number("output_tokens"),
        number("reasoning_output_tokens"),
        number("cached_input_tokens"),
    )


class Codex(TraceImporter):
    """Rollout files of Codex, and what `codex exec --json` prints."""

    read: ClassVar[Read] = staticmethod(read)
