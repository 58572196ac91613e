"""The meaning of a span's attributes: OpenTelemetry's GenAI conventions, their older names, and OpenInference's.

The attributes of each span show which conventions it follows, so a trace may mix them. Messages are converted to those
of OpenAI's chat completions, whatever their form.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from evalwright.importers.recordings import too_deep
from evalwright.importers.span_files import WireSpan

__all__ = [
    "SpanUsage",
    "content_of",
    "input_messages",
    "kind_of",
    "output_messages",
    "plain_messages",
    "shown_input",
    "shown_output",
    "text_content",
    "tool_of",
    "usage_of",
]

_KINDS = {
    "chat": "llm", "text_completion": "llm", "generate_content": "llm", "completion": "llm", "llm": "llm",
    "embeddings": "embedding", "embedding": "embedding", "execute_tool": "tool", "tool": "tool",
    "invoke_agent": "agent", "create_agent": "agent", "agent": "agent", "retrieval": "retriever",
    "retriever": "retriever", "invoke_workflow": "chain", "workflow": "chain", "task": "chain", "chain": "chain",
}  # fmt: skip
_KIND_KEYS = ("openinference.span.kind", "gen_ai.operation.name", "traceloop.span.kind", "llm.request.type")
_ROLES = {"human": "user", "ai": "assistant", "model": "assistant", "developer": "system", "function": "tool"}
_KNOWN_ROLES = ("system", "user", "assistant", "tool")
_INPUTS = ("gen_ai.input.messages", "llm.input_messages", "gen_ai.prompt", "llm.prompts")
_OUTPUTS = ("gen_ai.output.messages", "llm.output_messages", "gen_ai.completion")
_SHOWN_INPUTS = ("input.value", "gen_ai.tool.call.arguments", "traceloop.entity.input", "tool.parameters")
_SHOWN_OUTPUTS = ("output.value", "gen_ai.tool.call.result", "traceloop.entity.output")
_ROLE_EVENTS = {
    "gen_ai.system.message": "system", "gen_ai.user.message": "user", "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}  # fmt: skip
_MOST = 10_000
"""Messages of a span that are read."""

_MESSAGE_KEYS = {"role", "content", "contents", "parts", "tool_calls", "function_call_name"}

_Message = dict[str, Any]


class SpanUsage(NamedTuple):
    """Tokens and US dollars of one span; None if the span does not report them."""

    input: int | None = None
    output: int | None = None
    thinking: int | None = None
    cost_usd: float | None = None


class Tool(NamedTuple):
    """The tool call that a span stands for."""

    name: str
    id: str | None
    arguments: Any
    result: Any


def kind_of(span: WireSpan) -> str:
    """The kind of a span: agent, llm, tool, retriever, embedding, chain or span."""
    for key in _KIND_KEYS:
        kind = _KINDS.get(str(span.attributes.get(key)).lower())
        if kind is not None:
            return kind
    return "tool" if "gen_ai.tool.name" in span.attributes else "span"


def usage_of(attributes: Mapping[str, Any]) -> SpanUsage | None:
    """The usage that a span reports; None if it reports none."""
    found = SpanUsage(
        _tokens(attributes, "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt"),
        _tokens(
            attributes, "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion"
        ),
        _tokens(
            attributes,
            "gen_ai.usage.reasoning.output_tokens",
            "gen_ai.usage.reasoning_tokens",
            "llm.token_count.completion_details.reasoning",
        ),
        _dollars(attributes.get("llm.cost.total", attributes.get("gen_ai.usage.cost"))),
    )
    return None if found == SpanUsage() else found


def tool_of(span: WireSpan) -> Tool:
    """The tool call that a span of kind tool stands for."""
    given = span.attributes
    name = given.get("gen_ai.tool.name") or given.get("tool.name") or given.get("traceloop.entity.name")
    if not isinstance(name, str):
        name = (span.name or "").removeprefix("execute_tool ") or "(unnamed)"
    call_id = given.get("gen_ai.tool.call.id", given.get("tool_call.id", given.get("tool.id")))
    return Tool(name, call_id if isinstance(call_id, str) else None, shown_input(span), shown_output(span))


def shown_input(span: WireSpan) -> Any:
    """The input according to attributes with values, not messages; None without any."""
    return _first(span, _SHOWN_INPUTS)


def shown_output(span: WireSpan) -> Any:
    """The output, like `shown_input`; for a retrieval, its documents."""
    found = _first(span, _SHOWN_OUTPUTS)
    if found is not None:
        return found
    documents = _branch(span.attributes, "retrieval.documents")
    return documents or _content(span.attributes.get("gen_ai.retrieval.documents"))


def input_messages(span: WireSpan) -> list[_Message]:
    """The messages to a model or an agent."""
    attributes = _with_events(span, _INPUTS)
    system = _content(attributes.get("gen_ai.system_instructions"))
    if system:
        first = plain_messages(
            [{"role": "system", "parts": system}] if isinstance(system, list) else [system], "system"
        )
        return [*first, *plain_messages(_messages(attributes, _INPUTS), "user")]
    found = _messages(attributes, _INPUTS)
    if found:
        return plain_messages(found, "user")
    events = [
        _as_message(event.attributes, _ROLE_EVENTS[event.name]) for event in span.events if event.name in _ROLE_EVENTS
    ]
    return plain_messages(events, "user")


def output_messages(span: WireSpan) -> list[_Message]:
    """The messages from a model or an agent."""
    found = _messages(_with_events(span, _OUTPUTS), _OUTPUTS)
    if not found:
        found = [_as_message(event.attributes, "assistant") for event in span.events if event.name == "gen_ai.choice"]
    return plain_messages(found, "assistant")


def plain_messages(messages: Iterable[Any], role: str) -> list[_Message]:
    """Messages in the form of OpenAI's chat completions; `role` is for messages without one."""
    return [one for message in messages for one in _plain(message, role)]


def content_of(messages: Iterable[_Message], role: str) -> str | None:
    """The last text among the messages of a role; None without any."""
    texts = [m["content"] for m in messages if m["role"] == role and isinstance(m.get("content"), str) and m["content"]]
    return texts[-1] if texts else None


def text_content(value: Any, role: str) -> str | None:
    """The text in an input or output of an application: a string, messages, or an object with a single string."""
    if isinstance(value, dict) and isinstance(value.get("messages"), list):
        value = value["messages"]
    if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        said = content_of(plain_messages(value, role), role)
        if said is not None:
            return said
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, dict):
        texts = [one for one in value.values() if isinstance(one, str)]
        if len(texts) == 1:
            return texts[0]
    return msgspec.json.encode(value).decode()


def _with_events(span: WireSpan, keys: tuple[str, ...]) -> dict[str, Any]:
    """The span's attributes, with those of its events that contain whole conversations."""
    events = [event.attributes for event in span.events if any(key in event.attributes for key in keys)]
    return {key: value for holder in (*events, span.attributes) for key, value in holder.items()}


def _messages(attributes: Mapping[str, Any], keys: tuple[str, ...]) -> list[Any]:
    for key in keys:
        found = _branch(attributes, key)
        if isinstance(found, dict) and isinstance(found.get("messages"), list):
            found = found["messages"]
        if isinstance(found, str | dict):
            found = [found]
        if isinstance(found, list) and found:
            return found[:_MOST]
    return []


def _as_message(attributes: Mapping[str, Any], role: str) -> dict[str, Any]:
    """The message in an event; `gen_ai.choice` has it below `message`."""
    inner = _content(attributes.get("message"))
    if isinstance(inner, dict):
        return {"role": role, **inner}
    content = inner if inner is not None else attributes.get("content")
    return {"role": role, **attributes, "content": content, "tool_calls": _content(attributes.get("tool_calls"))}


def _first(span: WireSpan, keys: tuple[str, ...]) -> Any:
    for key in keys:
        value = span.attributes.get(key)
        if value is not None:
            is_text = span.attributes.get(f"{key.removesuffix('value')}mime_type") == "text/plain"
            return value if is_text else _content(value)
    return None


def _content(value: Any) -> Any:
    """The value of a JSON text; any other value as it is."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "[", '"'):
        return value
    try:
        found = msgspec.json.decode(value)
    except (ValueError, RecursionError):
        return value
    return value if too_deep(found) else found


def _branch(attributes: Mapping[str, Any], prefix: str) -> Any:
    """The value of an attribute or, if attributes were flattened, of those below it: `prefix.0.message.role`."""
    if attributes.get(prefix) is not None:
        found = _content(attributes[prefix])
        listed = isinstance(found, list) and any(
            isinstance(one, dict) and any("." in key for key in one) for one in found
        )
        return [_nested(one) if isinstance(one, dict) else one for one in found] if listed else found
    below = {key[len(prefix) + 1 :]: value for key, value in attributes.items() if key.startswith(f"{prefix}.")}
    return _nested(below) if below else None


def _nested(flat: Mapping[str, Any]) -> Any:
    """Dotted names as objects, and as lists if all names of an object are numbers."""
    root: dict[str, Any] = {}
    for key, value in flat.items():
        *above, last = key.split(".", 16)
        holder = root
        for part in above:
            below = holder.setdefault(part, {})
            if not isinstance(below, dict):
                below = holder[part] = {}
            holder = below
        if not isinstance(holder.get(last), dict):
            holder[last] = value
    return _lists(root)


def _lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if value and all(key.isascii() and key.isdigit() and len(key) < 10 for key in value):
        return [_lists(value[key]) for key in sorted(value, key=int)]
    return {key: _lists(one) for key, one in value.items()}


def _plain(message: Any, default: str) -> list[_Message]:
    original, message = message, _content(message)
    if isinstance(message, dict) and isinstance(message.get("message"), dict):
        message = message["message"]
    if not isinstance(message, dict) or not _MESSAGE_KEYS & message.keys():
        text = original if isinstance(original, str) else msgspec.json.encode(original).decode()
        return [{"role": default, "content": text}]
    stated = str(message.get("role") or default).lower()
    role = _ROLES.get(stated, stated)
    role = role if role in _KNOWN_ROLES else default
    parts = _parts(message)
    plain: _Message = {"role": role, "content": _words(parts), "tool_calls": _calls(message, parts)}
    thinking = [str(part.get("content") or part.get("thinking") or "") for part in parts if _type(part) in _THINKING]
    if thinking:
        plain["reasoning_content"] = "\n".join(thinking)
    results = [_result(part) for part in parts if _type(part) in _RESULTS]
    if role == "tool" and not results:
        return [_result({**message, "response": plain["content"]})]
    return [*results] if results and plain["content"] is None else [*results, plain]


_THINKING = ("reasoning", "thinking")
_RESULTS = ("tool_call_response", "tool_result")
_CALLS = ("tool_call", "tool_use")


def _parts(message: _Message) -> list[dict[str, Any]]:
    """The parts of a message, whatever key they are under."""
    found: list[dict[str, Any]] = []
    for key in ("parts", "content", "contents"):
        value = _content(message.get(key)) if key != "content" else _part_list(message.get(key))
        if isinstance(value, str):
            value = [{"type": "text", "content": value}]
        if isinstance(value, dict):
            value = [value]
        for part in value if isinstance(value, list) else ():
            part = {"type": "text", "content": part} if isinstance(part, str) else part
            if isinstance(part, dict):
                found.append(part["message_content"] if isinstance(part.get("message_content"), dict) else part)
    return found


def _part_list(value: Any) -> Any:
    """Content that is text stays text, JSON or not, unless it is a list of parts with types."""
    found = _content(value)
    if isinstance(value, str) and not (
        isinstance(found, list) and found and all(isinstance(one, dict) and "type" in one for one in found)
    ):
        return value
    return found


def _type(part: dict[str, Any]) -> str:
    return str(part.get("type") or "text")


def _words(parts: list[dict[str, Any]]) -> str | None:
    texts = []
    for part in parts:
        kind = _type(part)
        if kind in (*_THINKING, *_RESULTS, *_CALLS):
            continue
        text = next((part[key] for key in ("content", "text") if isinstance(part.get(key), str)), None)
        texts.append(
            text if text is not None and kind in ("text", "refusal", "input_text", "output_text") else f"[{kind}]"
        )
    return "\n".join(texts) if texts else None


def _calls(message: _Message, parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    listed = _content(message.get("tool_calls"))
    calls = [*(listed if isinstance(listed, list) else ()), *(part for part in parts if _type(part) in _CALLS)]
    if isinstance(legacy := message.get("function_call_name"), str):
        calls.append({"name": legacy, "arguments": message.get("function_call_arguments_json")})
    return [found for call in calls if (found := _call(call)) is not None]


def _call(call: Any) -> dict[str, Any] | None:
    if isinstance(call, dict) and isinstance(call.get("tool_call"), dict):
        call = call["tool_call"]
    if not isinstance(call, dict):
        return None
    inner = call.get("function")
    function = inner if isinstance(inner, dict) else call
    name = function.get("name")
    if not isinstance(name, str) or not name:
        return None
    arguments = function.get("arguments", function.get("input"))
    if not isinstance(arguments, str | dict | None):
        arguments = msgspec.json.encode(arguments).decode()
    call_id = call.get("id")
    return {
        "id": call_id if isinstance(call_id, str) else None,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def _result(part: _Message) -> _Message:
    call_id = next((part[key] for key in ("tool_call_id", "tool_use_id", "id") if isinstance(part.get(key), str)), None)
    value = next((part[key] for key in ("response", "result", "content") if part.get(key) is not None), "")
    value = _content(value)
    if not isinstance(value, str | dict):
        value = msgspec.json.encode(value).decode()
    name = part.get("name")
    return {"role": "tool", "tool_call_id": call_id, "name": name if isinstance(name, str) else None, "content": value}


def _tokens(attributes: Mapping[str, Any], *keys: str) -> int | None:
    for key in keys:
        value = attributes.get(key)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53:
            return value
    return None


def _dollars(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
        return None
    return float(value)
