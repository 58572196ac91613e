"""The lines of sessions of Claude Code: the fields that are read, whatever their types."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any

import msgspec

from evalwright.importers.blocks import Content, blocks_in
from evalwright.importers.json_lines import LineForm
from evalwright.importers.sources import record_key

__all__ = ["AGENT_LINES", "SESSION_LINES", "SESSION_NAMES", "SessionLine", "SessionMessage"]


class SessionName(msgspec.Struct, gc=False):
    """The session of a line."""

    sessionId: Any = None
    session_id: Any = None


class AgentName(msgspec.Struct, gc=False):
    """The session of a line, and whether the line is a subagent's."""

    sessionId: Any = None
    isSidechain: Any = None


class SessionMessage(msgspec.Struct, gc=False):
    id: str | None = None
    model: str | None = None
    content: Content = None
    usage: Any = None


class SessionLine(SessionName, gc=False):
    """The fields of a line that are read."""

    type: Any = None
    subtype: Any = None
    uuid: str | None = None
    parentUuid: str | None = None
    timestamp: datetime | None = None
    """In lines whose parts have types that the tool does not write, it may be anything."""
    message: SessionMessage | None = None
    isMeta: Any = None
    attachment: Any = None
    isSidechain: Any = None
    agentId: Any = None
    forkedFrom: Any = None
    parent_tool_use_id: Any = None
    isApiErrorMessage: Any = None
    is_api_error_message: Any = None
    costUSD: Any = None
    model: Any = msgspec.UNSET
    cwd: Any = msgspec.UNSET
    tools: Any = msgspec.UNSET
    result: Any = None
    usage: Any = None
    modelUsage: Any = None
    total_cost_usd: Any = None
    duration_ms: Any = None
    num_turns: Any = msgspec.UNSET
    permission_denials: Any = msgspec.UNSET
    is_error: Any = None
    errors: Any = None


def _line_of_any_object(value: dict[str, Any]) -> SessionLine:
    """A line whose parts have types that the tool does not write."""
    line = SessionLine(**{name: value[name] for name in SessionLine.__struct_fields__ if name in value})
    line.uuid, line.parentUuid = record_key(line.uuid), record_key(line.parentUuid)
    message = value.get("message")
    message = message if isinstance(message, dict) else {"content": message}
    id, model = message.get("id"), message.get("model")
    line.message = SessionMessage(
        id if isinstance(id, str) else None,
        model if isinstance(model, str) else None,
        blocks_in(message.get("content")),
        message.get("usage"),
    )
    return line


SESSION_LINES = LineForm(msgspec.json.Decoder(SessionLine).decode, _line_of_any_object)
AGENT_LINES = LineForm(msgspec.json.Decoder(AgentName).decode, partial(msgspec.convert, type=AgentName))
SESSION_NAMES = LineForm(msgspec.json.Decoder(SessionName).decode, partial(msgspec.convert, type=SessionName))
