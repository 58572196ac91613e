"""What a target of `targets.yaml` receives and returns."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from evalwright.errors import TargetError
from evalwright.evaluators.values.json_text import as_text
from evalwright.files.boundary import Boundary
from evalwright.files.images import LARGEST_IMAGE, image_url
from evalwright.files.numbers import is_number

__all__ = ["PromptRequest", "ProviderReply", "read_provider_reply", "reply_in", "text_of"]

_REPORTED = ("cost_usd", "duration_ms")


class PromptRequest(NamedTuple):
    """One question: `prompt` with the files' content, `bare_prompt` only naming them, `chat` as messages.

    A part `{type: image, file: N}` of a message stands for the N-th of the `files`.
    """

    prompt: str
    bare_prompt: str = ""
    chat: Sequence[dict[str, Any]] = ()
    system: str | None = None
    case_id: str = ""
    attempt: int = 0
    files: Sequence[str] = ()
    messages: Sequence[dict[str, Any]] = ()
    """The question as it is written in the file, with tool calls and their results."""
    guidelines: str = ""
    settings: Mapping[str, Any] = {}
    workspace: Path | None = None
    """The folder to work in, which the caller makes and removes."""
    boundary: Boundary | None = None
    """Where the files must lie; needed for images."""

    async def with_images(self) -> list[dict[str, Any]]:
        """The messages with their images inserted. Raises TargetError for an image that no longer exists."""
        return [{**message, "content": await self._parts(message["content"])} for message in self.chat]

    async def _parts(self, content: Any) -> Any:
        if isinstance(content, str):
            return content
        return [await self._image(part["file"]) if part["type"] == "image" else part for part in content]

    async def _image(self, number: int) -> dict[str, Any]:
        path, boundary = self.files[number], self.boundary
        assert boundary is not None
        try:
            url = image_url(await asyncio.to_thread(boundary.read, Path(path), LARGEST_IMAGE + 1))
        except (OSError, ValueError) as error:
            raise TargetError(f"the image {path}: {error}", "bad_image") from None
        return {"type": "image_url", "image_url": {"url": url}}


class ProviderReply(NamedTuple):
    """The answer: `messages` if the provider gave some, and what it reported as used."""

    text: str
    messages: Sequence[dict[str, Any]] = ()
    token_usage: dict[str, Any] | None = None
    cost_usd: float | None = None
    duration_ms: float | None = None
    warnings: Sequence[str] = ()
    kept: str = ""
    """The output file of a command that keeps it."""


def read_provider_reply(text: str) -> ProviderReply:
    """The answer in an output: JSON with `output`, `output_messages` or `text`, else the whole text."""
    try:
        document = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return ProviderReply(text)
    return reply_in(document, text) if isinstance(document, dict) else ProviderReply(text)


def reply_in(found: dict[str, Any], text: str) -> ProviderReply:
    """The answer in an object; if its parts have wrong types, the whole object is the answer's text."""
    if not _fits(found):
        return ProviderReply(text)
    usage = found.get("token_usage")
    numbers = [found.get(name) for name in _REPORTED]
    cost, duration = (None if number is None or not 0 <= number < math.inf else number for number in numbers)
    ignored = [
        f"{name}: {number!r} is ignored: it is negative or infinite"
        for name, number, used in zip(_REPORTED, numbers, (cost, duration), strict=True)
        if number is not None and used is None
    ]
    messages = _messages(found)
    answer = _answer(messages) if messages else found.get("text", text)
    text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    return ProviderReply(text, messages or (), usage, cost, duration, ignored)


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _messages(reply: dict[str, Any]) -> Any:
    """The messages, under AgentV 4's key or the earlier one; an `output` that is not a list is the agent's own."""
    output = reply.get("output")
    return output if isinstance(output, list) else reply.get("output_messages", reply.get("outputMessages"))


def _fits(reply: dict[str, Any]) -> bool:
    """Whether the parts of an output besides its text have the right types; if not, the whole output is text."""
    usage = reply.get("token_usage")
    counts = [usage.get("input"), usage.get("output")] if isinstance(usage, dict) else []
    numbers = [reply.get("cost_usd"), reply.get("duration_ms"), *counts]
    sound = all(n is None or is_number(n) for n in numbers)
    return sound and (usage is None or isinstance(usage, dict)) and _are_messages(_messages(reply))


def _are_messages(value: Any) -> bool:
    """Whether these are messages with a role; an empty list will do."""
    if value is None:
        return True
    return isinstance(value, list) and all(
        isinstance(message, dict) and isinstance(message.get("role"), str) for message in value
    )


def _answer(messages: Sequence[dict[str, Any]]) -> str:
    """The content of the last message of the assistant that has any, even an empty text: then it said nothing."""
    for message in reversed(messages):
        content = message.get("content")
        if message.get("role") == "assistant" and content is not None:
            return text_of(content)
    return ""


def text_of(content: Any) -> str:
    """The content of a message as text: that of its text blocks, or JSON if it has other parts."""
    if isinstance(content, list) and content and all(map(_is_block, content)):
        return "\n".join(_text_of(block) for block in content if block["type"] == "text")
    return as_text(content)


def _is_block(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") in ("text", "image", "file")


def _text_of(block: dict[str, Any]) -> str:
    text = block.get("text", block.get("value"))
    return text if isinstance(text, str) else ""
