"""What a judge thinks aloud before its reply: told apart from the reply, in which nothing of it may decide.

Only what comes first is thinking, and it ends at its first closing mark. A mark further on may be quoted from the
text that is judged: whoever reads the reply then finds several verdicts, and takes none.
"""

from __future__ import annotations

import re

import msgspec

from evalwright.model.chat import ChatReply

__all__ = ["spoken", "thought_and_said"]

_NAMES = "think|thinking|thought|reasoning"
_OPENING = re.compile(rf"\s*(?:<({_NAMES})>|\[(THINK)\])", re.IGNORECASE)
_CLOSING = re.compile(rf"</(?:{_NAMES})>|\[/THINK\]", re.IGNORECASE)
_CHANNEL = re.compile(r"\s*(?:<\|start\|>assistant)?<\|channel\|>(?:analysis|commentary)\b[^<]*<\|message\|>")
_FINAL = re.compile(r"(?:<\|start\|>assistant)?<\|channel\|>final\b[^<]*<\|message\|>")
_OVER = re.compile(r"\s*<\|(?:end|return)\|>\s*\Z")


def spoken(reply: ChatReply) -> ChatReply:
    """The reply with what its text says between marks of thinking moved to `thinking`."""
    thought, said = thought_and_said(reply.text)
    if said == reply.text:
        return reply
    thinking = "\n\n".join(part for part in (reply.thinking, thought) if part)
    return msgspec.structs.replace(reply, text=said, thinking=thinking or None)


def thought_and_said(text: str) -> tuple[str, str]:
    """The thinking at the beginning of a text and the rest.

    Thinking is `<think>...</think>` (also `<thinking>`, `<thought>`, `<reasoning>`, `[THINK]`), everything before a
    closing mark whose opening mark was part of the prompt, or the other channels than `final` of gpt-oss.
    """
    if _CHANNEL.match(text) or _FINAL.match(text):
        return _by_channel(text)
    thoughts = []
    while (opening := _OPENING.match(text)) is not None:
        name = opening[1] or opening[2]
        thought, text = _until(text[opening.end() :], rf"</{name}>" if opening[1] else rf"\[/{name}\]")
        thoughts.append(thought)
    if not thoughts and (closing := _CLOSING.search(text)) is not None and "{" not in text[: closing.start()]:
        thoughts, text = [text[: closing.start()]], text[closing.end() :]
    return "\n\n".join(thought.strip() for thought in thoughts), text


def _until(text: str, mark: str) -> tuple[str, str]:
    """A text up to a mark and what follows it; without the mark it was cut off while thinking."""
    found = re.search(mark, text, re.IGNORECASE)
    return (text, "") if found is None else (text[: found.start()], text[found.end() :])


def _by_channel(text: str) -> tuple[str, str]:
    final = _FINAL.search(text)
    if final is None:
        return text, ""
    return text[: final.start()].strip(), _OVER.sub("", text[final.end() :])
