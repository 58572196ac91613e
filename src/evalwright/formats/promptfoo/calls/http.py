"""HTTP services: a request made from templates, and the output extracted from the response."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

import httpx

from evalwright.errors import TargetError
from evalwright.formats.promptfoo.calls import Caller, ProviderCall, ProviderReply
from evalwright.formats.promptfoo.faults import ScriptError, TemplateError
from evalwright.formats.promptfoo.http_settings import TOOL_NAMES
from evalwright.formats.promptfoo.providers import Provider, called_of
from evalwright.formats.promptfoo.scripts import call_file, run_javascript
from evalwright.formats.promptfoo.sources import in_file
from evalwright.formats.promptfoo.templates import render
from evalwright.formats.promptfoo.transforms import body_returning, requested, response_of
from evalwright.formats.promptfoo.values import as_javascript, compact_json, template_text
from evalwright.llm.failures import retry_after
from evalwright.targets.http.body import EXCERPT_BYTES, pieces, shortened
from evalwright.targets.http.client import new_client

__all__ = ["HttpProvider"]

_CAP = 10 * 2**20
"""Bytes of a response."""
_LINE_ENDS = re.compile(r"[\t\r\n]")
"""What the standard of URLs leaves out of them."""
_JSON, _FORM = "application/json", "application/x-www-form-urlencoded"


class HttpProvider(Caller):
    """Sends an HTTP request for each call, in which templates stand for the prompt and the variables."""

    def __init__(self, provider: Provider, folder: str) -> None:
        self._config: dict[str, Any] = provider.get("config", {})
        self._url = str(self._config.get("url") or called_of(provider))
        self._folder = folder
        self._client = new_client()

    async def __call__(self, call: ProviderCall) -> ProviderReply:
        names = {**call.context["vars"], "prompt": call.prompt, "env": call.environment, **self._tools(call)}
        try:
            request = await self._request(names, call)
        except (TemplateError, ScriptError, httpx.InvalidURL, ValueError) as error:
            raise TargetError(f"the request cannot be made: {error}", "template_error") from None
        status, headers, text = await self._send(request)
        await self._accept(status, headers, text)
        return await self._read(status, headers, text, call)

    def _tools(self, call: ProviderCall) -> dict[str, Any]:
        """The names that requests have for the tools of the test or the prompt, or else of the provider."""
        settings = {**self._config, **call.context["prompt"]["config"]}
        tools = {key: settings[key] for key in TOOL_NAMES if settings.get(key) is not None}
        return {key: compact_json(value) if isinstance(value, (dict, list)) else value for key, value in tools.items()}

    async def _request(self, names: Mapping[str, Any], call: ProviderCall) -> httpx.Request:
        config = self._config
        method = str(config.get("method", "GET")).upper()
        headers = {name: render(template_text(value), names) for name, value in config.get("headers", {}).items()}
        body, content = config.get("body"), None
        made: Any = None
        if code := config.get("transformRequest"):
            made = await self._transformed_request(code, call)
            names = names if isinstance(made, (dict, list)) else {**names, "prompt": made}
        if isinstance(body, (dict, list)):
            body = _filled_body(body, names)
        elif isinstance(body, str):
            body = _text_body(body, names, headers)
        if isinstance(made, dict) and isinstance(body, dict):
            body = {**body, **made}
        elif body is None or isinstance(made, (dict, list)):
            body = made
        if body is not None and method != "GET":  # as in promptfoo, whose GET requests have no body
            structured = isinstance(body, (dict, list))
            content = (compact_json(body) if structured else template_text(body)).encode()
            kind = next((value for name, value in headers.items() if name.lower() == "content-type"), None)
            if kind is None:
                headers["Content-Type"] = _JSON if structured else _FORM
            elif structured and "json" not in kind.lower():
                raise TargetError(f"a body of type {kind} is a text: expected one, found a mapping or a list")
        query = {name: render(template_text(value), names) for name, value in config.get("queryParams", {}).items()}
        url = httpx.URL(_LINE_ENDS.sub("", render(self._url, names)))
        url = url.copy_merge_params(query) if query else url  # httpx encodes the whole query again
        encoded = httpx.Headers(headers, encoding="latin-1")  # as promptfoo; by itself, httpx takes ASCII only
        return self._client.build_request(method, url, headers=encoded, content=content)

    async def _transformed_request(self, code: str, call: ProviderCall) -> Any:
        """What `transformRequest` makes of the prompt: keys of the body, or another text for it."""
        given = {"prompt": call.prompt, "vars": call.context["vars"], "context": call.context}
        if in_file(code):
            return await call_file(self._folder, code, "transform_request", [*given.values()])
        return await requested(code, given, self._folder)

    async def _send(self, request: httpx.Request) -> tuple[int, httpx.Headers, str]:
        try:
            response = await self._client.send(request, stream=True)
            try:
                async with aclosing(pieces(response, _CAP)) as body:
                    received = b"".join([piece async for piece in body])
            finally:
                await response.aclose()
        except httpx.TimeoutException as error:
            raise TargetError(f"no answer in time: {type(error).__name__}", "timeout") from None
        except httpx.HTTPError as error:
            raise TargetError(f"no answer: {type(error).__name__}: {shortened(str(error))}") from None
        return response.status_code, response.headers, received.decode(errors="replace")

    async def _accept(self, status: int, headers: httpx.Headers, text: str) -> None:
        """Raise TargetError for a status that is not a success, unless `validateStatus` accepts it."""
        rule = self._config.get("validateStatus")
        if rule is not None:
            try:
                names = {"status": status}
                accepted = bool(await run_javascript(self._folder, body_returning(str(rule), names), names))
            except ScriptError as error:
                raise TargetError(f"validateStatus: {error}") from None
        else:
            accepted = status < 400
        if not accepted:
            kind = "http_5xx" if status // 100 == 5 else "provider_error"
            message = f"HTTP {status}: {shortened(text[:EXCERPT_BYTES])}"
            raise TargetError(message, kind, status=status, retry_after=retry_after(headers))

    async def _read(self, status: int, headers: httpx.Headers, text: str, call: ProviderCall) -> ProviderReply:
        document = _parsed_json(text)
        code = self._config.get("transformResponse", self._config.get("responseParser"))
        if not code:
            return ProviderReply(text if document is None else document)
        whole = document if isinstance(document, (dict, list)) else None
        phrase = httpx.codes.get_reason_phrase(status)
        response = {"data": document, "status": status, "statusText": phrase, "headers": dict(headers)}
        try:
            reply = await response_of(code, whole, text, {**call.context, "response": response}, self._folder)
        except ScriptError as error:
            raise TargetError(
                f"transformResponse: {error}; the response: {shortened(text)}", "transform_error"
            ) from None
        # data of the body that names an error is an output; what the code has made reports an error
        if isinstance(reply, dict) and ("output" in reply or (reply.get("error") and not _holds(whole, reply))):
            from evalwright.formats.promptfoo.calls.replies import reply_in

            return reply_in(reply)
        if reply is None:
            raise TargetError(f"transformResponse returned nothing; the response: {shortened(text)}", "transform_error")
        return ProviderReply(reply)

    async def close(self) -> None:
        await self._client.aclose()


def _holds(document: Any, value: Any) -> bool:
    """Whether a value is the document or, at any depth, in it."""
    parts = [document]
    while parts:
        part = parts.pop()
        if part == value:
            return True
        parts += part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    return False


def _filled_body(value: Any, names: Mapping[str, Any]) -> Any:
    """A body with its templates filled in; if the result is just a JSON value, the value itself."""
    if isinstance(value, dict):
        return {key: _filled_body(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled_body(item, names) for item in value]
    if not isinstance(value, str):
        return value
    text = render(value, names)
    if text != value and text[:1] in ("[", "{"):
        return _parsed_json(text)
    return text


def _text_body(body: str, names: Mapping[str, Any], headers: Mapping[str, str]) -> Any:
    if any(name.lower() == "content-type" and "json" in value for name, value in headers.items()):
        return _json_or_text(body, names)
    return render(body, names)


def _json_or_text(template: str, names: Mapping[str, Any]) -> Any:
    """A template, rendered and parsed if it is one of JSON. Values are escaped where it needs that: not those that
    `dump` has quoted."""
    try:
        return _filled_body(json.loads(template), names)
    except (ValueError, RecursionError):
        escaped = {key: compact_json(value)[1:-1] if isinstance(value, str) else value for key, value in names.items()}
        bodies = (_parsed_json(render(template, values)) for values in (names, escaped))
        return next((parsed for parsed in bodies if not isinstance(parsed, str)), render(template, names))


def _parsed_json(text: str) -> Any:
    try:
        return as_javascript(json.loads(text))
    except (ValueError, RecursionError):
        return text
