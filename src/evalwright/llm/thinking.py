"""What a judge thinks aloud before its reply, separated from the reply so that it cannot decide anything.

Only what comes first is thinking, and it ends at its first closing mark. A later mark may be quoted from the judged
text: the reader of the reply then finds several verdicts, and accepts none.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from evalwright.model.chat import ChatReply

__all__ = ["content_and_thinking", "ends_thinking", "split_thinking", "spoken"]

_TAGS = ("think", "thinking", "thought", "reasoning", "seed:think")
_MARKS = {
    **{f"<{tag}>": f"</{tag}>" for tag in _TAGS},
    "[think]": "[/think]",
    "◁think▷": "◁/think▷",
    "<|start_thinking|>": "<|end_thinking|>",
    "<|begin_of_thought|>": "<|end_of_thought|>",
}
"""Opening and closing marks, in lower case: of DeepSeek and Qwen, Seed, Mistral, Kimi, Cohere and OpenThoughts."""
_FENCE = r"```\w*[ \t]*\n?\s*"
_OPENING = re.compile(rf"\s*({_FENCE})?({'|'.join(map(re.escape, _MARKS))})", re.IGNORECASE)
_FENCED = re.compile(rf"\s*```(?:{'|'.join(_TAGS)})[ \t]*\n(.*?)(?:\n```[ \t]*(?:\n|\Z)|\Z)", re.IGNORECASE | re.DOTALL)
_FENCE_END = re.compile(r"\s*```[ \t]*(?:\n|\Z)")
_CLOSING = re.compile("|".join(map(re.escape, _MARKS.values())), re.IGNORECASE)
_CLOSED = re.compile(rf"(?:{_CLOSING.pattern})\s*(?:```\s*)?\Z", re.IGNORECASE)
_HEAD = r"\b(?:[^<]|<\|constrain\|>)*<\|message\|>"
_CHANNEL = re.compile(rf"\s*(?:<\|start\|>assistant)?<\|channel\|>(?:analysis|commentary){_HEAD}")
_FINAL = re.compile(rf"(?:<\|start\|>assistant)?<\|channel\|>final{_HEAD}")
_OVER = re.compile(r"\s*<\|(?:end|return)\|>\s*\Z")
_BARE_CHANNELS = re.compile(r"\s*analysis(.*?)assistantfinal", re.DOTALL)
"""The channels of gpt-oss as printed by servers that leave out special tokens."""


def spoken(reply: ChatReply) -> ChatReply:
    """The reply with the part of its text between marks of thinking moved to `thinking`."""
    thought, text = split_thinking(reply.text)
    if text == reply.text:
        return reply
    thinking = "\n\n".join(part for part in (reply.thinking, thought) if part)
    return msgspec.structs.replace(reply, text=text, thinking=thinking or None)


def split_thinking(text: str) -> tuple[str, str]:
    """The thinking at the beginning of a text and the rest.

    Thinking is `<think>...</think>` and the like, also at the beginning of a code fence or in one with that label,
    everything before a closing mark whose opening mark was part of the prompt, and the channels of gpt-oss other than
    `final`. Without its closing mark the text was cut off while thinking, and there is no rest.
    """
    if _CHANNEL.match(text) or _FINAL.match(text):
        return _by_channel(text)
    if (bare := _BARE_CHANNELS.match(text)) is not None:
        return bare[1].strip(), text[bare.end() :]
    thoughts = []
    while (split := _fenced_thinking(text) or _marked_thinking(text)) is not None:
        thought, text = split
        thoughts.append(thought)
    if not thoughts and (closing := _CLOSING.search(text)) is not None and "{" not in text[: closing.start()]:
        thoughts, text = [text[: closing.start()]], text[closing.end() :]
    return "\n\n".join(thought.strip() for thought in thoughts), text


def ends_thinking(text: str, rest: str) -> bool:
    """Whether a text that consists of thinking and `rest` broke off while still thinking."""
    if text == rest or rest.strip():
        return False
    in_fence = _FENCED.match(text) is not None
    return not (text.rstrip().endswith("\n```") if in_fence else _CLOSED.search(text))


def content_and_thinking(content: Any) -> tuple[Any, str | None]:
    """The text of a message whose content comes in parts, and the thinking among them (Mistral's reasoning models).

    Without any text the content is None: an empty text would be an answer.
    """
    if not isinstance(content, list):
        return content, None
    texts = [part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)]
    thoughts = [part["thinking"] for part in content if isinstance(part, dict) and part.get("type") == "thinking"]
    inner = [part["text"] if isinstance(part, dict) else part for thought in thoughts for part in thought]
    return "".join(texts) if texts else None, "".join(inner) or None


def _fenced_thinking(text: str) -> tuple[str, str] | None:
    match = _FENCED.match(text)
    return None if match is None else (match[1], text[match.end() :])


def _marked_thinking(text: str) -> tuple[str, str] | None:
    opening = _OPENING.match(text)
    if opening is None:
        return None
    closing = re.compile(re.escape(_MARKS[opening[2].lower()]), re.IGNORECASE).search(text, opening.end())
    if closing is None:
        return text[opening.end() :], ""
    answer = text[closing.end() :]
    if opening[1] is None:
        return text[opening.end() : closing.start()], answer
    # the fence was for the thinking alone, or surrounds the reply
    ended = _FENCE_END.match(answer)
    rest = answer[ended.end() :] if ended is not None else opening[1] + answer.lstrip()
    return text[opening.end() : closing.start()], rest


def _by_channel(text: str) -> tuple[str, str]:
    final = _FINAL.search(text)
    if final is None:
        return text, ""
    return text[: final.start()].strip(), _OVER.sub("", text[final.end() :])
