"""One exported span, converted to a single form from the JSON of OTLP, of an SDK or of Phoenix.

What is broken in a span is noted in it; only a span without a trace cannot be used.
"""

from __future__ import annotations

import re
from base64 import b64decode
from datetime import UTC, datetime
from typing import Any

import msgspec

from evalwright.files.numbers import is_number
from evalwright.importers.adk_spans import with_adk_messages
from evalwright.importers.ai_sdk_spans import with_gen_ai_names
from evalwright.importers.record_values import described

__all__ = [
    "WireEvent",
    "WireSpan",
    "json_or_error",
    "log_record",
    "moment_ns",
    "otlp_attributes",
    "otlp_span",
    "plain_span",
    "storable",
]

_ID = re.compile(r"(?:0x)?([0-9A-Za-z+/=_-]{1,64})")
_HEXADECIMAL = re.compile(r"[0-9A-Fa-f]+")
_NOTHING = re.compile(r"0*")
_DEEPEST = 60
_LAST_NS = 253_402_300_799 * 10**9
"""The end of the year 9999."""


class WireEvent(msgspec.Struct):
    """An event of a span; `at` is in nanoseconds since 1970."""

    name: str
    at: int | None = None
    attributes: dict[str, Any] = {}


class WireSpan(msgspec.Struct):
    """A span as it was exported, whatever its conventions; times are in nanoseconds since 1970.

    Without a name, it stands for events, scores, facts and attributes that were exported apart from that span; without
    an id, too, from the span around all others.
    """

    trace_id: str
    span_id: str
    name: str | None = None
    parent_id: str | None = None
    started_at: int | None = None
    finished_at: int | None = None
    status: str = "unset"
    message: str | None = None
    attributes: dict[str, Any] = {}
    events: list[WireEvent] = []
    service: str | None = None
    faults: list[str] = []
    """Broken parts of the span."""
    dropped: int = 0
    """Attributes and events that the exporter dropped."""
    scores: list[dict[str, Any]] = []
    """What was found in it before the export, as it is kept in `extra.recorded_scores`."""
    facts: dict[str, Any] = {}
    """What its case expects, as in `expected.facts`."""


def json_or_error(text: bytes) -> Any:
    """The document, or the exception if there is none."""
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError) as error:
        return error


def otlp_span(raw: dict[str, Any], service: str | None) -> WireSpan:
    """A span from OTLP's JSON, with keys in either case. Raises ValueError without the id of a trace."""
    faults: list[str] = []
    status = raw.get("status")
    status = status if isinstance(status, dict) else {}
    return WireSpan(
        trace_id=_trace_id(_either(raw, "traceId", "trace_id")),
        span_id=_span_id(_either(raw, "spanId", "span_id"), faults),
        name=_text(raw.get("name")),
        parent_id=_identifier(_either(raw, "parentSpanId", "parent_span_id")),
        started_at=_nanoseconds(raw, ("startTimeUnixNano", "start_time_unix_nano"), faults),
        finished_at=_nanoseconds(raw, ("endTimeUnixNano", "end_time_unix_nano"), faults),
        status=_status(status.get("code")),
        message=_text(status.get("message")) or None,
        attributes=_named(otlp_attributes(raw.get("attributes"), faults)),
        events=[_otlp_event(event, faults) for event in _objects(raw.get("events"), "events", faults)],
        service=service,
        faults=faults,
        dropped=sum(_count(raw.get(key)) for key in ("droppedAttributesCount", "droppedEventsCount")),
    )


def _named(attributes: dict[str, Any]) -> dict[str, Any]:
    """The attributes, with those of frameworks that have names of their own under those of the conventions, too."""
    return with_adk_messages(with_gen_ai_names(attributes))


def _otlp_event(raw: dict[str, Any], faults: list[str]) -> WireEvent:
    at = _nanoseconds(raw, ("timeUnixNano", "time_unix_nano"), faults)
    return WireEvent(_text(raw.get("name")), at, otlp_attributes(raw.get("attributes"), faults))


def log_record(raw: dict[str, Any], service: str | None) -> WireSpan | None:
    """A log record that is an event of a span, where the GenAI conventions keep messages since 1.37; None for
    others."""
    attributes = otlp_attributes(raw.get("attributes"))
    name = _either(raw, "eventName", "event_name") or attributes.get("event.name")
    trace_id = _identifier(_either(raw, "traceId", "trace_id"))
    span_id = _identifier(_either(raw, "spanId", "span_id"))
    if trace_id is None or span_id is None or not isinstance(name, str):
        return None
    body = _any(raw.get("body"))
    event = WireEvent(name, None, {**attributes, **(body if isinstance(body, dict) else {"body": body})})
    return WireSpan(trace_id, span_id, events=[event], service=service)


def plain_span(raw: dict[str, Any], service: str | None) -> WireSpan:
    """A span in the form of an SDK's `span.to_json()` or of a Phoenix export."""
    faults: list[str] = []
    raw = _gathered_columns(raw)
    context = raw.get("context")
    ids = context if isinstance(context, dict) else raw
    status = raw.get("status")
    status = status if isinstance(status, dict) else {"status_code": _either(raw, "status_code", "statusCode")}
    attributes = _flat(raw.get("attributes"), faults)
    if isinstance(kind := _either(raw, "span_kind", "spanKind"), str):
        attributes.setdefault("openinference.span.kind", kind)
    resource = raw.get("resource")
    about = _flat(resource.get("attributes"), []) if isinstance(resource, dict) else {}
    return WireSpan(
        trace_id=_trace_id(_either(ids, "trace_id", "traceId")),
        span_id=_span_id(_either(ids, "span_id", "spanId"), faults),
        name=_text(raw.get("name")),
        parent_id=_identifier(_either(raw, "parent_id", "parentId", "parent_span_id", "parentSpanId")),
        started_at=moment_ns(_either(raw, "start_time", "startTime"), "start_time", faults),
        finished_at=moment_ns(_either(raw, "end_time", "endTime"), "end_time", faults),
        status=_status(_either(status, "status_code", "code")),
        message=_text(_either(status, "description", "message") or raw.get("status_message")) or None,
        attributes=_named(attributes),
        events=[_plain_event(event, faults) for event in _objects(raw.get("events"), "events", faults)],
        service=_text(about.get("service.name")) or service,
        faults=faults,
    )


def _gathered_columns(raw: dict[str, Any]) -> dict[str, Any]:
    """Columns such as `context.span_id` and `attributes.llm.model_name` put below `context` and `attributes`."""
    columns = [key for key in raw if key.startswith(("context.", "attributes."))]
    if not columns:
        return raw
    attributes = {key: value for key, value in raw.items() if key not in columns}
    for key in columns:
        below, _, rest = key.partition(".")
        holder = attributes.setdefault(below, {})
        if isinstance(holder, dict) and raw[key] is not None:
            attributes[below] = {**holder, rest: raw[key]}
    return attributes


def _plain_event(raw: dict[str, Any], faults: list[str]) -> WireEvent:
    at = moment_ns(raw.get("timestamp"), "timestamp", faults)
    return WireEvent(_text(raw.get("name")), at, _flat(raw.get("attributes"), faults))


def _objects(value: Any, key: str, faults: list[str]) -> list[dict[str, Any]]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        faults.append(f"{key}: expected a list of objects, found {described(value)}")
        return []
    return value


def _either(holder: dict[str, Any], *keys: str) -> Any:
    return next((holder[key] for key in keys if holder.get(key) is not None), None)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**31 else 0


def _identifier(value: Any) -> str | None:
    """An id in hexadecimal, without `0x`; None for an id of zeros, or no id.

    OTLP/JSON writes ids this way; protobuf's own JSON writes the same 8 or 16 bytes in base64.
    """
    match = _ID.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return None
    text = match[1].lower() if _HEXADECIMAL.fullmatch(match[1]) else _from_base64(match[1])
    return None if _NOTHING.fullmatch(text) else text


def _from_base64(text: str) -> str:
    try:
        data = b64decode(text, validate=True)
    except ValueError:
        return text
    return data.hex() if len(data) in (8, 16) else text


def _trace_id(value: Any) -> str:
    identifier = _identifier(value)
    if identifier is None:
        raise ValueError(f"a span without a trace: expected the id of its trace, found {described(value)}")
    return identifier


def _span_id(value: Any, faults: list[str]) -> str:
    identifier = _identifier(value)
    if identifier is None:
        faults.append(f"expected the id of the span, found {described(value)}")
    return identifier or ""


def _nanoseconds(raw: dict[str, Any], keys: tuple[str, ...], faults: list[str]) -> int | None:
    value = _either(raw, *keys)
    if value in (None, 0, "0", ""):
        return None
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 21:
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _LAST_NS:
        return value
    faults.append(f"{keys[0]}: expected nanoseconds since 1970, found {described(value)}")
    return None


def moment_ns(value: Any, key: str, faults: list[str]) -> int | None:
    """A time from ISO 8601 text, or from milliseconds since 1970, which data frames write."""
    if value is None:
        return None
    try:
        if isinstance(value, str):
            read = datetime.fromisoformat(value)
            read = read if read.tzinfo else read.replace(tzinfo=UTC)
            nanoseconds = max(0, int(read.timestamp() * 1_000_000) * 1000)
            if nanoseconds <= _LAST_NS:  # in UTC the last hours of the year 9999 may be those of the next one
                return nanoseconds or None
        elif is_number(value) and 0 < value * 1_000_000 <= _LAST_NS:
            return int(value * 1_000_000)
    except (ValueError, OverflowError):
        pass
    faults.append(f"{key}: expected a time in ISO 8601, found {described(value)}")
    return None


def _status(value: Any) -> str:
    text = str(value).upper().rpartition("_")[2].rpartition(".")[2]
    return {"1": "ok", "OK": "ok", "2": "error", "ERROR": "error"}.get(text, "unset")


def otlp_attributes(value: Any, faults: list[str] | None = None) -> dict[str, Any]:
    attributes = {}
    for pair in _objects(value, "attributes", [] if faults is None else faults):
        if isinstance(pair.get("key"), str):
            attributes[pair["key"]] = _any(pair.get("value"))
    return attributes


def _any(value: Any, depth: int = 0) -> Any:
    """The value inside OTLP's type wrapper; None without one."""
    if not isinstance(value, dict) or depth > _DEEPEST:
        return None
    if isinstance(listed := value.get("arrayValue"), dict):
        values = listed.get("values")
        return [_any(value, depth + 1) for value in values] if isinstance(values, list) else []
    if isinstance(mapped := value.get("kvlistValue"), dict):
        pairs = mapped.get("values")
        pairs = [pair for pair in pairs if isinstance(pair, dict)] if isinstance(pairs, list) else []
        return {pair["key"]: _any(pair.get("value"), depth + 1) for pair in pairs if isinstance(pair.get("key"), str)}
    if "intValue" in value:
        text = str(value["intValue"])
        return int(text) if re.fullmatch(r"-?\d{1,18}", text, re.ASCII) else text
    for key, kinds in (("stringValue", str), ("boolValue", bool), ("doubleValue", int | float | str)):
        if isinstance(value.get(key), kinds):
            return storable(value[key])
    return storable(value.get("bytesValue"))


def _flat(value: Any, faults: list[str]) -> dict[str, Any]:
    """Attributes as a mapping of dotted names: Phoenix nests them."""
    if isinstance(value, str):
        value = json_or_error(value.encode(errors="replace"))
    if value is None:
        return {}
    if not isinstance(value, dict):
        faults.append(f"attributes: expected an object, found {described(value)}")
        return {}
    attributes: dict[str, Any] = {}
    waiting = [("", value, 0)]
    while waiting:
        above, holder, depth = waiting.pop()
        for key, key_value in holder.items():
            if isinstance(key_value, dict) and depth < 8:
                waiting.append((f"{above}{key}.", key_value, depth + 1))
            else:
                attributes[f"{above}{key}"] = storable(key_value)
    return attributes


def storable(value: Any, depth: int = 0) -> Any:
    """The value in a form that can be written again: no deep nesting, no integers beyond 64 bits."""
    if isinstance(value, dict | list) and depth > _DEEPEST:
        return "(nested too deeply)"
    if isinstance(value, dict):
        return {str(key): storable(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [storable(item, depth + 1) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**63:
        return str(value)
    return value
