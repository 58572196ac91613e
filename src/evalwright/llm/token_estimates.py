"""How many tokens a call uses: the most it can, for the budget, and about how many, for the pace of calls."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from evalwright.llm.fitting import thinking_budget
from evalwright.model.chat import ChatRequest

__all__ = ["MostTokens", "likely_tokens", "most_of"]

_LIMIT_UNDER_BUDGET = 16_384
"""Tokens of a reply to a request without a limit if there is a budget, which needs one to be kept."""
_SHORTEST = 128
"""Replies with fewer tokens are not worth the call: a limit is not lowered further."""
_BYTES_A_TOKEN = 4
"""Roughly, for English text."""
_TOKENS_AN_IMAGE = 1600
"""Roughly what OpenAI and Anthropic count for a large image, whatever its size in bytes."""
_LIKELY_OUTPUT = 1024
"""Tokens assumed for a reply to a request without `max_tokens`, where this only determines the pace of calls."""
_AROUND_A_MESSAGE = 16
"""Maximum number of tokens by which providers mark where a message begins and ends."""
_FOR_TOOLS = 600
"""Tokens of the instructions that providers add if there are tools or a format for the reply."""
_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


class MostTokens(NamedTuple):
    """The most that a call may use."""

    token_input: int
    token_output: int = 0
    """The limit of each of its replies."""
    least_output: int = 0
    """What that limit may be lowered to; the same number if the user chose it."""
    choices: int = 1
    """Replies that one call asks for."""


def most_of(request: ChatRequest, sent: int | None) -> MostTokens:
    """The most that a call may use if its reply has the limit `sent`; None if it has none so far."""
    extra = {**request.extra, **(request.extra.get("extra_body") or {})}
    own_limit = max((limit for name in _LIMITS if isinstance(limit := extra.get(name), int)), default=None)
    choices = count if isinstance(count := extra.get("n"), int) and count > 0 else 1
    thinking = thinking_budget(request)
    limit = max(own_limit or 0, sent or 0) or _LIMIT_UNDER_BUDGET + thinking
    is_ours = own_limit is None and (request.max_tokens is None or request.default_limit is True)
    least = min(limit, _SHORTEST + thinking) if is_ours else limit
    return MostTokens(_most_input(request), limit, least, choices)


def likely_tokens(request: ChatRequest, most_output: int | None = None) -> tuple[int, int]:
    """About how many tokens a call sends and receives, with at most `most_output`, else the request's own limit."""
    text, images = _text_and_images(request)
    most_output = request.max_tokens if most_output is None else most_output
    tokens = -(-text // _BYTES_A_TOKEN) + images * _TOKENS_AN_IMAGE
    return tokens, _LIKELY_OUTPUT if most_output is None else most_output


def _most_input(request: ChatRequest) -> int:
    """More tokens than a tokenizer can produce from what is sent, as none is shorter than a byte."""
    text, images = _text_and_images(request)
    calls = [message.tool_calls for message in request.messages if message.tool_calls]
    others = [shown for shown in (calls, request.tools, request.schema, request.extra) if shown]
    text += len(msgspec.json.encode(others)) if others else 0
    around = _AROUND_A_MESSAGE * (len(request.messages) + 1) + (_FOR_TOOLS if request.tools or request.schema else 0)
    return text + around + images * _TOKENS_AN_IMAGE


def _text_and_images(request: ChatRequest) -> tuple[int, int]:
    """The bytes of the texts, and the number of images."""
    contents = (message.content for message in request.messages)
    parts = [part for content in contents for part in (content if isinstance(content, list) else [content])]
    texts = [request.system or "", *(part for part in parts if not _is_image(part))]
    return sum(len(str(text).encode(errors="replace")) for text in texts), len(parts) - len(texts) + 1


def _is_image(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") in ("image", "image_url")
