"""Content in the form of Anthropic's messages: text, or a list of blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from evalwright.importers.agent_turns import AgentTurn
from evalwright.importers.record_values import described, dictionaries
from evalwright.importers.sources import ImportNotes
from evalwright.importers.transcript import Transcript, arguments_of

__all__ = [
    "Content",
    "ContentBlock",
    "assistant_blocks",
    "block_text",
    "blocks_in",
    "lost_with",
    "texts_of",
    "thoughts_in",
    "user_blocks",
]

_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")

ReportMistake = Callable[[str], None]


def texts_of(content: Any, notes: ImportNotes) -> str:
    """Content as text: lists of text blocks joined by line ends, other blocks as `[type]`."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    return "\n".join([block_text(part, notes) for part in parts])


def thoughts_in(summary: Any, content: Any) -> Iterator[str]:
    """The texts of an item of reasoning: of its summary, or, as open models have none, of the reasoning itself."""
    for part in [*dictionaries(summary)] or dictionaries(content):
        yield str(part.get("text", ""))


def block_text(block: Any, notes: ImportNotes) -> str:
    if isinstance(block, str):
        return block
    if isinstance(block, dict):
        if isinstance(block.get("text"), str):
            return str(block["text"])
        kind = str(block.get("type", "object"))
        notes.lose(lost_with(kind))
        return f"[{kind}]"
    return str(block)


def lost_with(kind: str) -> str:
    """What is lost with a block of which only the type is kept, in the plural."""
    return "images" if kind in ("image", "input_image", "image_url") else f"blocks of type {kind!r}"


class ContentBlock(msgspec.Struct, gc=False):
    """The fields of a block that are read."""

    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    id: str | None = None
    name: str | None = None
    input: Any = None
    tool_use_id: str | None = None
    content: Any = None
    is_error: Any = None


Content = str | list[ContentBlock] | None


def blocks_in(content: Any) -> Any:
    """Content as blocks or text, whatever the blocks look like; anything else is unchanged."""
    return [_block(block) for block in content] if isinstance(content, list) else content


def _block(value: Any) -> ContentBlock:
    if not isinstance(value, dict):
        return ContentBlock("text", str(value))
    try:
        return msgspec.convert(value, ContentBlock)
    except msgspec.ValidationError:
        texts = {key: None if value.get(key) is None else str(value[key]) for key in _TEXTS}
        return ContentBlock(**texts, **{key: value.get(key) for key in ("input", "content", "is_error")})


_TEXTS = ("type", "text", "thinking", "id", "name", "tool_use_id")


def _shown_block(block: ContentBlock, notes: ImportNotes) -> str:
    return block.text if block.text is not None else block_text({"type": block.type or "object"}, notes)


def assistant_blocks(talk: Transcript, turn: AgentTurn, content: Content, notes: ImportNotes, at: Any = None) -> None:
    """Append the blocks of a message to its turn, except blocks that the turn already has."""
    if isinstance(content, str):
        content = [ContentBlock("text", content)]
    for block in content if isinstance(content, list) else ():
        kind = block.type
        if kind == "text":
            if block.text and block.text not in (turn.texts or ()):
                turn.add_text(block.text)
        elif kind in _CALLS:
            if block.id is None or not talk.knows(block.id):
                name, arguments = "tool" if block.name is None else block.name, block.input
                talk.calls_in(
                    turn, name, block.id, arguments if type(arguments) is dict else arguments_of(arguments), at
                )
        elif kind == "thinking":
            if block.thinking and block.thinking not in (turn.thinking or ()):
                turn.think(block.thinking)
        elif kind is not None and kind.endswith("_tool_result"):
            _result(talk, block, notes, at)
        elif kind == "redacted_thinking":
            notes.lose("blocks of redacted thinking")
        else:
            turn.add_text(_shown_block(block, notes))


def user_blocks(
    talk: Transcript, content: Content, notes: ImportNotes, report: ReportMistake, at: Any = None,
    doubt: ReportMistake | None = None, *, asks: bool = True,
) -> None:  # fmt: skip
    """Results of tools as messages of their own, in their order, then what the user wrote.

    A result without its call is a mistake; with `doubt`, it is kept and reported there. With `asks` false, a tool wrote
    the text in the user's name.
    """
    if not isinstance(content, list):
        if content is None or isinstance(content, str):
            talk.user(content or "", asks=asks)
        else:
            report(f"expected text or blocks, found {described(content)}")
        return
    texts = []
    for block in content:
        if block.type == "tool_result":
            if not talk.knows(block.tool_use_id):
                (doubt or report)(f"the result of a missing call: {block.tool_use_id!r}")
                if doubt is None:
                    continue
            _result(talk, block, notes, at)
        else:
            texts.append(block.text if block.text is not None else _shown_block(block, notes))
    if texts:
        talk.user(texts[0] if len(texts) == 1 else "\n".join(texts), asks=asks)


def _result(talk: Transcript, block: ContentBlock, notes: ImportNotes, at: Any) -> None:
    content = block.content
    shown = content if isinstance(content, (str, dict)) else texts_of(content, notes)
    talk.result(block.tool_use_id, shown, at=at, failed=bool(block.is_error))
