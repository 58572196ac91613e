"""A conversation with an agent, assembled from the records of any tool, as a trace.

A turn of the assistant is one message: its texts joined by line ends, its thinking beside them, and its first tool
call; each further call is a message of its own. A turn may continue after results of its first calls, and stays where
it began. Turns and calls with a time become spans, calls below their turn; a subagent becomes one span that contains
its own messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from evalwright.importers.agent_turns import AgentTurn, joined_text
from evalwright.importers.record_values import too_deep
from evalwright.importers.recording import UNKNOWN_TIME
from evalwright.importers.sources import ImportNotes
from evalwright.importers.token_counts import Tokens
from evalwright.model.trace import Metrics, Output, Span, ToolCall, ToolResult, Trace, TraceError, TraceMessage

__all__ = ["Transcript", "arguments_of", "object_or_text", "shallow"]


class _TraceLayout(msgspec.Struct, gc=False):
    """A conversation laid out as the parts of a trace."""

    messages: list[TraceMessage]
    calls: list[ToolCall]
    spans: list[Span]


class Transcript:
    """One conversation while it is being read."""

    def __init__(self) -> None:
        self.tokens: Tokens = Tokens()
        self.user_message: str | None = None
        """The first text of the user that is a request."""
        self.answer: str | None = None
        """The result that the record names, if it does; else the assistant's last text that is not blank."""
        self.latency_ms: int | None = None
        """As recorded, if it is."""
        self.error: TraceError | None = None
        self.extra: dict[str, Any] = {}
        self.custom: dict[str, Any] = {}
        self.structured: dict[str, Any] | None = None
        self.models: set[str] = set()
        """Models that wrote turns, including those of subagents, as far as the record names them."""
        self.results: list[ToolResult] = []
        self.spans: list[Span] = []
        self._entries: list[AgentTurn | TraceMessage] = []
        self._names: dict[str, str] = {}
        self._ended: dict[str, tuple[datetime | None, bool, Any]] = {}
        self._pending: list[str] = []
        self._failed = 0
        self._questions: list[tuple[int, int, int]] = []
        """How many entries, results and failed results were before each request of the user."""
        self._first: datetime | None = None
        self._last: datetime | None = None

    def at(self, time: datetime | None) -> None:
        """Something was recorded at this time."""
        if time is None:
            return
        if self._first is None or self._last is None:
            self._first = self._last = time
        elif time > self._last:
            self._last = time
        elif time < self._first:
            self._first = time

    def breaks_off(self, file: Path, line: int, notes: ImportNotes) -> None:
        """The file ends in the middle of a line, because the program that wrote it was killed."""
        message = "the last line breaks off and was left out"
        self.extra.setdefault("warnings", []).append(message)
        notes.add_text(f"{file.name}:{line}: {message}")

    @property
    def empty(self) -> bool:
        return not any(isinstance(entry, TraceMessage) or not entry.empty for entry in self._entries)

    @property
    def silent(self) -> bool:
        """Whether nothing was recorded that could be a case: no message, no answer, no error."""
        return self.empty and self.answer is None and self.error is None

    def system(self, text: str) -> None:
        self._entries.append(TraceMessage("system", text))

    def user(self, text: str, *, asks: bool = True) -> None:
        """Add a message of the user; with `asks` false, one that a tool wrote in the user's name."""
        if asks:
            self._questions.append((len(self._entries), len(self.results), self._failed))
            self.user_message = text if self.user_message is None else self.user_message
        self._entries.append(TraceMessage("user", text))

    def undo(self, requests: int) -> int:
        """Leave out the last requests of the user with all that followed; returns how many there were."""
        undone = self._questions[-requests:] if requests > 0 else []
        if undone:
            entries, results, self._failed = undone[0]
            del self._entries[entries:], self.results[results:], self._questions[-len(undone) :]
        if not self._questions:
            self.user_message = None
        return len(undone)

    def turn(self, id: str | None = None, at: datetime | None = None, model: str | None = None) -> AgentTurn:
        """Begin a new turn of the assistant."""
        if model:
            self.models.add(model)
        turn = AgentTurn(id, model, at, at)
        self._entries.append(turn)
        return turn

    def open_turn(self, at: datetime | None = None, *, for_text: bool) -> AgentTurn:
        """The turn to which a further part belongs, if the record has parts one by one.

        Thinking, then text, then calls make one turn: a model requests parallel calls together, before any of their
        results. What follows a result or a message of the user begins a new turn, as do text and thinking that follow
        a call.
        """
        last = self._entries[-1] if self._entries else None
        follows_call = isinstance(last, AgentTurn) and last.calls and (for_text or self._pending)
        follows_text = isinstance(last, AgentTurn) and last.texts and for_text
        if isinstance(last, AgentTurn) and not follows_call and not follows_text:
            last.finished_at = at or last.finished_at
            return last
        turn = AgentTurn(None, None, at, at)
        self._entries.append(turn)
        return turn

    def think(self, text: str) -> None:
        """Add thinking that belongs to the next turn."""
        self._pending.append(text)

    def add_text(self, text: str, at: datetime | None = None) -> None:
        """Add a text of the assistant as an item of its own."""
        turn = self.open_turn(at, for_text=True)
        self._thought_in(turn)
        turn.add_text(text)

    def call(self, name: str, id: str | None, arguments: dict[str, Any], at: datetime | None = None) -> None:
        """Add a tool call as an item of its own."""
        turn = self.open_turn(at, for_text=False)
        if self._pending:
            self._thought_in(turn)
        self.calls_in(turn, name, id, arguments, at)

    def calls_in(
        self, turn: AgentTurn, name: str, id: str | None, arguments: dict[str, Any], at: datetime | None = None
    ) -> None:
        if id is not None:
            id = str(id)
            self._names[id] = name
        if too_deep(arguments):
            raise RecursionError
        call = ToolCall(name, id, arguments, at)
        if turn.calls is None:
            turn.calls = [call]
        else:
            turn.calls.append(call)

    def _thought_in(self, turn: AgentTurn) -> None:
        if self._pending:
            turn.thinking = [*(turn.thinking or ()), *self._pending]
            self._pending = []

    def knows(self, call_id: str | None) -> bool:
        return call_id is not None and str(call_id) in self._names

    def result(
        self, call_id: str | None, content: Any, name: str | None = None, at: datetime | None = None,
        failed: bool = False,
    ) -> None:  # fmt: skip
        """Add a tool's output; without a name of its own, it gets the name of its call."""
        if call_id is None:
            named = name or "tool"
        else:
            call_id = str(call_id)
            named = name or self._names.get(call_id, "tool")
        read = content
        if type(content) is not str:
            shallow(content)
        elif content.lstrip()[:1] == "{":
            read = object_or_text(content)
        self.results.append(ToolResult(named, read, call_id))
        self._entries.append(TraceMessage("tool", read, None, None, named))
        self._failed += failed
        if call_id is not None:
            self._ended[call_id] = (at, failed, read)

    def subagent(self, name: str, other: Transcript) -> None:
        """Add a conversation below this one: a span that contains its messages; its tokens count."""
        self.tokens += other.tokens
        self.models |= other.models
        self.spans.append(
            Span(
                f"agent-{len(self.spans) + 1}",
                name,
                kind="agent",
                started_at=other._first,
                finished_at=other._last,
                status="unset" if other.error is None else "error",
                error=None if other.error is None else other.error.message,
                output={"messages": msgspec.to_builtins(other._laid_out().messages)},
            )
        )

    def trace(self, variant: str, extra: Mapping[str, Any]) -> Trace:
        """The conversation as a recording of a case that is named later."""
        laid, last = self._laid_out(), self._last_spoken_turn()
        tokens = self.tokens
        cached = {"cache_read_tokens": tokens.cache_read, "cache_write_tokens": tokens.cache_write}
        custom = {**self.custom, **{name: number for name, number in cached.items() if number is not None}}
        if self._failed:
            custom["failed_tool_results"] = self._failed
        return Trace(
            case_id="",
            variant_name=variant,
            started_at=self._first or UNKNOWN_TIME,
            finished_at=self._last or UNKNOWN_TIME,
            latency_ms=self.latency_ms if self.latency_ms is not None else self._elapsed(),
            input={},
            output=Output(self.answer or last.text, joined_text(last.thinking), self.structured),
            messages=laid.messages,
            tool_calls=laid.calls,
            tool_results=self.results,
            metrics=Metrics(
                token_input=tokens.input,
                token_output=tokens.output,
                token_thinking=tokens.thinking,
                cost_usd=tokens.cost,
                custom=custom,
            ),
            error=self.error,
            extra={
                "source": "import",
                **({"models": sorted(self.models)} if self.models else {}),
                **self.extra,
                **extra,
            },
            spans=laid.spans + self.spans,
        )

    def _elapsed(self) -> int | None:
        if self._first is None or self._last is None or self._first == self._last:
            return None
        return round((self._last - self._first).total_seconds() * 1000)

    def _last_spoken_turn(self) -> AgentTurn:
        """The last turn with a text that is not blank."""
        for entry in reversed(self._entries):
            if isinstance(entry, AgentTurn) and entry.texts and (entry.text or "").strip():
                return entry
        return AgentTurn()

    def _laid_out(self) -> _TraceLayout:
        laid = _TraceLayout([], [], [])
        message = laid.messages.append
        number = 0
        for entry in self._entries:
            if isinstance(entry, TraceMessage):
                message(entry)
                continue
            number += 1
            calls, text, thought = entry.calls, joined_text(entry.texts), joined_text(entry.thinking)
            if calls is None and text is None and thought is None:
                continue
            message(TraceMessage("assistant", text, thought, calls[0] if calls else None))
            if calls:
                laid.calls += calls
                for call in calls[1:]:
                    message(TraceMessage("assistant", None, None, call))
            if entry.started_at is not None:
                self._add_spans(laid.spans, entry, number, text)
        return laid

    def _add_spans(self, spans: list[Span], turn: AgentTurn, number: int, text: str | None) -> None:
        """Add the turn's span, and below it the spans of its calls."""
        id, started = turn.id or f"turn-{number}", turn.started_at
        model = turn.model or "assistant"
        spans.append(Span(id, model, None, "llm", started, turn.finished_at, "unset", None, None, text))
        for position, call in enumerate(turn.calls or (), start=1):
            at, failed, content = self._ended.get(call.id or "", _NEVER)
            status = "error" if failed else "unset" if at is None else "ok"
            spans.append(
                Span(
                    call.id or f"{id}-call-{position}", call.name, id, "tool", call.started_at or started, at, status,
                    None, call.arguments, content,
                )
            )  # fmt: skip


_NEVER = (None, False, None)
_decode = msgspec.json.Decoder(dict[str, Any]).decode


def shallow(value: Any) -> Any:
    """The value itself. Raises RecursionError if it is nested too deeply to be written again."""
    if too_deep(value):
        raise RecursionError
    return value


def object_or_text(text: str) -> dict[str, Any] | str:
    """The JSON object in a text, or the text itself if it is not one."""
    if text.lstrip()[:1] != "{":
        return text
    try:
        value: dict[str, Any] = _decode(text)
    except (ValueError, RecursionError):
        return text
    return text if too_deep(value) else value


def arguments_of(value: Any) -> dict[str, Any]:
    """Arguments as an object; other text is kept under `_raw`."""
    if isinstance(value, str):
        read = object_or_text(value)
        return read if isinstance(read, dict) else {"_raw": value} if value.strip() else {}
    if isinstance(value, dict):
        return value
    return {} if value is None else {"_raw": msgspec.json.encode(value).decode()}
