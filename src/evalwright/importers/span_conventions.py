"""The meaning of a span's attributes: OpenTelemetry's GenAI conventions, their older names, and OpenInference's.

The attributes of each span show which conventions it follows, so a trace may mix them. Messages are converted to the
form of OpenAI's chat completions, whatever their own.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from evalwright.files.numbers import finite_number_in, whole_number_in
from evalwright.importers.record_values import described
from evalwright.importers.span_messages import Message, content_of, json_content, plain_messages
from evalwright.importers.wire_spans import WireSpan, storable

__all__ = [
    "SpanUsage",
    "input_messages",
    "kind_of",
    "models_of",
    "output_messages",
    "shown_input",
    "shown_output",
    "tool_of",
    "unread_usage",
    "usage_of",
]

T = TypeVar("T")

_KINDS = {
    "chat": "llm", "text_completion": "llm", "generate_content": "llm", "completion": "llm", "llm": "llm",
    "embeddings": "embedding", "embedding": "embedding", "execute_tool": "tool", "tool": "tool",
    "invoke_agent": "agent", "create_agent": "agent", "agent": "agent", "retrieval": "retriever",
    "retriever": "retriever", "invoke_workflow": "chain", "workflow": "chain", "task": "chain", "chain": "chain",
}  # fmt: skip
_KIND_KEYS = ("openinference.span.kind", "gen_ai.operation.name", "traceloop.span.kind", "llm.request.type")
_INPUTS = ("gen_ai.input.messages", "llm.input_messages", "gen_ai.prompt", "llm.prompts", "pydantic_ai.all_messages")
_OUTPUTS = ("gen_ai.output.messages", "llm.output_messages", "gen_ai.completion", "llm.completions")
_SHOWN_INPUTS = (
    "input.value", "traceloop.entity.input", "gen_ai.tool.call.arguments", "tool.parameters", "tool_arguments",
)  # fmt: skip
_SHOWN_OUTPUTS = (
    "output.value", "traceloop.entity.output", "gen_ai.tool.call.result", "tool_response", "final_result",
)  # fmt: skip
_COSTS = ("llm.cost.total", "gen_ai.usage.cost", "operation.cost")
_COUNTS = {
    "input": (
        "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt", "llm.usage.prompt_tokens",
    ),
    "output": (
        "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion",
        "llm.usage.completion_tokens",
    ),
    "thinking": (
        "gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.reasoning_tokens",
        "gen_ai.usage.details.reasoning_tokens", "gen_ai.usage.output_tokens.reasoning",
        "llm.token_count.completion_details.reasoning",
    ),
    "cache_read": (
        "gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens",
        "gen_ai.usage.input_tokens.cached",
        "llm.token_count.prompt_details.cache_read",
    ),
    "cache_write": (
        "gen_ai.usage.cache_creation.input_tokens", "gen_ai.usage.cache_creation_input_tokens",
        "gen_ai.usage.cache_write.input_tokens", "gen_ai.usage.input_tokens.cache_write",
        "llm.token_count.prompt_details.cache_write",
    ),
}  # fmt: skip
_MODELS = (
    "gen_ai.response.model", "gen_ai.request.model", "llm.model_name", "llm.response.model", "llm.request.model",
)  # fmt: skip
_ROLE_EVENTS = {
    "gen_ai.system.message": "system", "gen_ai.user.message": "user", "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}  # fmt: skip
_MOST = 10_000
"""Messages of a span that are read at most."""
_LONGEST = 64 * 1024
"""Characters of a text that may be a Python dictionary."""


class SpanUsage(NamedTuple):
    """Tokens and US dollars of one span; None if the span does not report them."""

    input: int | None = None
    output: int | None = None
    thinking: int | None = None
    cost_usd: float | None = None
    cache_read: int | None = None
    cache_write: int | None = None


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
        if kind == "tool" and str(span.name).startswith("handoff to ") and "tool.name" not in span.attributes:
            return "span"  # of the Agents SDK, as OpenInference writes it: the model has called a tool for it
        if kind is not None:
            return kind
    return "tool" if "gen_ai.tool.name" in span.attributes else "span"


def models_of(attributes: Mapping[str, Any]) -> list[str]:
    """The names of the model that a span reports: the one that replied, then the one that was asked for."""
    return [name for key in _MODELS if isinstance(name := attributes.get(key), str) and name]


def usage_of(attributes: Mapping[str, Any]) -> SpanUsage | None:
    """The usage that a span reports; None if it reports none."""
    counts = {part: _first_of(attributes, keys, _tokens) for part, keys in _COUNTS.items()}
    usage = SpanUsage(**counts, cost_usd=_first_of(attributes, _COSTS, _dollars))
    cached = (usage.cache_read or 0) + (usage.cache_write or 0)
    if usage.input is not None and usage.input < cached:
        # a whole is no less than its parts: these were counted as Anthropic does, who leaves them out of the input
        usage = usage._replace(input=usage.input + cached)
    return None if usage == SpanUsage() else usage


def unread_usage(attributes: Mapping[str, Any]) -> Iterator[str]:
    """What a span reports of its usage that cannot be tokens or dollars."""
    counts = [(key, _tokens, "a number of tokens") for keys in _COUNTS.values() for key in keys]
    for key, read, expected in (*counts, *((key, _dollars, "a cost in dollars") for key in _COSTS)):
        value = attributes.get(key)
        if value is not None and value != "" and read(value) is None:
            yield f"{key}: expected {expected}, found {described(value)}"


def _first_of(attributes: Mapping[str, Any], keys: Sequence[str], read: Callable[[Any], T | None]) -> T | None:
    return next((number for key in keys if (number := read(attributes.get(key))) is not None), None)


def tool_of(span: WireSpan) -> Tool:
    """The tool call that a span of kind tool stands for."""
    attributes = span.attributes
    name = attributes.get("gen_ai.tool.name") or attributes.get("tool.name") or attributes.get("traceloop.entity.name")
    if not isinstance(name, str):
        name = (span.name or "").removeprefix("execute_tool ") or "(unnamed)"
    call_id = attributes.get("gen_ai.tool.call.id", attributes.get("tool_call.id", attributes.get("tool.id")))
    arguments, result = shown_input(span), shown_output(span)
    if arguments is None:  # Strands has both in events
        arguments = next((m["content"] for m in input_messages(span) if m["role"] == "tool"), None)
    result = content_of(output_messages(span), "assistant") if result is None else result
    if isinstance(result, dict) and (message := plain_messages([result], "user")[0])["role"] == "tool":
        result, call_id = message["content"], call_id or message["tool_call_id"]
    if isinstance(arguments, str):
        arguments = _dictionary_of(arguments)
    return Tool(name, call_id if isinstance(call_id, str) else None, arguments, result)


def _dictionary_of(text: str) -> Any:
    """The value of the text of a Python dictionary, as which LangChain gives arguments; any other text as it is."""
    if not text.startswith("{") or len(text) > _LONGEST:
        return text
    try:
        found = ast.literal_eval(text)
        return json_content(msgspec.json.encode(storable(found)).decode())
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return text


def shown_input(span: WireSpan) -> Any:
    """The input according to attributes with values, not messages; None without any."""
    return _first(span, _SHOWN_INPUTS)


def shown_output(span: WireSpan) -> Any:
    """The output, like `shown_input`; for a retrieval, its documents."""
    output = _first(span, _SHOWN_OUTPUTS)
    if output is not None:
        return output
    documents = _branch(span.attributes, "retrieval.documents")
    return documents or json_content(span.attributes.get("gen_ai.retrieval.documents"))


def input_messages(span: WireSpan) -> list[Message]:
    """The messages to a model or an agent."""
    attributes = _with_events(span, _INPUTS)
    system = json_content(attributes.get("gen_ai.system_instructions"))
    if system:
        first = plain_messages(
            [{"role": "system", "parts": system}] if isinstance(system, list) else [system], "system"
        )
        return [*first, *plain_messages(_messages(attributes, _INPUTS), "user")]
    messages = _messages(attributes, _INPUTS)
    if messages:
        return plain_messages(messages, "user")
    events = [
        _as_message(event.attributes, _ROLE_EVENTS[event.name]) for event in span.events if event.name in _ROLE_EVENTS
    ]
    return plain_messages(events, "user")


def output_messages(span: WireSpan) -> list[Message]:
    """The messages from a model or an agent."""
    messages = _messages(_with_events(span, _OUTPUTS), _OUTPUTS)
    if not messages:
        messages = [
            _as_message(event.attributes, "assistant") for event in span.events if event.name == "gen_ai.choice"
        ]
    return plain_messages(messages, "assistant")


def _with_events(span: WireSpan, keys: tuple[str, ...]) -> dict[str, Any]:
    """The span's attributes, with those of its events that contain whole conversations."""
    events = [event.attributes for event in span.events if any(key in event.attributes for key in keys)]
    return {key: value for holder in (*events, span.attributes) for key, value in holder.items()}


def _messages(attributes: Mapping[str, Any], keys: tuple[str, ...]) -> list[Any]:
    for key in keys:
        branch = _branch(attributes, key)
        if isinstance(branch, dict) and isinstance(branch.get("messages"), list):
            branch = branch["messages"]
        if isinstance(branch, str | dict):
            branch = [branch]
        if isinstance(branch, list) and branch:
            return branch[:_MOST]
    return []


def _as_message(attributes: Mapping[str, Any], role: str) -> dict[str, Any]:
    """The message in an event; `gen_ai.choice` has it below `message`."""
    inner = json_content(attributes.get("message"))
    if isinstance(inner, dict):
        return {"role": role, **inner}
    content = inner if inner is not None else attributes.get("content")
    return {"role": role, **attributes, "content": content, "tool_calls": json_content(attributes.get("tool_calls"))}


def _first(span: WireSpan, keys: tuple[str, ...]) -> Any:
    for key in keys:
        value = span.attributes.get(key)
        form = span.attributes.get(f"{key.removesuffix('value')}mime_type")
        of_entity = key.startswith("traceloop.entity.")
        if value == "null" and (of_entity or form == "application/json"):
            continue
        value = value if form == "text/plain" else json_content(value)
        value = _entity_payload(value) if of_entity else value
        if value is not None:
            return value
    return None


def _entity_payload(value: Any) -> Any:
    """What a function or a step of LangChain was given or returned, without what OpenLLMetry puts beside it."""
    if not isinstance(value, dict) or "kwargs" not in value:
        return value
    positional, named = value.get("args"), value["kwargs"]
    if value.keys() == {"args", "kwargs"} and isinstance(positional, list) and isinstance(named, dict):
        if positional and named:
            return value
        return named or (positional if len(positional) > 1 else next(iter(positional), None))
    payloads = (value.get(key) for key in ("inputs", "input_str", "outputs", "output"))
    return next((payload for payload in payloads if payload is not None), value)


def _branch(attributes: Mapping[str, Any], prefix: str) -> Any:
    """The value of an attribute or, if attributes were flattened, of those below it: `prefix.0.message.role`."""
    if attributes.get(prefix) is not None:
        content = json_content(attributes[prefix])
        listed = isinstance(content, list) and any(
            isinstance(item, dict) and any("." in key for key in item) for item in content
        )
        return [_nested_names(item) if isinstance(item, dict) else item for item in content] if listed else content
    below = {key[len(prefix) + 1 :]: value for key, value in attributes.items() if key.startswith(f"{prefix}.")}
    return _nested_names(below) if below else None


def _nested_names(flat: Mapping[str, Any]) -> Any:
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
    return {key: _lists(item) for key, item in value.items()}


def _tokens(value: Any) -> int | None:
    count = whole_number_in(value)  # some exporters write all attributes as text
    return count if count is not None and 0 <= count < 2**53 else None


def _dollars(value: Any) -> float | None:
    number = finite_number_in(value)
    return number if number is not None and 0 <= number < 1e12 else None
