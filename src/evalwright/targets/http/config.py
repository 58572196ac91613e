"""Checks the configuration of the target `http`: mistakes, and things that only deserve a warning."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from typing import Any

import httpx

from evalwright.errors import did_you_mean
from evalwright.files.key_paths import as_written, kind_in_words
from evalwright.targets.build import unknown
from evalwright.targets.http.mapping import MAPPING_KEYS
from evalwright.targets.http.presets import PRESETS
from evalwright.targets.http.protocols import PROTOCOLS
from evalwright.targets.http.streams import EVENT_KEYS, FIELDS, FORMATS

__all__ = ["HTTP_KEYS", "endpoint_mistakes", "header_mistakes", "mistakes", "place_of", "unread_entries"]

_WORD = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e]*")
_HOST = re.compile(rb"[\w.-]+|[0-9A-Fa-f:.]+(%[\w.-]+)?")
_URL = re.compile(r"((?:[^:/?#]+:)?(?://)?)([^/?#]*@)?([^?#]*)")
_TEXTS = ("request_template", "stream_event_field", "stream_done_field", "stream_tool_call_field")
_SWITCHES = ("stream", "strip_think")
_MAPPINGS = ("body", "query_params", "response_mapping", "stream_event_mapping")
HTTP_KEYS = (
    *("endpoint", "method", "headers", "provider", "stream_format", "max_response_bytes"),
    *(*_TEXTS, *_SWITCHES, *_MAPPINGS),
)
"""The keys that the target reads."""


def place_of(url: str) -> str:
    """A URL as messages show it: without its user, password and query, which may contain secrets.

    The rest is as it was written: a secret in it is masked by value, which a host in lower case would not match.
    """
    parts = _URL.match(url)
    return f"{parts[1]}{parts[3]}" if parts else ""


_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")


def mistakes(config: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Each mistake as its key, and what was found and expected. Values of headers are never shown, as they may be
    keys."""
    yield from endpoint_mistakes(config.get("endpoint"))
    yield from _type_mistakes(config)
    method = config.get("method", "POST")
    if not isinstance(method, str) or method.upper() not in _METHODS:
        yield "method", f"'method' must be one of {', '.join(_METHODS)}, found {as_written(method)}"
    yield from header_mistakes(config.get("headers"))
    yield from _query_mistakes(config.get("query_params"))
    yield from _mapping_mistakes(config)
    cap = config.get("max_response_bytes", 1)
    if not isinstance(cap, int) or isinstance(cap, bool) or cap < 1:
        yield "max_response_bytes", f"'max_response_bytes' must be a number of bytes above 0, found {as_written(cap)}"
    if config.get("stream") is True:
        yield from _stream_mistakes(config)


def unread_entries(config: Mapping[Any, Any]) -> Iterator[tuple[str, str]]:
    """Entries of the two mappings that have no effect."""
    for key, known in (("response_mapping", MAPPING_KEYS), ("stream_event_mapping", EVENT_KEYS)):
        yield from unknown(config.get(key), known, f"{key!r}", key)


def endpoint_mistakes(endpoint: Any) -> Iterator[tuple[str, str]]:
    """What is wrong with an address: the key, and a message without the address's secrets."""
    if not isinstance(endpoint, str) or not endpoint:
        yield "endpoint", f"'endpoint' must be a URL, found {as_written(endpoint, nothing='nothing')}"
        return
    try:
        url = httpx.URL(endpoint)
    except (httpx.InvalidURL, ValueError) as error:
        reason = str(error).partition(":")[0]  # what follows is a part of it, which may be one of a secret
        yield "endpoint", f"'endpoint' is not a URL ({reason}), found {place_of(endpoint)}"
        return
    if not url.host:
        yield "endpoint", f"'endpoint' must be a URL with a host, https://..., found {place_of(endpoint)!r}"
    elif not _HOST.fullmatch(url.raw_host) or (url.port or 0) > 65535:
        yield "endpoint", f"'endpoint' must name a host, and a port up to 65535 if any, found {place_of(endpoint)}"
    # Keys and answers would cross the network in the clear.
    elif url.scheme != "https" and not (url.scheme == "http" and _is_local(url.host)):
        yield "endpoint", f"'endpoint' must be https, or http to localhost, 127.* or [::1], found {place_of(endpoint)}"


def _is_local(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _type_mistakes(config: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for key in _TEXTS:
        if not isinstance(config.get(key), str | None):
            yield key, f"{key!r} must be a string, found {as_written(config[key])}"
    for key in _SWITCHES:
        if not isinstance(config.get(key, False), bool):
            yield key, f"{key!r} must be true or false, found {as_written(config[key])}"
    for key in _MAPPINGS:
        if not isinstance(config.get(key), dict | None):
            yield key, f"{key!r} must be a mapping, found {kind_in_words(config[key])}"


def header_mistakes(headers: Any) -> Iterator[tuple[str, str]]:
    """Each mistake as its key, and what was found and expected."""
    if not isinstance(headers, dict | None):
        yield "headers", f"'headers' must be a mapping, found {kind_in_words(headers)}"
    for name, value in _pairs(headers):
        if not _WORD.fullmatch(str(name)):
            yield f"headers.{name}", f"{name!r} is not a valid header name"
        elif not isinstance(value, str):
            yield f"headers.{name}", f"the header {name} must be a string (quote it), found {kind_in_words(value)}"
        elif not _VALUE.fullmatch(value):
            yield f"headers.{name}", f"the header {name} contains characters that are not allowed, such as line breaks"
        elif value != value.strip():
            yield f"headers.{name}", f"the header {name} begins or ends with a space: is a variable in it empty?"


def _query_mistakes(params: Any) -> Iterator[tuple[str, str]]:
    for name, value in _pairs(params):
        if not isinstance(value, str | int | float):
            yield f"query_params.{name}", f"{name!r} must be a string or a number, found {kind_in_words(value)}"


def _mapping_mistakes(config: dict[str, Any]) -> Iterator[tuple[str, str]]:
    provider = config.get("provider")
    if provider is not None and (not isinstance(provider, str) or provider not in PRESETS):
        near = did_you_mean(str(provider), PRESETS)
        yield "provider", f"unknown 'provider': {as_written(provider)}{near} (known: {', '.join(PRESETS)})"
    mapping = config.get("response_mapping")
    if mapping in (None, {}) and provider is None and not config.get("stream"):
        yield "response_mapping", "'response_mapping' is missing: say where the answer is, or name a 'provider'"
    for key in ("response_mapping", "stream_event_mapping"):
        for name, path in _pairs(config.get(key)):
            if not isinstance(path, str | None):
                yield f"{key}.{name}", f"{name!r} must be a JSONPath, found {as_written(path)}"


def _stream_mistakes(config: dict[str, Any]) -> Iterator[tuple[str, str]]:
    form = config.get("stream_format")
    if not isinstance(form, str) or form not in FORMATS:
        yield (
            "stream_format",
            f"'stream_format' must be one of {', '.join(FORMATS)}, found {as_written(form, nothing='nothing')}",
        )
    mapping = config.get("stream_event_mapping")
    token = mapping.get("token") if isinstance(mapping, dict) else None
    if form in PROTOCOLS:
        for key in ("response_mapping", "stream_event_mapping", *FIELDS.values()):
            if config.get(key):
                yield key, f"{key!r} has no effect: where the parts of events are is known in 'stream_format' {form}"
    elif form != "raw_chunks" and not (token or config.get("stream_event_field")):
        yield "stream_event_field", "'stream_event_field' is missing: say where the text of an event is"


def _pairs(mapping: Any) -> list[tuple[Any, Any]]:
    return list(mapping.items()) if isinstance(mapping, dict) else []
