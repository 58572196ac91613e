"""One session of Codex: the lines of a rollout file, or of what `codex exec --json` prints.

A session that was forked from another, or started by it as a subagent, may begin with a copy of that one's lines. The
copy is part of a forked conversation, but not of a subagent's; what its turns used is counted only where they ran.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from evalwright.importers.blocks import texts_of, thoughts_in
from evalwright.importers.codex_outputs import exec_call, exec_output, output_of
from evalwright.importers.codex_threads import CopiedHistory, ThreadMeta
from evalwright.importers.json_lines import LineForm
from evalwright.importers.sources import ImportNotes
from evalwright.importers.token_counts import Tokens, recorded_time, token_count
from evalwright.importers.transcript import Transcript, arguments_of, shallow
from evalwright.model.trace import TraceError

__all__ = ["CODEX_LINES", "CodexLine", "CodexSession"]

_WRITTEN_BY_THE_TOOL = ("<environment_context>", "<user_instructions>", "# AGENTS.md instructions")
"""Prefixes of messages with the role of the user that the user did not write."""
_EXEC = ("thread.", "turn.", "item.")
_STARTED = "thread.started"
_KNOWN_EVENTS = {
    "token_count", "error", "turn_aborted", "user_message", "agent_message", "agent_reasoning", "task_started",
    "task_complete", "agent_reasoning_section_break", "agent_reasoning_raw_content", "turn_started", "turn_complete",
    "exec_command_begin", "exec_command_end", "exec_command_output_delta", "patch_apply_begin", "patch_apply_end",
    "mcp_tool_call_begin", "mcp_tool_call_end", "web_search_begin", "web_search_end", "context_compacted",
    "item_started", "item_completed",
}  # fmt: skip
"""Events that are read, and those that repeat response items."""
_REPEATING_LINES = ("compacted", "token_usage_record")
"""Lines that repeat others: items in short, and the counts of the event that follows."""
_UNDONE = "thread_rolled_back"
_BEGINS = ("task_started", "turn_started")
_COUNTS = ("input_tokens", "output_tokens", "reasoning_output_tokens", "cached_input_tokens")


class _Payload(ThreadMeta, gc=False):
    """The fields of a rollout line that are read; each may have any type."""

    type: Any = None
    turn_id: Any = None
    cwd: Any = None
    cli_version: Any = None
    model: Any = None
    role: Any = None
    content: Any = None
    summary: Any = None
    call_id: Any = None
    name: Any = "tool"
    arguments: Any = None
    input: Any = None
    action: Any = None
    tools: Any = None
    output: Any = None
    info: Any = None
    reason: Any = None
    num_turns: Any = None
    message: Any = ""
    text: Any = ""


class CodexLine(msgspec.Struct, gc=False):
    """The fields that are read from a line of either form."""

    type: Any = None
    timestamp: datetime | None = None
    """In lines whose parts have types that Codex does not write, it may be anything."""
    payload: _Payload | None = None
    thread_id: Any = None
    item: Any = None
    usage: Any = None
    error: Any = None
    message: Any = None


_NOTHING = _Payload()


def _line_of_any_object(value: dict[str, Any]) -> CodexLine:
    line = CodexLine(**{name: value[name] for name in CodexLine.__struct_fields__ if name in value})
    payload = value.get("payload")
    line.payload = msgspec.convert(payload, _Payload) if isinstance(payload, dict) else None
    return line


CODEX_LINES = LineForm(msgspec.json.Decoder(CodexLine).decode, _line_of_any_object)


class CodexSession:
    """One session, line by line, with the parts that both forms share."""

    def __init__(
        self, file: Path, notes: ImportNotes, agents: Callable[[], Iterable[tuple[str, Transcript]]] = tuple
    ) -> None:
        """`agents` reads its subagents, when it is finished."""
        self.id: str | None = None
        self._agents = agents
        self._is_agent = False
        self._copied = CopiedHistory(_NOTHING)
        self._file, self._notes = file, notes
        self._talk = Transcript()
        self._repeated: list[tuple[str, str, Any]] = []
        """What events say that repeat response items: of old files, which have no items, it is the conversation."""
        self._items = 0
        self._end: TraceError | None = None
        self._open: dict[str, dict[str, Any]] = {}
        self._total: dict[str, Any] | None = None
        """The last running total of tokens."""
        self._before: Tokens | None = None
        """In the stream of a program that continues a thread: what was counted before."""

    def ends_before(self, line: CodexLine) -> bool:
        return line.type == _STARTED and self.id is not None and line.thread_id != self.id

    def read(self, number: int, line: CodexLine | None) -> None:
        if line is None:
            self._talk.breaks_off(self._file, number, self._notes)
            return
        payload, kind, at = line.payload, line.type, line.timestamp
        if at is not None:
            at = at if type(at) is datetime and at.tzinfo is UTC else recorded_time(at, self._notes)
        if self._copied.here and payload is not None:
            if kind == "turn_context" or payload.type in _BEGINS:
                self._copied.turn_begins(payload.turn_id, at)
            if self._copied.here:
                if self._is_agent or (kind != "response_item" and payload.type != _UNDONE):
                    return
                at = None  # when it ran, it ran in another session
        if at is not None:
            self._talk.at(at)
        if kind == "response_item":
            self._item(payload or _NOTHING, at)
        elif kind == "event_msg":
            self._add_event(payload or _NOTHING, at)
        elif kind == "session_meta":
            self._meta(payload or _NOTHING)
        elif kind == "turn_context":
            self._keep("model", (payload or _NOTHING).model)
        elif str(kind).startswith(_EXEC) or (kind == "error" and payload is None):
            self._exec(str(kind), line)
        elif kind not in _REPEATING_LINES:
            self._notes.lose(f"lines of type {kind!r}")

    def finished(self) -> Transcript:
        if not self._items:
            for role, text, at in self._repeated:
                if role == "user":
                    self._talk.user(text, asks=not text.startswith(_WRITTEN_BY_THE_TOOL))
                elif role == "thinking":
                    self._talk.think(text)
                else:
                    self._talk.add_text(text, at)
        self._leave_open()
        if self._total is not None:
            self._talk.tokens = _tokens(self._total, self._notes)
        self._talk.error = self._end
        for name, agent in self._agents():
            self._talk.subagent(name, agent)
        return self._talk

    def _leave_open(self) -> None:
        """Add the calls that were begun and never ended; the reasoning before them belongs to no recorded answer."""
        for id, item in self._open.items():
            called = exec_call(item)
            if called is not None:
                self._talk.calls_in(self._talk.turn(), called[0], id, called[1])
        self._open.clear()

    def _meta(self, payload: _Payload) -> None:
        if self.id is None and payload.thread is not None:
            self.id = payload.thread
            self._copied, self._is_agent = CopiedHistory(payload), payload.parent is not None
        for key, value in (("cwd", payload.cwd), ("cli_version", payload.cli_version), ("model", payload.model)):
            self._keep(key, value)

    def _keep(self, key: str, value: Any) -> None:
        if value is not None:
            self._talk.extra[key] = shallow(value)

    def _item(self, item: _Payload, at: datetime | None) -> None:
        kind, talk = item.type, self._talk
        call_id = item.call_id or item.id
        if type(call_id) is not str:
            call_id = None
        match kind:
            case "function_call":
                talk.call(str(item.name), call_id, arguments_of(item.arguments), at)
            case "function_call_output" | "custom_tool_call_output" | "local_shell_call_output":
                output, failed = output_of(item.output, self._notes)
                talk.result(call_id, output, None, at, failed)
            case "message":
                self._items += 1
                self._message(item, at)
            case "reasoning":
                for text in thoughts_in(item.summary, item.content):
                    talk.think(text)
            case "custom_tool_call":
                talk.call(str(item.name), call_id, arguments_of(item.input), at)
            case "tool_search_call":
                talk.call("tool_search", call_id, arguments_of(item.arguments), at)
            case "tool_search_output":
                talk.result(call_id, {"tools": item.tools}, None, at)
            case "local_shell_call" | "web_search_call":
                talk.call(str(kind).removesuffix("_call"), call_id, arguments_of(item.action), at)
            case "ghost_snapshot" | "compaction":
                pass
            case _:
                self._notes.lose(f"items of type {kind!r}")

    def _message(self, item: _Payload, at: datetime | None) -> None:
        text = texts_of(item.content, self._notes)
        match item.role:
            case "assistant":
                self._end = None
                self._talk.add_text(text, at)
            case "user":
                self._talk.user(text, asks=not text.startswith(_WRITTEN_BY_THE_TOOL))
            case _:
                self._talk.system(text)

    def _add_event(self, event: _Payload, at: datetime | None) -> None:
        kind = event.type
        match kind:
            case "token_count":
                info = event.info
                if isinstance(info, dict) and isinstance(total := info.get("total_token_usage"), dict):
                    self._total = self._copied.own(total, info.get("last_token_usage"))
            case "turn_aborted":
                self._end = TraceError("aborted", str(event.reason or "the turn was aborted"))
            case "error":
                self._end = TraceError("agent_error", str(event.message or "error"))
            case "task_started" | "turn_started":
                self._end = None
            case _ if kind == _UNDONE:
                undone = self._talk.undo(event.num_turns if type(event.num_turns) is int else 0)
                self._notes.lose("turns that were rolled back", undone)
                self._end = None
            case "user_message":
                self._repeated.append(("user", str(event.message), at))
            case "agent_message":
                self._repeated.append(("assistant", str(event.message), at))
                self._end = None
            case "agent_reasoning":
                self._repeated.append(("thinking", str(event.text), at))
            case _ if str(kind) not in _KNOWN_EVENTS:
                self._notes.lose(f"events of type {kind!r}")

    def _exec(self, kind: str, value: CodexLine) -> None:
        self._items += 1
        item = value.item
        item = item if isinstance(item, dict) else {}
        match kind:
            case _ if kind == _STARTED:
                self._leave_open()  # a program that continues the session numbers its items from the beginning
                self._before = None if self.id is None else self._talk.tokens
                thread = value.thread_id
                self.id = thread if isinstance(thread, str) and thread else self.id
            case "item.started" | "item.updated":
                self._open[str(item.get("id"))] = item
            case "item.completed":
                self._open.pop(str(item.get("id")), None)
                self._add_completed_item(item)
            case "turn.completed":
                usage = value.usage
                self._count(_tokens(usage if isinstance(usage, dict) else {}, self._notes))
            case "turn.failed":
                error = value.error
                message = error.get("message") if isinstance(error, dict) else error
                self._end = TraceError("agent_error", str(message or "the turn failed"))
            case "error":
                self._end = TraceError("agent_error", str(value.message or "error"))
            case "turn.started":
                self._end = None
            case _:
                self._notes.lose(f"lines of type {kind!r}")

    def _count(self, used: Tokens) -> None:
        """Add what a turn used. A program that continues a thread reports the total of the thread."""
        if self._before is not None and _includes(used, self._before):
            self._talk.tokens = Tokens()
        self._before = None
        self._talk.tokens += used

    def _add_completed_item(self, item: dict[str, Any]) -> None:
        talk = self._talk
        kind = item.get("type") or item.get("item_type")
        if kind in ("agent_message", "assistant_message"):
            self._end = None
            talk.add_text(str(item.get("text", "")))
        elif kind == "reasoning":
            talk.think(str(item.get("text", "")))
        elif (called := exec_call(item)) is not None:
            id = item.get("id") if isinstance(item.get("id"), str) else None
            talk.call(called[0], id, called[1])
            if (output := exec_output(item, self._notes)) is not None:
                broke = item.get("status") == "failed" or bool(item.get("error"))
                talk.result(id, output, failed=broke or item.get("exit_code") not in (0, None))
        elif kind == "error":
            self._notes.add_text(f"{self._file.name}: {item.get('message')}")
        else:
            self._notes.lose(f"items of type {kind!r}")


def _includes(total: Tokens, part: Tokens) -> bool:
    """Whether one count can be the total of another and something more."""
    pairs = zip(msgspec.structs.astuple(total), msgspec.structs.astuple(part), strict=True)
    return all(before is None or (now is not None and now >= before) for now, before in pairs)


def _tokens(usage: dict[str, Any], notes: ImportNotes) -> Tokens:
    """Usage as OpenAI counts it: cached tokens are included in the input, reasoning tokens in the output."""
    return Tokens(*(token_count(usage.get(key), notes) for key in _COUNTS))
