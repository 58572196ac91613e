"""Turns of a conversation whose parts spans tell apart: items of OpenAI's Responses API, and thinking that is not sent
back to the model."""

from __future__ import annotations

from collections.abc import Iterable

from evalwright.importers.span_messages import Message

__all__ = ["joined_turns", "with_answered_calls", "with_thinking"]


def joined_turns(messages: Iterable[Message]) -> list[Message]:
    """The messages, with thinking, text and calls of the assistant that follow one another as one message.

    A text after a text or a call, and thinking after a call, begin a turn of their own.
    """
    joined: list[Message] = []
    for message in messages:
        if joined and _continues(joined[-1], message):
            joined[-1] = _both(joined[-1], message)
        else:
            joined.append(message)
    return joined


def _continues(before: Message, message: Message) -> bool:
    if before["role"] != "assistant" or message["role"] != "assistant":
        return False
    if before.get("tool_calls"):
        return not message.get("content") and not message.get("reasoning_content")
    return not before.get("content") or not message.get("content")


def _both(before: Message, message: Message) -> Message:
    thoughts = [thought for part in (before, message) if (thought := part.get("reasoning_content"))]
    return {
        **before,
        "content": before.get("content") or message.get("content"),
        "tool_calls": [*(before.get("tool_calls") or ()), *(message.get("tool_calls") or ())],
        **({"reasoning_content": "\n".join(thoughts)} if thoughts else {}),
    }


def with_answered_calls(messages: Iterable[Message]) -> list[Message]:
    """The messages, with results that name no known call as those of the calls before them, in their order.

    OpenLLMetry writes the ids of a response's items for its calls, and the ids of calls for their results. Only where
    there are as many such results as calls is it certain which result is whose.
    """
    answered: list[Message] = []
    calls: list[Message] = []
    results: list[int] = []
    for message in messages:
        if message["role"] == "tool":
            results.append(len(answered))
        else:
            _answer(answered, calls, results)
            calls, results = list(message.get("tool_calls") or ()), []
        answered.append(message)
    _answer(answered, calls, results)
    return answered


def _answer(messages: list[Message], calls: list[Message], results: list[int]) -> None:
    ids = {call.get("id") for call in calls}
    if len(calls) != len(results) or any(
        messages[at].get("name") or messages[at].get("tool_call_id") in ids for at in results
    ):
        return
    for at, call in zip(results, calls, strict=True):
        messages[at] = {**messages[at], "tool_call_id": call.get("id"), "name": call["function"]["name"]}


def with_thinking(messages: Iterable[Message], replies: Iterable[Message]) -> list[Message]:
    """The messages, with the thinking that models had as they replied: most of them are not sent it again.

    Without calls, a reply is known by its text: of several with the same text, it is not certain which thinking is
    whose.
    """
    candidates: dict[tuple[str, ...], set[str]] = {}
    for reply in replies:
        if (thinking := reply.get("reasoning_content")) and (key := _key(reply)):
            candidates.setdefault(key, set()).add(thinking)
    thoughts = {key: thinking for key, (thinking, *others) in candidates.items() if not others}
    return [
        {**message, "reasoning_content": thoughts[key]}
        if not message.get("reasoning_content") and (key := _key(message)) in thoughts
        else message
        for message in messages
    ]


def _key(message: Message) -> tuple[str, ...] | None:
    """What identifies a reply in the conversation: its calls, or its text; None for any other message."""
    if message["role"] != "assistant":
        return None
    ids = [str(call["id"]) for call in message.get("tool_calls") or () if call.get("id")]
    content = message.get("content")
    return tuple(ids) or ((content,) if isinstance(content, str) and content else None)
