"""Makes requests and replies storable: replies get the declared types, and strings are valid UTF-8."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec

from evalwright.errors import EvaluatorError, money
from evalwright.llm.failures import CallFailed
from evalwright.model.chat import ChatReply, ChatRequest, Embedding, Moderation, Purpose

__all__ = [
    "PAUSED",
    "arguments_in",
    "checked_reply",
    "count_of",
    "cut_by_budget",
    "empty_reply",
    "is_truncated",
    "is_unfinished",
    "reading_reply",
    "silent",
    "tool_content",
    "unfinished",
    "writable",
]

R = TypeVar("R", ChatReply, Embedding, Moderation)
W = TypeVar("W", ChatReply, ChatRequest, Embedding, Moderation)

PAUSED = "pause_turn"
"""Finish reason of a reply in the middle of which the provider stopped, while it ran tools itself."""
_TRUNCATED = frozenset({"length", "max_tokens"})
_UNFINISHED = _TRUNCATED | {
    PAUSED,
    *("content_filter", "refusal", "error", "abort"),
    *("incomplete", "failed", "cancelled"),  # OpenAI's Responses API
    "model_context_window_exceeded",  # Anthropic
    "model_length",  # Mistral
    "insufficient_system_resource",  # DeepSeek
    *("safety", "recitation", "blocklist", "prohibited_content", "spii", "other"),  # Gemini
}
"""Finish reasons that name a cause other than the model; unknown ones may be its own word for the end."""
_KEPT = 2000
"""Characters of a cut reply that its error keeps."""
_MOST_TOKENS = 10**12
"""A larger count is a server's mistake, and would use up any budget at once."""


def is_truncated(finish_reason: str | None) -> bool:
    """Whether a reply ended at its token limit."""
    return finish_reason is not None and finish_reason.lower() in _TRUNCATED


def is_unfinished(finish_reason: str | None) -> bool:
    """Whether something other than the model ended a reply: then it is only a part of what it would have said."""
    return finish_reason is not None and finish_reason.lower().partition(":")[0] in _UNFINISHED


@contextmanager
def reading_reply() -> Iterator[None]:
    """Turns any exception that a reply causes in the block into CallFailed `bad_reply`, which is retryable."""
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        message = f"the reply cannot be read: {type(error).__name__}: {str(error)[:200]}"
        raise CallFailed("bad_reply", message, retryable=True) from error


def empty_reply(response: Any, missing: str) -> CallFailed:
    """The failure of a reply with status 200 that lacks what all replies have.

    Gateways such as OpenRouter send the error of the provider behind them this way; its message is then quoted.
    """
    error = getattr(response, "error", None)
    message = error.get("message") if isinstance(error, dict) else error
    why = f": {message!s:.500}" if message else ""
    return CallFailed("bad_reply", f"the reply has no {missing}{why}", retryable=True)


def silent(finish_reason: str | None, limit: int | None = None) -> CallFailed:
    """The failure of a reply without text, tool calls or refusal: an empty text would be judged like an answer."""
    # At its token limit, or because of a filter, the model would end the same way again.
    again = not is_unfinished(finish_reason)
    at = f" at the limit of {limit} tokens, `max_tokens`" if limit and is_truncated(finish_reason) else ""
    return CallFailed("bad_reply", f"the reply has no content (it ended with {finish_reason}{at})", retryable=again)


def unfinished(reply: ChatReply) -> EvaluatorError:
    """The error of a judge whose reply was cut off: the part that arrived may not be its verdict."""
    if is_unfinished(reply.finish_reason) and not is_truncated(reply.finish_reason):
        message = f"the reply is incomplete: it ended with {reply.finish_reason}"
        return EvaluatorError(message, "bad_reply", _words_of(reply), reply.cost_usd)
    at = "of its model" if reply.limit is None else f"of {reply.limit} tokens"
    where = "at" if is_truncated(reply.finish_reason) else "while it was thinking; look at"
    message = f"the reply was cut off {where} the limit {at}; a higher `max_tokens` makes room for it"
    return EvaluatorError(message, "truncated", _words_of(reply), reply.cost_usd)


def cut_by_budget(reply: ChatReply, purpose: Purpose) -> EvaluatorError | CallFailed:
    """The error of a reply that ended at a limit set only by the budget: another reply might go on."""
    cost = "" if reply.cost_usd is None else f" (it cost {money(reply.cost_usd)})"
    message = f"the reply was cut off at {reply.limit:,} tokens, the limit under the budget{cost}: a larger budget, or"
    message += " a `max_tokens` of its own, makes room for it"
    if purpose == "judge":
        return EvaluatorError(message, "cost_limit", _words_of(reply), reply.cost_usd)
    return CallFailed("cost_limit", message)


def _words_of(reply: ChatReply) -> dict[str, str]:
    detail = {"judge_reply": reply.text[:_KEPT], "judge_thinking": (reply.thinking or "")[:_KEPT]}
    return {key: text for key, text in detail.items() if text}


def checked_reply(reply: R) -> R:
    """The reply as `writable` returns it, with its types checked: the official clients do not check what they parse."""
    return msgspec.convert(msgspec.to_builtins(writable(reply)), type(reply))


def writable(reply: W) -> W:
    """A request or reply with escapes for lone surrogates, which can be neither sent nor stored."""
    try:
        msgspec.json.encode(reply)
    except UnicodeEncodeError:
        return msgspec.convert(_encodable(msgspec.to_builtins(reply)), type(reply))
    return reply


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    return [_encodable(item) for item in value] if isinstance(value, list) else value


def arguments_in(text: str | None) -> dict[str, Any]:
    """The arguments of a tool call; a text that is not a JSON object is kept under `_raw`."""
    try:
        arguments = json.loads(text) if text else {}
    except (TypeError, ValueError, RecursionError):
        arguments = None
    return arguments if isinstance(arguments, dict) else {"_raw": text}


def tool_content(content: Any) -> dict[str, Any] | str:
    """What a tool returned: an object or text as it is, anything else as JSON."""
    return content if isinstance(content, str | dict) else json.dumps(content, ensure_ascii=False)


def count_of(usage: Any, name: str) -> int | None:
    """A number of tokens; None for a value that cannot be one, so that no cost is computed from it."""
    value = getattr(usage, name, None)
    return value if type(value) is int and 0 <= value <= _MOST_TOKENS else None
