"""Settings of HTTP providers that stand for others: a request written out, files with bodies, credentials."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any

from evalwright.files.key_paths import as_written
from evalwright.formats.promptfoo.origin import Origin
from evalwright.formats.promptfoo.sources import Sources, in_file
from evalwright.formats.promptfoo.templates import holds_template
from evalwright.formats.promptfoo.values import as_javascript

__all__ = ["TOOL_NAMES", "plain_settings", "without_unsupported"]

TOOL_NAMES = ("tools", "tool_choice")
"""Settings that are names in the templates of requests; those of a prompt take precedence."""

_STANDING_FOR_OTHERS = ("request", "useHttps", "auth")
_FIRST_LINE = re.compile(r"(GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS) +(\S.*?) +HTTP/\S+", re.IGNORECASE)
_HEADER = re.compile(r"([!#$%&'*+.^_`|~\w-]+):[ \t]*(.*)", re.ASCII)
_OURS = ("host", "content-length", "accept-encoding", "connection")
"""Headers that belong to the connection on which a request was recorded."""
_OF_REQUEST = ("url", "method", "headers", "queryParams", "body")
_DOCUMENTS = (".json", ".yaml", ".yml")
_BY_PYTHON = "call the service from a Python provider"
_UNSUPPORTED = {
    "multipart": _BY_PYTHON,
    "session": "an extension can get the sessionId before each test (docs/promptfoo.md, Extensions)",
    "signatureAuth": _BY_PYTHON,
    "tls": f"SSL_CERT_FILE names the certificates to trust; for all else, {_BY_PYTHON}",
}
"""Settings without which another request would be sent, and what to do instead."""


def without_unsupported(config: dict[str, Any], origin: Origin) -> dict[str, Any]:
    """The settings without those that are rejected."""
    for key in config.keys() & _UNSUPPORTED.keys():
        origin.at(key).report(f"{key} is not supported: {_UNSUPPORTED[key]}")
    return {key: value for key, value in config.items() if key not in _UNSUPPORTED}


def plain_settings(config: dict[str, Any], named: str, sources: Sources, origin: Origin) -> dict[str, Any]:
    """The settings with `url`, `method`, `headers`, `queryParams` and `body` only; mistakes are reported. `named` is
    the id of the provider, whose scheme is that of a request that names no address."""
    settings = {key: value for key, value in config.items() if key not in _STANDING_FOR_OTHERS}
    if (request := config.get("request")) is not None:
        place = origin.at("request")
        path = sources.path(request, place) if in_file(request) else None
        text = sources.text(path, place) if path is not None else request
        secure = config.get("useHttps") is True or str(config.get("url") or named).startswith("https")
        settings = {key: value for key, value in settings.items() if key not in _OF_REQUEST}
        if path is not None or not in_file(request):
            settings |= _written_out(text, "https" if secure else "http", place)
    elif "body" in settings:
        settings["body"] = _read(settings["body"], sources, origin.at("body"))
    return settings if config.get("auth") is None else _with_credentials(settings, config["auth"], origin.at("auth"))


def _written_out(text: str, scheme: str, origin: Origin) -> dict[str, Any]:
    """The parts of a request as it is sent; none, after a report, if it is not one."""
    head, _, body = text.replace("\r\n", "\n").strip().partition("\n\n")
    first, *lines = head.split("\n")
    line = _FIRST_LINE.fullmatch(first.strip())
    if line is None:
        origin.report(f"expected a request that begins like 'POST /path HTTP/1.1', found {as_written(first)}")
        return {}
    pairs = [_HEADER.fullmatch(line.strip()) for line in lines]
    for header_line, pair in zip(lines, pairs, strict=True):
        if pair is None:
            origin.report(f"expected a header, 'Name: value', found {as_written(header_line)}")
    headers = {pair[1]: pair[2] for pair in pairs if pair is not None}
    host = next((value for name, value in headers.items() if name.lower() == "host"), None)
    if host is None:
        origin.report("the request has no header Host, which says where it is sent")
    target = line[2] if line[2].startswith("/") else f"/{line[2].partition('://')[2].partition('/')[2]}"
    return {
        "url": f"{scheme}://{host}{target}",
        "method": line[1].upper(),
        "headers": {name: value for name, value in headers.items() if name.lower() not in _OURS},
        **({"body": body.strip()} if body.strip() else {}),
    }


def _read(value: Any, sources: Sources, origin: Origin) -> Any:
    """A body with the contents of the files that it names."""
    if isinstance(value, dict):
        return {key: _read(item, sources, origin.at(key)) for key, item in value.items()}
    if isinstance(value, list):
        return [_read(item, sources, origin.at(i)) for i, item in enumerate(value)]
    if not in_file(value) or holds_template(value) or (path := sources.path(value, origin)) is None:
        return value
    if path.suffix.lower() not in _DOCUMENTS:
        return sources.text(path, origin)
    document = sources.document(path, origin)
    return None if document is None else as_javascript(document.value)


def _with_credentials(config: dict[str, Any], auth: Mapping[str, Any], origin: Origin) -> dict[str, Any]:
    """The settings with the header or the parameter that has the credentials."""
    match auth:
        case {"type": "bearer", "token": str(token)}:
            return _with(config, "headers", "Authorization", f"Bearer {token}")
        case {"type": "basic", "username": str(user), "password": str(password)}:
            if holds_template(user + password):
                origin.report("username and password: expected texts without variables of tests")
            pair = base64.b64encode(f"{user}:{password}".encode()).decode()
            return _with(config, "headers", "Authorization", f"Basic {pair}")
        case {"type": "api_key", "keyName": str(name), "value": str(value), "placement": "header" | "query" as where}:
            return _with(config, "headers" if where == "header" else "queryParams", name, value)
    known = "bearer with token, basic with username and password, api_key with keyName, value and placement"
    given = ", ".join(sorted(auth.keys() - {"type"})) or "nothing"
    origin.report(f"{auth.get('type')!r} with {given}: expected {known}")
    return config


def _with(config: dict[str, Any], key: str, name: str, value: str) -> dict[str, Any]:
    others = {
        setting_name: setting
        for setting_name, setting in config.get(key, {}).items()
        if setting_name.lower() != name.lower()
    }
    return {**config, key: {**others, name: value}}
