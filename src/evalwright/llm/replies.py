"""What is sent and what comes back can be kept: replies have the declared shape, and every text can be written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec

from evalwright.llm.failures import CallFailed
from evalwright.model.chat import ChatReply, ChatRequest, Embedding, Moderation

__all__ = ["count_of", "reading", "sound", "writable"]

R = TypeVar("R", ChatReply, Embedding, Moderation)
W = TypeVar("W", ChatReply, ChatRequest, Embedding, Moderation)

_MOST_TOKENS = 10**12


@contextmanager
def reading() -> Iterator[None]:
    """Raises CallFailed `bad_reply`, worth another attempt, where the code inside meets what it does not expect."""
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        message = f"the reply cannot be read: {type(error).__name__}: {str(error)[:200]}"
        raise CallFailed("bad_reply", message, again=True) from error


def sound(reply: R) -> R:
    """The reply, its types checked, and `writable`."""
    return msgspec.convert(msgspec.to_builtins(writable(reply)), type(reply))


def writable(said: W) -> W:
    """A request or reply without halves of surrogate pairs, which nothing can send or keep: visible escapes instead."""
    try:
        msgspec.json.encode(said)
    except UnicodeEncodeError:
        return msgspec.convert(_encodable(msgspec.to_builtins(said)), type(said))
    return said


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    return [_encodable(item) for item in value] if isinstance(value, list) else value


def count_of(usage: Any, name: str) -> int | None:
    """A number of tokens; None for what cannot be one, so that it is never paid for."""
    value = getattr(usage, name, None)
    return value if type(value) is int and 0 <= value <= _MOST_TOKENS else None
