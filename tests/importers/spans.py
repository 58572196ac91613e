"""Exported spans for the tests of importing."""

from __future__ import annotations

from typing import Any

TRACE = "5b8efff798038103d269b633813fc60c"
START = 1_760_000_000_000_000_000


def value(found: Any) -> dict[str, Any]:
    """A value in OTLP's wrapping."""
    if isinstance(found, bool):
        return {"boolValue": found}
    if isinstance(found, int):
        return {"intValue": str(found)}
    if isinstance(found, float):
        return {"doubleValue": found}
    if isinstance(found, list):
        return {"arrayValue": {"values": [value(one) for one in found]}}
    if isinstance(found, dict):
        return {"kvlistValue": {"values": [{"key": key, "value": value(one)} for key, one in found.items()]}}
    return {"stringValue": found}


def attributes(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": value(one)} for key, one in found.items()]


def span(number: int, name: str, given: dict[str, Any] | None = None, *, below: int | None = None, **more: Any) -> Any:
    """Span `number` of the trace, which begins after that many milliseconds and takes 10 in all beside its number."""
    found = {
        "traceId": TRACE,
        "spanId": f"{number:016x}",
        "name": name,
        "kind": 1,
        "startTimeUnixNano": str(START + number * 1_000_000),
        "endTimeUnixNano": str(START + (100 - number) * 1_000_000),
        "attributes": attributes(given or {}),
        "status": {},
    }
    if below is not None:
        found["parentSpanId"] = f"{below:016x}"
    return {**found, **more}


def event(name: str, given: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "timeUnixNano": str(START), "attributes": attributes(given)}


def exported(*spans: Any, service: str = "shop") -> dict[str, Any]:
    """One request as a collector writes it on a line."""
    resource = {"attributes": attributes({"service.name": service})}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {}, "spans": list(spans)}]}]}
