"""The turns of an agent in a conversation that is being read."""

from __future__ import annotations

from datetime import datetime

import msgspec

from evalwright.model.trace import ToolCall

__all__ = ["AgentTurn", "joined_text"]


class AgentTurn(msgspec.Struct, gc=False):
    """One turn of the assistant. Its lists are created on demand: most turns have one part."""

    id: str | None = None
    model: str | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    texts: list[str] | None = None
    thinking: list[str] | None = None
    calls: list[ToolCall] | None = None

    def add_text(self, text: str) -> None:
        """Add a text; a message with an empty one has none."""
        if not text:
            return
        if self.texts is None:
            self.texts = [text]
        else:
            self.texts.append(text)

    def think(self, text: str) -> None:
        if self.thinking is None:
            self.thinking = [text]
        else:
            self.thinking.append(text)

    @property
    def text(self) -> str | None:
        return joined_text(self.texts)

    @property
    def empty(self) -> bool:
        return not (self.texts or self.calls or self.thinking)


def joined_text(texts: list[str] | None) -> str | None:
    return None if not texts else texts[0] if len(texts) == 1 else "\n".join(texts)
