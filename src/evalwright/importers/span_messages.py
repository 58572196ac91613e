"""Messages of any provider in the form of OpenAI's chat completions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from evalwright.importers.call_payloads import chat_message
from evalwright.importers.record_values import dictionaries, too_deep

__all__ = [
    "Message",
    "attachments",
    "content_of",
    "has_more_than_texts",
    "json_content",
    "plain_messages",
    "text_content",
]

_ROLES = {"human": "user", "ai": "assistant", "model": "assistant", "developer": "system", "function": "tool"}
_KNOWN_ROLES = ("system", "user", "assistant", "tool")
_MESSAGE_KEYS = {"role", "content", "contents", "parts", "tool_calls", "function_call_name"}
Message = dict[str, Any]
"""One message of chat completions."""


def plain_messages(messages: Iterable[Any], role: str) -> list[Message]:
    """Messages in the form of OpenAI's chat completions; `role` is for messages without one."""
    return [plain_message for message in messages for plain_message in _plain_messages(message, role)]


def has_more_than_texts(content: Any) -> bool:
    """Whether a message's content has calls, results or thinking among its parts, as Bedrock and Vercel's AI SDK put
    them there; so does Anthropic, whose messages are a format of their own."""
    parts = [*dictionaries(content)]
    kinds = ("tool-call", "tool-result", *_THINKING)
    return any(part.get("type") in kinds or not part.keys().isdisjoint((_REASONING, *_WRAPPED)) for part in parts)


def attachments(content: Any) -> Iterator[str]:
    """The types of the parts of a message's content of which the plain message has only the type."""
    for part in map(_unwrapped, dictionaries(content)):
        if _type(part) not in (*_SPOKEN, *_THINKING, *_CALLS, *_RESULTS):
            yield _type(part)


def content_of(messages: Iterable[Message], role: str) -> str | None:
    """The last text among the messages of a role; None without any."""
    texts = [m["content"] for m in messages if m["role"] == role and isinstance(m.get("content"), str) and m["content"]]
    return texts[-1] if texts else None


def text_content(value: Any, role: str) -> str | None:
    """The text in an input or output of an application: a string, messages, or an object with a single string.

    None for a message without a text of this role.
    """
    if (message := _sole_message(value)) is not None:
        return content_of(plain_messages([message], role), role)
    if isinstance(value, dict) and isinstance(value.get("messages"), list):
        value = value["messages"]
    if isinstance(value, list) and value and all(isinstance(item, dict) or _is_pair(item) for item in value):
        content = content_of(plain_messages(value, role), role)
        if content is not None:
            return content
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, dict):
        texts = [item for item in value.values() if isinstance(item, str)]
        if len(texts) == 1:
            return texts[0]
    return msgspec.json.encode(value).decode()


def _sole_message(value: Any) -> Message | None:
    """The message that a value is, or that is all it has; None for anything else."""
    if isinstance(value, dict) and len(value) == 1:
        [value] = value.values()
    message = chat_message(value) if isinstance(value, dict) else None
    if message is None or _ROLES.get(message["role"], message["role"]) not in _KNOWN_ROLES:
        return None
    return message if message["content"] is not None or not message.keys().isdisjoint(("tool_calls", "parts")) else None


def json_content(value: Any) -> Any:
    """The value of a JSON text; any other value as it is."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "[", '"'):
        return value
    try:
        parsed = msgspec.json.decode(value)
    except (ValueError, RecursionError):
        return value
    return value if too_deep(parsed) else parsed


def _is_pair(message: Any) -> bool:
    """Whether a message is a role and a text, as LangChain lets programs write them."""
    if not isinstance(message, list) or len(message) != 2 or not all(isinstance(part, str) for part in message):
        return False
    return _ROLES.get(message[0], message[0]) in _KNOWN_ROLES


def _plain_messages(message: Any, default: str) -> list[Message]:
    original, message = message, json_content(message)
    if isinstance(message, dict) and isinstance(message.get("message"), dict):
        message = message["message"]
    if _is_pair(message):
        message = dict(zip(("role", "content"), message, strict=True))
    if isinstance(message, dict) and "role" not in message:
        message = chat_message(message) or message
    if not isinstance(message, dict) or not _MESSAGE_KEYS & message.keys():
        text = original if isinstance(original, str) else msgspec.json.encode(original).decode()
        return [{"role": default, "content": text}]
    stated = str(message.get("role") or default).lower()
    role = _ROLES.get(stated, stated)
    role = role if role in _KNOWN_ROLES else default
    parts = _parts(message)
    plain: Message = {"role": role, "content": _text_of_parts(parts), "tool_calls": _calls(message, parts)}
    thinking = [text for part in parts if _type(part) in _THINKING for text in _thoughts(part)]
    if thinking:
        plain["reasoning_content"] = "\n".join(thinking)
    results = [_result(part) for part in parts if _type(part) in _RESULTS]
    if role == "tool" and not results:
        return [_result({**message, "response": plain["content"]})]
    return [*results] if results and plain["content"] is None else [*results, plain]


_THINKING = ("reasoning", "thinking")
_THOUGHTS = ("content", "thinking", "text", "reasoning")
_RESULTS = ("tool_call_response", "server_tool_call_response", "tool_result", "tool-result")
_CALLS = ("tool_call", "server_tool_call", "tool_use", "server_tool_use", "mcp_tool_use", "tool-call")
"""Types of parts in OpenTelemetry's conventions, Anthropic's API and Vercel's AI SDK."""
_WRAPPED = {
    "functionCall": "tool_call",
    "function_call": "tool_call",
    "toolUse": "tool_call",
    "functionResponse": "tool_result",
    "function_response": "tool_result",
    "toolResult": "tool_result",
}
"""Keys of parts that hold a call or a result in place of a type, in the APIs of Gemini and Bedrock."""
_SPOKEN = ("text", "refusal", "input_text", "output_text")
_ATTACHED = ("image", "document", "video")
_HELD = ("source", "data", "uri", "file_id", "image_url", "input_audio", "file", "image", "modality")
"""Keys of attachments, which tell them from data that have a `type` of their own."""
_REASONING = "reasoningContent"
_UNTYPED = {"text": str, **dict.fromkeys((_REASONING, *_ATTACHED, *_WRAPPED), dict)}
"""Keys, one of which a part without a type has, with the types of their values."""


def _parts(message: Message) -> list[dict[str, Any]]:
    """The parts of a message, whatever key they are under."""
    parts: list[dict[str, Any]] = []
    for key in ("parts", "contents") if _is_repeated(message) else ("parts", "content", "contents"):
        value = json_content(message.get(key)) if key != "content" else _part_list(message.get(key))
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, str):
                parts.append({"type": "text", "content": part})
            elif isinstance(part, dict):
                inner = part.get("message_content")
                part = inner if isinstance(inner, dict) else part
                written = _written_item(part) if message.get("role") in ("assistant", "ai") else None
                parts.append(_unwrapped(part if written is None else written))
    return parts


def _written_item(part: dict[str, Any]) -> dict[str, Any] | None:
    """The item of a response that OpenLLMetry writes as the text of a part, as it knows no parts of LangChain's but
    texts; None for any other part."""
    text = part.get("content") if _type(part) == "text" else None
    item = json_content(text) if isinstance(text, str) and text.startswith("{") else None
    return item if isinstance(item, dict) and _item(item) is not None else None


def _is_repeated(message: Message) -> bool:
    """Whether the content of a message is text that its `contents` say again, as OpenInference writes it for the Agents
    SDK."""
    content, parts = message.get("content"), json_content(message.get("contents"))
    if not isinstance(content, str) or not isinstance(parts, list):
        return False
    texts = [part["text"] for part in _parts({"contents": parts}) if isinstance(part.get("text"), str)]
    return content in (*texts, "".join(texts), "\n".join(texts))


def _unwrapped(part: dict[str, Any]) -> dict[str, Any]:
    if (item := _item(part)) is not None:
        return item
    if part.get("thought") is True:  # as Gemini marks them
        return {"type": "thinking", **part}
    if isinstance(reasoning := part.get(_REASONING), dict):  # of Bedrock
        text = reasoning.get("reasoningText")
        return {"type": "thinking", **(text if isinstance(text, dict) else {})}
    if len(part) == 1 and (attached := next(iter(part))) in _ATTACHED:
        return {"type": attached}
    wrapped = next(((kind, part[key]) for key, kind in _WRAPPED.items() if isinstance(part.get(key), dict)), None)
    return part if wrapped is None else {**wrapped[1], "type": wrapped[0]}


def _item(item: dict[str, Any]) -> dict[str, Any] | None:
    """The part that an item of OpenAI's Responses API is, which LangChain has among its parts; None for any other."""
    kind = item.get("type")
    if kind in ("function_call", "custom_tool_call") and {"call_id", "name"} <= item.keys():
        arguments = item.get("arguments", item.get("input"))
        return {"type": "tool_call", "id": item["call_id"], "name": item["name"], "arguments": arguments}
    if kind == "reasoning" and isinstance(item.get("summary"), list):
        return {"type": kind, "text": "\n".join(summary["text"] for summary in item["summary"] if _is_summary(summary))}
    return None


def _part_list(value: Any) -> Any:
    """Content that is text stays text, JSON or not, unless it is a list of parts."""
    content = json_content(value)
    if isinstance(value, str) and not (isinstance(content, list) and content and all(map(_is_part, content))):
        return value
    return content


def _is_part(item: Any) -> bool:
    """Whether an item of a list is a part of a message; those of Bedrock and Gemini have no type but one key."""
    if not isinstance(item, dict):
        return False
    if "type" not in item:
        return len(item) == 1 and any(isinstance(item.get(key), kind) for key, kind in _UNTYPED.items())
    kind = item["type"]
    if kind in _SPOKEN:
        return isinstance(item.get("text", item.get("content")), str)
    return kind in (*_THINKING, *_RESULTS, *_CALLS) or not item.keys().isdisjoint(_HELD)


def _type(part: dict[str, Any]) -> str:
    return str(part.get("type") or "text")


def _thoughts(part: dict[str, Any]) -> list[str]:
    """The text of a part with thinking; OpenLLMetry writes the summaries of a response as JSON."""
    text = next((part[key] for key in _THOUGHTS if isinstance(part.get(key), str) and part[key]), None)
    summaries = json_content(text)
    if isinstance(summaries, list) and summaries and all(map(_is_summary, summaries)):
        return [summary["text"] for summary in summaries]
    return [] if text is None else [text]


def _is_summary(item: Any) -> bool:
    return isinstance(item, dict) and item.get("type") == "summary_text" and isinstance(item.get("text"), str)


def _text_of_parts(parts: list[dict[str, Any]]) -> str | None:
    texts = []
    for part in parts:
        kind = _type(part)
        if kind in (*_THINKING, *_RESULTS, *_CALLS):
            continue
        text = next((part[key] for key in ("content", "text") if isinstance(part.get(key), str)), None)
        texts.append(text if text is not None and kind in _SPOKEN else f"[{kind}]")
    return "\n".join(texts) if texts else None


def _calls(message: Message, parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    listed = json_content(message.get("tool_calls"))
    calls = [*(listed if isinstance(listed, list) else ()), *(part for part in parts if _type(part) in _CALLS)]
    if isinstance(legacy := message.get("function_call_name"), str):
        calls.append({"name": legacy, "arguments": message.get("function_call_arguments_json")})
    read_calls = [read_call for call in calls if (read_call := _call(call)) is not None]
    # LangChain repeats the calls in an answer of Anthropic's beside its parts
    return [*{one["id"] or number: one for number, one in enumerate(read_calls)}.values()]


def _call(call: Any) -> dict[str, Any] | None:
    if isinstance(call, dict) and isinstance(call.get("tool_call"), dict):
        call = call["tool_call"]
    if not isinstance(call, dict):
        return None
    inner = call.get("function")
    function = inner if isinstance(inner, dict) else call
    name = function.get("name", function.get("toolName"))
    if not isinstance(name, str) or not name:
        return None
    given = (function.get(key) for key in ("arguments", "input", "args", "server_tool_call"))
    arguments = next((value for value in given if value is not None), None)
    if not isinstance(arguments, str | dict | None):
        arguments = msgspec.json.encode(arguments).decode()
    call_id = next((call[key] for key in ("id", "toolCallId", "toolUseId") if call.get(key) is not None), None)
    return {
        "id": call_id if isinstance(call_id, str) else None,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def _result(part: Message) -> Message:
    ids = ("tool_call_id", "tool_use_id", "toolCallId", "toolUseId", "id")
    call_id = next((part[key] for key in ids if isinstance(part.get(key), str)), None)
    keys = ("response", "server_tool_call_response", "result", "content", "output")
    value = next((part[key] for key in keys if part.get(key) is not None), "")
    value = json_content(value)
    if isinstance(value, dict) and value.keys() == {"type", "value"}:  # as Vercel's AI SDK wraps them
        value = value["value"]
    if isinstance(value, list) and value and all(map(_is_part, value)):
        value = json_content(_text_of_parts([_unwrapped(part) for part in value]))
    elif isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict) and value[0].keys() == {"json"}:
        value = value[0]["json"]  # as Bedrock wraps objects
    if not isinstance(value, str | dict):
        value = msgspec.json.encode(value).decode()
    name = part.get("name", part.get("toolName"))
    result = {"role": "tool", "tool_call_id": call_id, "name": name if isinstance(name, str) else None}
    failed = {"is_error": True} if _is_failure(part) else {}
    return {**result, "content": value, **failed}


def _is_failure(part: Message) -> bool:
    """Whether a result says that its call failed, as Anthropic, Bedrock or Vercel's AI SDK mark it."""
    output = part.get("output")
    kind = output.get("type") if isinstance(output, dict) else None
    marked = part.get("is_error") is True or part.get("isError") is True or part.get("status") == "error"
    return marked or (isinstance(kind, str) and kind.startswith("error-"))
