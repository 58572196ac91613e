"""Sessions of several traces: the turns of one conversation are not independent, so that a session is a group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from evalwright.errors import counted
from evalwright.importers.platform_documents import text_of
from evalwright.importers.span_messages import json_content
from evalwright.importers.wire_spans import WireSpan

__all__ = ["Sessions"]

_ATTRIBUTES = (
    "session.id",
    "gen_ai.conversation.id",
    "langfuse.session.id",
    "traceloop.association.properties.session_id",
    "ai.telemetry.metadata.sessionId",
)
_KEYS = ("session_id", "thread_id", "conversation_id")
"""Keys of a span's metadata by which LangSmith finds threads."""


class Sessions:
    """Which sessions have several traces. All spans are to be added before the first group is asked for."""

    def __init__(self) -> None:
        self._first: dict[str, str] = {}
        """One trace of each session."""
        self._shared: set[str] = set()
        self._turns: Counter[str] = Counter()
        """How many traces each group has."""

    def add(self, span: WireSpan) -> None:
        session = _session_of(span.attributes)
        if session is not None and self._first.setdefault(session, span.trace_id) != span.trace_id:
            self._shared.add(session)

    def group_of(self, spans: Sequence[WireSpan]) -> str | None:
        """The session of a trace, if other traces belong to it, too."""
        sessions = (_session_of(span.attributes) for span in spans)
        # Not the first one of all: an agent inside may have a session of its own.
        session = next((session for session in sessions if session in self._shared), None)
        if session is not None:
            self._turns[session] += 1
        return session

    def notes(self, cases: int) -> list[str]:
        """What the user should know of the groups of so many cases."""
        if not self._turns:
            return []
        turns = counted(self._turns.total(), "trace is a turn", "traces are turns")
        sessions = counted(len(self._turns), "session")
        note = f"{turns} of {sessions}: a session is one group, a unit of all statistics"
        if [*self._turns.values()] == [cases]:
            note += "; one unit says little: if the traces are independent, delete 'group' in cases.jsonl"
        return [note]


def _session_of(attributes: Mapping[str, Any]) -> str | None:
    named = next((id for key in _ATTRIBUTES if (id := text_of(attributes.get(key)))), None)
    if named is not None or "metadata" not in attributes:
        return named
    metadata = json_content(attributes["metadata"])
    keys = _KEYS if isinstance(metadata, dict) else ()
    return next((id for key in keys if (id := text_of(metadata.get(key)))), None)
