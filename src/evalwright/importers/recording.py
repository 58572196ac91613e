"""One record of a file as a recording: its cell, what happened, and what was expected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from evalwright.errors import Problem
from evalwright.files.numbers import finite_number_in
from evalwright.files.strict_json import JsonFlaw, strict_json
from evalwright.importers.mapping import MISSING, RecordMapping
from evalwright.importers.record_values import RECORDING_DEPTH, described, moment, too_deep
from evalwright.importers.recorded_replies import RecordedReply, completion_reply, ends_with_answer, recorded_reply
from evalwright.importers.recordings import Json, RecordingPlace
from evalwright.importers.sources import ImportNotes
from evalwright.importers.token_counts import Tokens, reply_tokens
from evalwright.model.trace import Metrics, Output, ToolCall, ToolResult, Trace, TraceMessage

__all__ = ["UNKNOWN_TIME", "ReadConversation", "RecordReader", "RecordedConversation", "Recording", "ReportMistake"]

UNKNOWN_TIME = datetime(1970, 1, 1, tzinfo=UTC)
"""Start and end of a recording without times; its latency is unknown."""

ReportMistake = Callable[[str, str], None]
"""Called with the path of a value inside the record, and the problem with it."""


@dataclass(slots=True)
class RecordedConversation:
    """The messages of one record, as read by a message format."""

    messages: list[TraceMessage] = field(default_factory=list)
    tool_calls: list[ToolCall] = field(default_factory=list)
    tool_results: list[ToolResult] = field(default_factory=list)
    user_message: str | None = None
    """The first text of the user."""
    final_answer: str | None = None
    """The last text of the assistant."""
    thinking: str | None = None
    tokens: Tokens = field(default_factory=Tokens)
    """The sums over the messages that say what they used."""
    failed_results: int = 0
    """Results of tools that are marked as errors."""
    lost: ImportNotes = field(default_factory=ImportNotes)
    """Parts of messages of which only the type is left, and counts that cannot be read."""


ReadConversation = Callable[[Any, str, ReportMistake], RecordedConversation]
"""Called with the value that is mapped as messages, its path, and where to report problems."""


@dataclass(slots=True)
class Recording:
    """The content of one record; `case_id` and `trial` are None if the record has none."""

    case_id: str | None
    trial: int | None
    actions: list[dict[str, Any]] | None
    reward: float | None
    metadata: dict[str, Any]
    conversation: RecordedConversation
    extra: dict[str, Any]
    started_at: datetime
    finished_at: datetime
    latency_ms: int | None
    """None unless the record has both a start and an end that is not before it."""

    def trace(self, case_id: str, trial: int) -> Trace:
        """The recording as trial number `trial` of a case."""
        talk = self.conversation
        return Trace(
            case_id=case_id,
            variant_name="recorded",
            started_at=self.started_at,
            finished_at=self.finished_at,
            latency_ms=self.latency_ms,
            input={"user_message": talk.user_message or ""},
            output=Output(talk.final_answer, talk.thinking),
            messages=talk.messages,
            tool_calls=talk.tool_calls,
            tool_results=talk.tool_results,
            metrics=self._metrics(),
            extra=self.extra,
            trial=trial,
        )

    def _metrics(self) -> Metrics:
        tokens = self.conversation.tokens
        known = {
            "reward": self.reward,
            "cache_read_tokens": tokens.cache_read,
            "cache_write_tokens": tokens.cache_write,
            "failed_tool_results": self.conversation.failed_results or None,
        }
        custom = {name: number for name, number in known.items() if number is not None}
        return Metrics(tokens.input, tokens.output, tokens.thinking, custom=custom)


class RecordReader:
    """Reads the records of one file and collects their problems."""

    def __init__(self, source: Path, mapping: RecordMapping, read_conversation: ReadConversation) -> None:
        self.problems: list[Problem] = []
        self.names_cases: bool = False
        """Whether any record so far had a case id."""
        self.counts_trials: bool = False
        """Whether any record so far had the number of its trial."""
        self.unread: set[str] = set()
        """Keys of records so far that are not mapped."""
        self._source = source
        self._mapping = mapping
        self._read_conversation = read_conversation

    def report(self, place: RecordingPlace, key: str, message: str) -> None:
        self.problems.append(Problem(str(self._source), message, place.line, place.below(key)))

    def read(self, place: RecordingPlace, text: Json) -> Recording | None:
        """The record at a place; None, and at least one more problem, if it cannot be used."""
        known = len(self.problems)
        recording = None
        try:
            recording = self._recording(place, msgspec.json.decode(text))
        except RecursionError:
            self.report(place, "", "is nested too deeply")
        except ValueError as error:
            self.report(place, "", f"is not valid JSON: {_flaw_in(text) or error}")
        return recording if len(self.problems) == known else None

    def _recording(self, place: RecordingPlace, record: Any) -> Recording | None:
        def report(key: str, message: str) -> None:
            self.report(place, key, message)

        if not isinstance(record, dict):
            report("", f"expected a record, found {described(record)}")
            return None
        if too_deep(record):
            report("", f"is nested deeper than {RECORDING_DEPTH} levels")
            return None
        parts = _Parts(record, self._mapping, report)
        started, finished = parts.moment("started_at"), parts.moment("finished_at")
        messages, key = parts.find("messages")
        reply = parts.reply(messages)
        talk = self._conversation(messages, key, reply, parts)
        if None not in self._mapping.heads:
            self.unread |= record.keys() - self._mapping.heads - parts.read_keys
        self.names_cases |= parts.has("id")
        self.counts_trials |= parts.has("trial")
        return Recording(
            case_id=parts.case_id(),
            trial=parts.trial(),
            actions=parts.actions(),
            reward=parts.reward(),
            metadata=parts.free("metadata"),
            conversation=talk,
            extra={**parts.free("extra"), **_about(reply), **self._origin(place)},
            started_at=started or finished or _created(reply) or UNKNOWN_TIME,
            finished_at=finished or started or _created(reply) or UNKNOWN_TIME,
            latency_ms=_milliseconds(started, finished),
        )

    def _conversation(
        self, messages: Any, key: str, reply: RecordedReply | None, parts: _Parts
    ) -> RecordedConversation:
        if messages is MISSING and reply is None:
            parts.report(key, "expected the messages of a conversation, found nothing")
            return RecordedConversation()
        if reply is not None:
            request = [] if messages is MISSING else messages
            messages = [*request, reply.message] if isinstance(request, list) else request
        talk = self._read_conversation(messages, key, parts.report)
        if talk.tokens == Tokens():
            talk.tokens = parts.tokens(reply, talk.lost)
        if reply is not None and reply.more:
            talk.lost.lose("further choices of a reply", reply.more)
        return talk

    def _origin(self, place: RecordingPlace) -> dict[str, Any]:
        position = {"record": place.number} if place.line is None else {"line": place.line}
        return {"source": "import", "imported_from": {"file": self._source.name, **position}}


def _about(reply: RecordedReply | None) -> dict[str, Any]:
    """What a recording says of its reply: the model, and why it stopped before the end."""
    if reply is None:
        return {}
    model = reply.about.get("model")
    about = {"model": model if isinstance(model, str) else None, "stopped": reply.stopped}
    return {key: value for key, value in about.items() if value}


def _created(reply: RecordedReply | None) -> datetime | None:
    return None if reply is None else moment(reply.about.get("created"))


def _milliseconds(started: datetime | None, finished: datetime | None) -> int | None:
    if started is None or finished is None or finished < started:
        return None
    return int((finished - started).total_seconds() * 1000)


class _Parts:
    """The parts of one record except its conversation."""

    def __init__(self, record: dict[str, Any], mapping: RecordMapping, report: ReportMistake) -> None:
        self.report = report
        self._record = record
        self._mapping = mapping
        self.read_keys: set[str] = set()
        """Keys of the record that are read, though no part is mapped to them."""

    def find(self, part: str) -> tuple[Any, str]:
        """The value of a part, MISSING if there is none, and its path."""
        return self._mapping.find(self._record, part)

    def has(self, part: str) -> bool:
        return self.find(part)[0] not in (MISSING, None)

    def _stated_value(self, part: str) -> tuple[Any, str]:
        """Like `find`, but with MISSING for null, and a complaint if a part that the user mapped is missing."""
        value, key = self.find(part)
        if value is None:
            value = MISSING
        if value is MISSING and part in self._mapping.stated:
            self.report(key, f"expected the {part} of the record, found nothing")
        return value, key

    def case_id(self) -> str | None:
        value, key = self._stated_value("id")
        if value is MISSING:
            return None
        if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
            self.report(key, f"expected a case id (string or integer), found {described(value)}")
            return None
        return str(value)

    def trial(self) -> int | None:
        value, key = self._stated_value("trial")
        if value is MISSING:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            self.report(key, f"expected a trial number, found {described(value)}")
            return None
        return value

    def reward(self) -> float | None:
        value, key = self._stated_value("reward")
        if value is MISSING:
            return None
        number = None if isinstance(value, str) else finite_number_in(int(value) if isinstance(value, bool) else value)
        if number is None:
            self.report(key, f"expected a reward (number), found {described(value)}")
        return number

    def reply(self, messages: Any) -> RecordedReply | None:
        """The reply to the messages; unless it is mapped, of a record that is a chat completion or has a response, and
        whose messages do not end with an answer."""
        value, key = self._stated_value("reply")
        if value is not MISSING:
            reply = recorded_reply(value)
            if reply is None:
                self.report(key, f"expected a text, a message or a chat completion, found {described(value)}")
            return reply
        if "reply" in self._mapping.stated or ends_with_answer(messages):
            return None
        response = recorded_reply(self._record.get("response"))
        if response is not None:
            self.read_keys.add("response")
            return response
        completion = completion_reply(self._record)
        if completion is not None:
            self.read_keys |= {"choices", "usage", "model", "object", "created"}
        return completion

    def tokens(self, reply: RecordedReply | None, lost: ImportNotes) -> Tokens:
        """The usage of the reply, else that of the record."""
        replied = reply_tokens(reply.about.get("usage") if reply is not None else None, lost)
        if replied != Tokens():
            return replied
        recorded = reply_tokens(self._record.get("usage"), lost)
        self.read_keys |= {"usage"} if recorded != Tokens() else set()
        return recorded

    def actions(self) -> list[dict[str, Any]] | None:
        value, key = self._stated_value("actions")
        if value is MISSING:
            return None
        actions = [value] if isinstance(value, dict) else value
        if not isinstance(actions, list):
            self.report(key, f"expected a list of actions, found {described(value)}")
            return None
        return [self._action(action, f"{key}[{i}]") for i, action in enumerate(actions)]

    def _action(self, action: Any, at: str) -> dict[str, Any]:
        if not isinstance(action, dict) or not isinstance(action.get("name"), str):
            self.report(at, "expected an action with a name")
            return {}
        arguments = action.get("arguments", action.get("kwargs"))
        if not isinstance(arguments, dict | None):
            self.report(at, f"expected an object as kwargs or arguments, found {described(arguments)}")
        return {"name": action["name"], "arguments": arguments or {}}

    def moment(self, part: str) -> datetime | None:
        """A time from ISO 8601 text (UTC if it has no zone) or seconds since 1970."""
        value, key = self._stated_value(part)
        if value is MISSING:
            return None
        if (time := moment(value)) is None:
            self.report(key, f"expected a time in ISO 8601 or seconds since 1970, found {described(value)}")
        return time

    def free(self, prefix: str) -> dict[str, Any]:
        """The values that are mapped as `prefix.NAME` and present, by NAME."""
        values = {name: self.find(f"{prefix}.{name}")[0] for name in self._mapping.named(prefix)}
        return {name: value for name, value in values.items() if value is not MISSING}


def _flaw_in(text: Json) -> str | None:
    """The name of a value that JSON lacks, such as NaN."""
    try:
        strict_json(bytes(text))
    except JsonFlaw as flaw:
        return str(flaw)
    except (UnicodeDecodeError, RecursionError):
        pass
    return None
