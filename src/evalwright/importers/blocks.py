"""Content in the form of Anthropic's messages: text, or a list of blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from evalwright.importers.recordings import described
from evalwright.importers.sources import ImportNotes
from evalwright.importers.transcript import AgentTurn, Tokens, Transcript, arguments_of

__all__ = ["assistant_blocks", "block_text", "dictionaries", "texts_of", "tokens_of", "user_blocks"]

_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")

Complain = Callable[[str], None]


def texts_of(content: Any, notes: ImportNotes) -> str:
    """Content as text: lists of text blocks joined by line ends, other blocks as `[type]`."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    return "\n".join(block_text(part, notes) for part in parts)


def block_text(block: Any, notes: ImportNotes) -> str:
    if isinstance(block, str):
        return block
    if isinstance(block, dict):
        if isinstance(block.get("text"), str):
            return str(block["text"])
        kind = str(block.get("type", "object"))
        notes.lose("images" if kind in ("image", "input_image", "image_url") else f"blocks of type {kind!r}")
        return f"[{kind}]"
    return str(block)


def assistant_blocks(talk: Transcript, turn: AgentTurn, content: Any, notes: ImportNotes, at: Any = None) -> None:
    """Append the blocks of a message to its turn; a block that the turn has already is not doubled."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    for block in blocks if isinstance(blocks, list) else []:
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "text":
            text = str(block.get("text", ""))
            if text and text not in turn.texts:
                turn.texts.append(text)
        elif kind == "thinking":
            thought = str(block.get("thinking", ""))
            if thought and thought not in turn.thinking:
                turn.thinking.append(thought)
        elif kind in _CALLS:
            id = block.get("id") if isinstance(block.get("id"), str) else None
            if id is None or not talk.knows(id):
                talk.calls_in(turn, str(block.get("name", "tool")), id, arguments_of(block.get("input")), at)
        elif isinstance(kind, str) and kind.endswith("_tool_result"):
            _result(talk, block, notes, at)
        elif kind != "redacted_thinking":
            turn.texts.append(block_text(block, notes))


def user_blocks(
    talk: Transcript, content: Any, notes: ImportNotes, complain: Complain, at: Any = None,
    *, doubt: Complain | None = None,
) -> None:  # fmt: skip
    """Results of tools as messages of their own, in their order, then what the user wrote.

    The result of a call that is not there is a mistake; where there is somebody to `doubt`, it is kept and told.
    """
    if content is None or isinstance(content, str):
        talk.user(content or "")
        return
    if not isinstance(content, list):
        complain(f"expected text or blocks, found {described(content)}")
        return
    said = []
    for block in content:
        if isinstance(block, dict) and block.get("type") == "tool_result":
            if not talk.knows(block.get("tool_use_id")):
                (doubt or complain)(f"the result of a call that is not there: {block.get('tool_use_id')!r}")
                if doubt is None:
                    continue
            _result(talk, block, notes, at)
        else:
            said.append(block_text(block, notes))
    if said:
        talk.user("\n".join(said))


def _result(talk: Transcript, block: dict[str, Any], notes: ImportNotes, at: Any) -> None:
    content = block.get("content")
    shown = content if isinstance(content, dict) else texts_of(content, notes)
    talk.result(block.get("tool_use_id"), shown, at=at, failed=bool(block.get("is_error")))


def tokens_of(usage: Any) -> Tokens:
    """Usage as Anthropic counts it: what is cached is not in `input_tokens`."""
    if not isinstance(usage, dict):
        return Tokens()
    written, read = _number(usage, "cache_creation_input_tokens"), _number(usage, "cache_read_input_tokens")
    plain = _number(usage, "input_tokens")
    known = [part for part in (plain, written, read) if part is not None]
    return Tokens(sum(known) if known else None, _number(usage, "output_tokens"), None, read, written)


def _number(usage: dict[str, Any], key: str) -> int | None:
    value = usage.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def dictionaries(value: Any) -> Iterator[dict[str, Any]]:
    """The objects of a list."""
    for item in value if isinstance(value, list) else []:
        if isinstance(item, dict):
            yield item
