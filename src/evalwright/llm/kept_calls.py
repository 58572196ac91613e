"""An evaluator's model calls and their replies, kept for its result (`detail.judge_calls`).

The caller of an evaluator opens a list with `keeping()`; calls made in its context, including tasks and threads that
carry the context, add themselves. Outside such a block nothing is kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import msgspec

from evalwright.llm.thinking import split_thinking
from evalwright.model.chat import ChatMessage, ChatReply, ChatRequest

__all__ = ["KEPT_BYTES", "KeptCall", "keeping", "kept_call", "questions_of"]

KEPT_BYTES = 256 * 1024
"""UTF-8 bytes of each text that are kept."""

_calls: ContextVar[list[dict[str, Any]] | None] = ContextVar("evalwright_kept_calls", default=None)


@contextmanager
def keeping() -> Iterator[list[dict[str, Any]]]:
    """The calls of this context, in the order in which they began; filled while the block runs."""
    calls: list[dict[str, Any]] = []
    token = _calls.set(calls)
    try:
        yield calls
    finally:
        _calls.reset(token)


class KeptCall:
    """One call while it is being made."""

    def __init__(self, entry: dict[str, Any] | None, mask: Callable[[str], str]) -> None:
        self._entry, self._mask, self._begun = entry, mask, time.monotonic()

    def note_output(self, text: str, cost_usd: float | None = None) -> str:
        """The output of a program that replaces a model: kept, and returned without the thinking before it."""
        thought, answer = split_thinking(text)
        self._note_reply(answer, cost_usd)
        if thought and self._entry is not None:
            self._entry["thinking"] = _masked_and_cut(thought, self._mask)
        return answer

    def _note_reply(self, text: str, cost_usd: float | None) -> None:
        if self._entry is not None:
            latency = int((time.monotonic() - self._begun) * 1000)
            self._entry |= {
                "reply": _masked_and_cut(text, self._mask),
                "cost_usd": cost_usd,
                "latency_ms": latency,
                "error": None,
            }

    def failed(self, kind: str, message: str) -> None:
        if self._entry is not None:
            self._entry["latency_ms"] = int((time.monotonic() - self._begun) * 1000)
            self._entry["error"] = {"type": kind, "message": _masked_and_cut(message, self._mask)}

    def replied(self, reply: ChatReply) -> None:
        """Note the reply; a refusal is a reply, too."""
        if self._entry is None:
            return
        self._note_reply(reply.text or reply.refusal or "", reply.cost_usd)
        self._entry |= {"cached": reply.cached, "usage": _known_fields(reply.usage), "latency_ms": reply.latency_ms}
        further = {
            "thinking": reply.thinking,
            "tool_calls": msgspec.to_builtins(reply.tool_calls),
            "finish_reason": reply.finish_reason,
            "refused": reply.refusal is not None,
        }
        self._entry |= {key: _masked_and_cut(value, self._mask) for key, value in further.items() if value}


@contextmanager
def kept_call(
    model: str, messages: Sequence[Mapping[str, Any]] | Callable[[], Any], mask: Callable[[str], str] = str
) -> Iterator[KeptCall]:
    """One call of a model, or of a program in its place; `messages` are read only if calls are kept.

    An exception of the block is the call's error. Texts beyond `KEPT_BYTES` are cut, and say how long they were.
    """
    calls = _calls.get()
    if calls is None:
        yield KeptCall(None, mask)
        return
    listed = messages() if callable(messages) else [dict(message) for message in messages]
    entry: dict[str, Any] = {"model": model, "messages": _masked_and_cut(listed, mask), "reply": None, "cached": False}
    entry |= {"usage": {}, "cost_usd": None, "latency_ms": None, "error": {"type": "unfinished", "message": ""}}
    calls.append(entry)  # before the reply: concurrent calls keep the order in which they began
    kept = KeptCall(entry, mask)
    try:
        yield kept
    except BaseException as error:  # a cancelled call, too, was sent and may be billed
        kind = getattr(error, "type", None) or type(error).__name__
        kept.failed(str(kind), str(error))
        raise


def questions_of(request: ChatRequest) -> list[dict[str, Any]]:
    """The messages of a request, the system's prompt first."""
    system = [ChatMessage("system", request.system)] if request.system else []
    return [_known_fields(message) for message in (*system, *request.messages)]


def _known_fields(value: Any) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(value)
    return {key: field for key, field in fields.items() if field not in (None, [])}


def _masked_and_cut(value: Any, mask: Callable[[str], str]) -> Any:
    """Plain data with every string masked and cut."""
    if isinstance(value, str):
        return _cut(mask(value))
    if isinstance(value, Mapping):
        return {str(key): _masked_and_cut(item, mask) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_masked_and_cut(item, mask) for item in value]
    return value


def _cut(text: str) -> str:
    if len(text) <= KEPT_BYTES // 4:  # a character takes at most four bytes
        return text
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= KEPT_BYTES:
        return text
    return f"{data[:KEPT_BYTES].decode('utf-8', 'ignore')}… [cut: {len(data):,} bytes in full]"
