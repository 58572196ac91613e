"""One session of Claude Code: its lines as a conversation, with those of its subagents.

Lines with one `message.id` are one turn, as the tool writes a line for each block and, in a stream, the same block
again; usage counts once for each.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from evalwright.importers.agent_turns import AgentTurn
from evalwright.importers.blocks import Content, assistant_blocks, user_blocks
from evalwright.importers.claude_lines import SessionLine, SessionMessage
from evalwright.importers.claude_results import session_totals
from evalwright.importers.record_values import described, too_deep
from evalwright.importers.sources import ImportNotes, Mistakes
from evalwright.importers.token_counts import anthropic_tokens, recorded_dollars, recorded_time
from evalwright.importers.transcript import Transcript
from evalwright.model.trace import TraceError

__all__ = ["CUT", "ClaudeSession"]

_RESULT = "result"
_LEFT_OUT = {
    "summary", "file-history-snapshot", "queue-operation", "progress", "stream_event", "system",
    "last-prompt", "custom-title", "agent-name", "permission-mode", "user", "assistant", _RESULT,
}  # fmt: skip
"""Lines without conversation: bookkeeping, hooks, parts that a later line repeats, and what the tool says itself."""
_BY_THE_TOOL = "<synthetic>"
"""The model of messages that the tool writes in the name of the assistant, such as `No response requested.`"""
_STOPPED = ("error_max_turns", "error_max_budget_usd")
_INTERRUPTED = re.compile(r"\[(Request interrupted by user[^\]]*)\]\s*")
"""What the tool writes in the name of a user who stopped the agent."""
_COMMAND = "<command-name>"
_PRINTED = ("<local-command-stdout>", "<local-command-stderr>", "<bash-input>", "<bash-stdout>")
"""What the user had the tool do without the model, such as `/model` or `!ls`, and what that printed."""
CUT = "the last line breaks off and was left out"


class _Conversation:
    """One conversation of a session: the main one, or that of a subagent."""

    def __init__(self) -> None:
        self.talk = Transcript()
        self.turns: dict[str, AgentTurn] = {}
        self.usage: dict[str, Any] = {}
        """The last usage of each message."""
        self.costs: dict[str, float] = {}
        self._command: str | None = None
        """A command of the user that the tool may have carried out itself."""

    def asks(self, content: Content) -> bool:
        """Whether a message of the user is a request to the model, as far as it is known when the user writes it."""
        text = next(iter(_texts(content)), "")
        if text.startswith(_PRINTED):
            self._command = None  # the tool has carried it out
            return False
        self._command = text if text.startswith(_COMMAND) else None
        return self._command is None

    def replies(self) -> None:
        """The model replies: if the user has written nothing but a command, that was the request."""
        if self.talk.user_message is None:
            self.talk.user_message = self._command

    def counted(self, notes: ImportNotes) -> Transcript:
        """The conversation with the usage of all its calls."""
        self.talk.tokens = anthropic_tokens(notes, *self.usage.values())
        if self.costs:
            self.talk.tokens.cost = sum(self.costs.values())
        return self.talk


class ClaudeSession:
    """The lines of one session, in their order."""

    def __init__(self, file: Path, mistakes: Mistakes, notes: ImportNotes) -> None:
        self._file, self._mistakes, self._notes = file, mistakes, notes
        self._lines: list[tuple[int, SessionLine]] = []
        self._seen: set[str] = set()
        self._parents: set[str] = set()
        """Lines that a line of a user follows."""
        self._forks = False
        """Whether two of them follow one line: the session may have been rewound there."""
        self._passed: dict[str, str | None] = {}
        """By each line that was left out, the last line before it that was not: the tool links lines through both."""
        self._extra: dict[str, Any] = {}
        self._at: list[datetime | None] = []
        self._number = 0

    def read(self, number: int, line: SessionLine | None) -> None:
        if line is None:
            self._extra.setdefault("warnings", []).append(CUT)
            self._notes.add_text(f"{self._file.name}:{number}: {CUT}")
            return
        uuid, kind = line.uuid, line.type
        if uuid is not None:
            if uuid in self._seen:
                return
            self._seen.add(uuid)
        if line.isMeta or not (kind == "user" or kind == "assistant" or kind == _RESULT):
            self._pass(number, line)
            return
        self._lines.append((number, line))
        if kind == "user" and (parent := line.parentUuid) is not None:
            self._forks = self._forks or parent in self._parents
            self._parents.add(parent)

    def _pass(self, number: int, line: SessionLine) -> None:
        """Take what is of use in a line that is no part of the conversation."""
        kind = line.type
        if line.uuid is not None:
            self._passed[line.uuid] = self._kept(line.parentUuid)
        if kind == "system" and line.subtype == "init":
            self._keep(self._extra, line, number, ("model", "cwd", "tools"))
        elif kind == "attachment":
            attached = line.attachment.get("type") if isinstance(line.attachment, dict) else None
            if not str(attached).startswith("hook_"):
                self._notes.lose(f"attachments of type {attached!r}")
        elif str(kind) not in _LEFT_OUT:
            self._notes.lose(f"lines of type {kind!r}")
            self._at.append(recorded_time(line.timestamp, self._notes))  # whatever happened, it happened at this time

    def _kept(self, uuid: str | None) -> str | None:
        """A line, or the one above it in place of one that was left out."""
        return uuid if uuid is None else self._passed.get(uuid, uuid)

    def _keep(self, extra: dict[str, Any], line: SessionLine, number: int, names: Sequence[str]) -> None:
        for name in names:
            value = getattr(line, name)
            if value is not msgspec.UNSET:
                extra[name] = value
                if too_deep(value):
                    self._mistakes.add_depth(self._file, number)

    def origin(self) -> dict[str, Any]:
        return {"imported_from": {"file": self._file.name, "format": "claude-code"}, **self._extra}

    def finished(self) -> Transcript:
        main, others, outcomes = self._conversations(self._abandoned_lines() if self._forks else set())
        for at in self._at:
            main.talk.at(at)
        talk = main.counted(self._notes)
        for name, other in others.items():
            talk.subagent(name, other.counted(self._notes))
        if outcomes:
            self._end(talk, outcomes)
        return talk

    def _conversations(
        self, abandoned: set[Any]
    ) -> tuple[_Conversation, dict[str, _Conversation], list[tuple[int, SessionLine]]]:
        main = _Conversation()
        others: dict[str, _Conversation] = {}
        outcomes: list[tuple[int, SessionLine]] = []
        report, doubt, agents = self._report, self._doubt, _Agents()
        for number, line in self._lines:
            if abandoned and line.uuid in abandoned:
                continue
            if line.type == _RESULT:
                outcomes.append((number, line))
                continue
            talk = main
            if _is_of_agent(line):
                agent = agents.name_of(line, self._kept(line.parentUuid))
                talk = others[agent] = others.get(agent) or _Conversation()
            at = line.timestamp if line.forkedFrom is None else None  # a copy was said, and paid, in another session
            if at is not None:
                at = at if type(at) is datetime and at.tzinfo is UTC else recorded_time(at, self._notes)
                talk.talk.at(at)
            message = line.message
            if message is None:
                self._notes.lose(f"lines of type {line.type!r} without a message")
                message = _NOTHING
            if line.isApiErrorMessage or line.is_api_error_message:
                talk.talk.error = TraceError("api_error", "\n".join(_texts(message.content)))
                continue
            if message.model == _BY_THE_TOOL:
                self._notes.lose("messages of the assistant that the tool wrote itself")
                continue
            try:
                if line.type == "user":
                    self._number = number
                    stop = _interruption(message.content)
                    asks = stop is None and talk.asks(message.content)
                    user_blocks(talk.talk, message.content, self._notes, report, at, doubt, asks=asks)
                    talk.talk.error = stop or talk.talk.error
                else:
                    talk.talk.error = None
                    talk.replies()
                    self._add_message(talk, message, line, number, at)
            except RecursionError:
                self._mistakes.add_depth(self._file, number)
        return main, others, outcomes

    def _add_message(
        self, talk: _Conversation, message: SessionMessage, line: SessionLine, number: int, at: datetime | None
    ) -> None:
        key = message.id or f"line {number}"
        turn = talk.turns.get(key)
        if turn is None:
            turn = talk.turns[key] = talk.talk.turn(key, at, message.model)
        turn.finished_at = at
        if message.usage is not None and line.forkedFrom is None:
            talk.usage[key] = message.usage
            if line.costUSD is not None and (cost := recorded_dollars(line.costUSD, self._notes)) is not None:
                talk.costs[key] = cost
        content = message.content
        if content is not None and not isinstance(content, str | list):
            self._number = number
            self._report(f"expected text or blocks, found {described(content)}")
        assistant_blocks(talk.talk, turn, content, self._notes, at)

    def _report(self, what: str) -> None:
        self._mistakes.add(self._file, what, self._number, "message.content")

    def _doubt(self, what: str) -> None:
        # a session that was compacted, or copied in part, begins after its calls
        self._extra.setdefault("warnings", []).append(f"line {self._number}: {what}")

    def _end(self, talk: Transcript, outcomes: Sequence[tuple[int, SessionLine]]) -> None:
        """The totals in the last lines of requests, and how the last one ended."""
        totals = session_totals([line for _, line in outcomes], self._notes)
        number, outcome = outcomes[-1]
        if isinstance(outcome.result, str):
            talk.answer = outcome.result
        if totals.tokens is not None:
            talk.tokens = totals.tokens
        if totals.cost_usd is not None:
            talk.tokens.cost = totals.cost_usd
        talk.latency_ms = totals.latency_ms
        self._keep(talk.extra, outcome, number, ("num_turns", "permission_denials"))
        if totals.num_turns is not None:
            talk.extra["num_turns"] = totals.num_turns
        subtype = outcome.subtype
        if subtype in _STOPPED:
            talk.extra["stopped"] = str(subtype).removeprefix("error_")
        elif outcome.is_error or subtype == "error_during_execution":
            errors = outcome.errors
            message = "; ".join(map(str, errors)) if isinstance(errors, list) and errors else outcome.result
            talk.error = TraceError("agent_error", str(message or subtype or "the agent ended with an error"))

    def _abandoned_lines(self) -> set[str | None]:
        """The lines below a request that was taken back: a later one has the same parent.

        Forks of parallel calls and their results are no branches, so only lines with text count as requests.
        """
        prompts: dict[str, str] = {}
        lines: set[str | None] = set()
        for _, line in self._lines:
            parent = line.parentUuid
            if parent is not None and line.uuid is not None and _is_request(line) and not _is_of_agent(line):
                if parent in prompts:
                    lines.add(prompts[parent])
                prompts[parent] = line.uuid
        if not lines:
            return lines
        for _, line in self._lines:  # a line comes after its parent
            if self._kept(line.parentUuid) in lines and not _is_of_agent(line):
                lines.add(line.uuid)
        self._notes.add_text(f"{len(lines)} abandoned lines were left out: the session was rewound")
        return lines


_NOTHING = SessionMessage()


class _Agents:
    """The subagents of a session. Older versions give them no names: each begins with a request of its own."""

    def __init__(self) -> None:
        self._by_line: dict[str, str] = {}
        self._last = ""
        self._number = 0

    def name_of(self, line: SessionLine, parent: str | None) -> str:
        """The name of a line's subagent; `parent` is the line that it follows."""
        if agentId := line.agentId or line.parent_tool_use_id:
            return str(agentId)
        name = self._by_line.get(parent or "")
        if name is None and (_is_request(line) or not self._last):
            self._number += 1
            self._last = "subagent" if self._number == 1 else f"subagent {self._number}"
        name = name or self._last
        if line.uuid is not None:
            self._by_line[line.uuid] = name
        return name


def _is_of_agent(line: SessionLine) -> bool:
    return line.isSidechain is True or line.parent_tool_use_id is not None


def _is_request(line: SessionLine) -> bool:
    """Whether the user wrote a text."""
    content = line.message.content if line.type == "user" and line.message else None
    if isinstance(content, list):
        kinds = [block.type for block in content]
        return "text" in kinds and "tool_result" not in kinds
    return isinstance(content, str)


def _interruption(content: Content) -> TraceError | None:
    """The error of a conversation that ends with this message of a user; None if it does not stop the agent."""
    stop = next(filter(None, map(_INTERRUPTED.fullmatch, _texts(content))), None)
    return stop and TraceError("aborted", stop[1])


def _texts(content: Content) -> list[str]:
    if isinstance(content, list):
        return [block.text if block.text is not None else f"[{block.type}]" for block in content]
    return [str(content or "")]  # whatever a lenient reading has left there
