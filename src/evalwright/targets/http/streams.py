"""Streamed answers: events found by paths or of a known protocol, their token counts and times."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from evalwright.errors import TargetError
from evalwright.files.key_paths import kind_in_words
from evalwright.model.trace import Answer
from evalwright.targets.http.agent_protocols import AiSdkEvents
from evalwright.targets.http.body import EXCERPT_BYTES, error_in
from evalwright.targets.http.call_pieces import CallPieces
from evalwright.targets.http.known_events import misread_in, reported_error
from evalwright.targets.http.mapping import answer_of_parts, text_of
from evalwright.targets.http.paths import JsonPath
from evalwright.targets.http.protocols import PROTOCOLS
from evalwright.targets.http.turns import Turns

__all__ = ["EVENT_KEYS", "FIELDS", "FORMATS", "Event", "EventReader", "StreamedAnswer", "event_paths"]

_PART = re.compile(f"([{''.join(AiSdkEvents.codes)}]):(.*)")
_STARTS_OF_OTHERS = tuple("tfn-0123456789")
"""First characters of JSON that is neither an object, nor a list, nor a string."""
FIELDS = {"token": "stream_event_field", "done": "stream_done_field", "tool_call": "stream_tool_call_field"}
"""The keys that name a path each, by the entries of `stream_event_mapping`."""
EVENT_KEYS = tuple(FIELDS)
"""The entries of `stream_event_mapping`."""


@dataclass(slots=True, frozen=True)
class Event:
    """One message of a stream."""

    token: str | None = None
    done: bool = False
    tool_calls: Any = None
    """What the path `tool_call` found: an item, a list of items, or None."""
    error: str | None = None
    """The error that the service reports, None without one."""
    misread: str = ""
    """The type of an event of a known protocol of which the paths read a part, or read as text what is none."""


def event_paths(config: Mapping[str, Any]) -> dict[str, JsonPath]:
    """The paths to `token`, `done` and `tool_call` in an event; `stream_event_mapping` takes precedence over single
    keys."""
    mapping = config.get("stream_event_mapping") or {}
    paths = {}
    for name, key in FIELDS.items():
        if mapping.get(name):
            paths[name] = JsonPath(f"stream_event_mapping.{name}", mapping[name])
        elif config.get(key):
            paths[name] = JsonPath(key, config[key])
    return paths


class EventReader:
    """Reads events from the bytes of a stream, however these are cut into pieces."""

    def __init__(self, form: str, paths: Mapping[str, JsonPath]) -> None:
        self._form, self._paths = form, paths
        self._by_line = FORMATS[form]
        self.turns: Turns | None = Turns() if form in PROTOCOLS else None
        """What the events of a protocol tell; None if paths find the parts."""
        self._protocol = PROTOCOLS[form](self.turns) if self.turns is not None else None
        self.end_mark: str = self._protocol.end if self._protocol is not None else ""
        """What says in the protocol that an answer is complete."""
        self.head: bytearray = bytearray()
        """How the stream begins, to show what it is if it has no events."""
        self._rest = bytearray()
        self._begun = False
        self._returned = False
        """Whether the last piece ended with CR, of which LF may be the second half."""
        self.cut: bool = False
        """Whether the stream ended inside its last event, which was left out."""
        self._data: list[str] = []
        """The `data:` lines of an event that is not complete yet."""
        self._name = ""
        """What the `event:` line of that event says."""
        # Incremental: a piece may end in the middle of a character. A byte order mark is no part of the text.
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()

    def feed(self, piece: bytes) -> Iterator[Event]:
        """The events that `piece` completes."""
        self.head += piece[: EXCERPT_BYTES - len(self.head)]
        if self._by_line is None:
            yield Event(token=self._decoded_piece(piece))
            return
        *lines, rest = (piece if self._form == "json_lines" else self._with_plain_ends(piece)).split(b"\n")
        for line in lines:
            self._rest += line
            text = self._line()
            yield from self._by_line(self, text.removesuffix("\r"))
        self._rest += rest

    def _with_plain_ends(self, piece: bytes) -> bytes:
        """A piece with LF for the line ends of the standard: CRLF, LF or CR. Two pieces may share a CRLF."""
        if not piece:
            return piece
        begun, self._returned = self._returned, piece.endswith(b"\r")
        return (piece.removeprefix(b"\n") if begun else piece).replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _line(self, *, whole: bool = True) -> str:
        """The text of the bytes that are left, of a line that is `whole` or may end inside a character."""
        text = _utf8(bytes(self._rest), whole=whole)
        self._rest.clear()
        begun, self._begun = self._begun, True
        return text if begun else text.removeprefix("\ufeff")

    def end(self) -> Iterator[Event]:
        """The event in last lines without the end of a line or event, unless they themselves are incomplete."""
        if self._by_line is None:
            self.cut = bool(self._decoder.getstate()[0])
            return
        line = self._line(whole=False)
        part = _PART.match(line) if self._form == "ai_sdk" else None
        last = line.removeprefix("data:") if part is None else part[2]
        self.cut = self._is_cut("\n".join([*self._data, last]).strip()) or (part is not None and not last)
        if self.cut:
            return
        yield from self._by_line(self, line)
        yield from self._whole_data()

    def _is_cut(self, text: str) -> bool:
        """Whether this is the beginning of JSON. In a format that allows other text, only its first character can
        tell."""
        if text == "[DONE]":
            return False
        try:
            json.loads(text)
        except json.JSONDecodeError as error:
            begun = text.startswith(("{", "[", '"')) or (self._form == "json_lines" and text[:1] in _STARTS_OF_OTHERS)
            return begun and not error.msg.startswith("Extra data")
        except RecursionError:
            return True
        except ValueError:
            pass  # a number that is too large, but complete
        return False

    def _decoded_piece(self, piece: bytes) -> str:
        try:
            return self._decoder.decode(piece)
        except UnicodeDecodeError:
            raise TargetError("the stream is not valid UTF-8") from None

    def sse(self, line: str) -> Iterator[Event]:
        """The event that a line completes. Several `data:` lines are one event, which ends with an empty line.

        Servers may leave out the empty line after an object or `[DONE]`: these are events of their own.
        """
        name, _, value = line.partition(":")
        if not line:
            yield from self._whole_data()
            self._name = ""
        elif name == "event":
            self._name = value.strip()
        elif name == "data" and value.strip() == "[DONE]":
            yield from self._whole_data()
            yield Event(done=True)
        elif name == "data":
            self._data.append(value.removeprefix(" "))
            if len(self._data) == 1 and value.lstrip().startswith("{") and not self._is_cut(value.strip()):
                yield from self._whole_data()

    def sse_or_part(self, line: str) -> Iterator[Event]:
        """As `sse`, or the part `CODE:JSON` of a data stream of Vercel's AI SDK."""
        if part := _PART.match(line):
            yield self._event(AiSdkEvents.event_of(part[1], self._json(part[2])))
        else:
            yield from self.sse(line)

    def _json(self, text: str) -> Any:
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise TargetError(f"an event of the stream is not valid JSON: {error}") from None

    def _whole_data(self) -> Iterator[Event]:
        """The event of the `data:` lines so far, if there are any. Data that is not JSON is text."""
        data = "\n".join(self._data)
        self._data.clear()
        if not data:
            return
        if self._protocol is not None and not self._protocol.end:
            yield self._event({"type": self._name, "data": self._json(data)})
            return
        if self._name == "error":
            yield Event(error=self._error_in(data))
            return
        if self._protocol is not None:
            yield self._event(self._json(data))
            return
        try:
            document = json.loads(data)
        except (ValueError, RecursionError):
            yield Event(token=data)
            return
        event = self._event(document)
        yield Event(token=data) if event.token is None and isinstance(document, str | int | float) else event

    def _error_in(self, data: str) -> str:
        try:
            return error_in(json.loads(data)) or data
        except (ValueError, RecursionError):
            return data

    def json_line(self, line: str) -> Iterator[Event]:
        """The event of a line that is a JSON document."""
        if not line.strip():
            return
        try:
            yield self._event(json.loads(line))
        except (ValueError, RecursionError) as error:
            raise TargetError(f"a line of the stream is not valid JSON: {error}") from None

    def _event(self, document: Any) -> Event:
        if self._protocol is not None and self.turns is not None:
            if not isinstance(document, dict):
                raise TargetError(f"an event of the stream must be an object, found {kind_in_words(document)}")
            self._protocol.read(document)
            turns = self.turns
            # Of other types, `error` is that of a tool, say. Gateways report theirs without a type.
            reported = error_in(document) if document.get("type") in (None, "error") else None
            return Event(token=turns.fresh_text(), done=turns.done, error=turns.error or reported)
        parts = {name: path.find(document) for name, path in self._paths.items()}
        done = parts.get("done")
        known = misread_in(document, parts.get("token") is not None, parts.get("tool_call") is not None)
        return Event(
            token=text_of(parts.get("token")),
            done=not (done is None or done is False or done == ""),
            tool_calls=parts.get("tool_call"),
            error=error_in(document) or reported_error(document),
            misread=known,
        )


FORMATS: dict[str, Callable[[EventReader, str], Iterator[Event]] | None] = {
    "json_lines": EventReader.json_line,
    "raw_chunks": None,
    "sse": EventReader.sse,
    **dict.fromkeys(PROTOCOLS, EventReader.sse),
    "ai_sdk": EventReader.sse_or_part,
}
"""How lines become events; None if each piece is an event as it arrives."""


def _utf8(line: bytes, *, whole: bool = True) -> str:
    """The text of a line; unless it is `whole`, it may end inside a character."""
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(line, final=whole)
    except UnicodeDecodeError:
        raise TargetError("the stream is not valid UTF-8") from None


class StreamedAnswer:
    """Collects the events of one answer; times are seconds since the request was sent."""

    def __init__(self) -> None:
        self.chunks: int = 0
        self.error: str | None = None
        self.misread: str = ""
        """As of an event, the first one."""
        self.spoke: bool = False
        """Whether any event had a text, even an empty one."""
        self.completed: bool = False
        """Whether the last event says that it is the last one."""
        self._tokens: list[str] = []
        self._calls = CallPieces()
        self._first = self._last = self._ended = 0.0

    def add(self, event: Event, seconds: float) -> bool:
        """Add an event; returns whether it is the last one."""
        self.chunks += 1
        self.error = self.error or event.error
        self.misread = self.misread or event.misread
        self._ended = seconds
        self.spoke = self.spoke or event.token is not None
        if event.token:
            self._first = self._first if self._tokens else seconds
            self._last = seconds
            self._tokens.append(event.token)
        if event.tool_calls is not None:
            self._calls.add(event.tool_calls)
        self.completed = event.done
        return event.done

    @property
    def empty(self) -> bool:
        """Whether neither text nor tool calls have arrived."""
        return not self._tokens and not self._named

    @property
    def strange(self) -> list[Any]:
        """What the path `tool_call` found and is not a call with a name."""
        return [*self._calls.unread, *(call for call in self._calls.all if not call["name"])]

    @property
    def _named(self) -> list[dict[str, Any]]:
        return [call for call in self._calls.all if call["name"] is not None]

    def answer(self, strip_think: bool, interruption: str | None) -> Answer:
        """The whole answer; `interruption` says why its end is missing."""
        tokens = len(self._tokens)
        return answer_of_parts(
            "".join(self._tokens) if tokens or self.spoke else None,
            None,
            strip_think,
            {
                "tool_calls": self._named,
                "metrics": self._metrics(tokens),
                "extra": {"stream_interrupted": interruption} if interruption else {},
            },
        )

    def of_turns(self, turns: Turns, strip_think: bool, interruption: str | None) -> Answer:
        """As `answer`, with the parts that the events of a protocol told. Tokens are those that the service counts."""
        facts = {"finish_reason": turns.finish_reason, "unread_events": dict(turns.unread)}
        extra = {**facts, "stream_interrupted": interruption}
        parts = {
            **turns.parts(),
            "metrics": {**self._metrics(turns.usage.get("token_output")), **turns.usage},
            "extra": {name: fact for name, fact in extra.items() if fact},
        }
        return answer_of_parts(parts.pop("final_answer"), parts.pop("thinking"), strip_think, parts)

    def _metrics(self, tokens: Any) -> dict[str, Any]:
        timed = isinstance(tokens, int) and tokens > 0 and self._ended > 0
        return {
            "token_output": tokens or None,
            "latency_first_token_ms": int(self._first * 1000) if self._tokens else None,
            "latency_last_token_ms": int(self._last * 1000) if self._tokens else None,
            "tokens_per_second": tokens / self._ended if timed else None,
            "stream_chunks": self.chunks,
            "stream_completed": self.completed,
        }
