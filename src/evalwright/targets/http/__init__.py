"""An HTTP endpoint as the system under test: target `http`."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import aclosing, suppress
from typing import Any

import httpx

from evalwright.errors import InputError, Problem, TargetError, counted
from evalwright.files.key_paths import as_written
from evalwright.files.masker import Masker, looks_secret
from evalwright.llm.failures import retry_after
from evalwright.llm.replies import is_unfinished
from evalwright.model.plan import Variant
from evalwright.model.snapshot import Case
from evalwright.model.trace import Answer, Doubt, Metrics
from evalwright.targets.build import optional_parts
from evalwright.targets.failures import target_failure
from evalwright.targets.http.body import EXCERPT_BYTES, Interrupted, error_in, json_of, pieces, shortened
from evalwright.targets.http.client import new_client
from evalwright.targets.http.config import HTTP_KEYS, mistakes, place_of, unread_entries
from evalwright.targets.http.mapping import METRICS, NEEDED, ResponseMapping, strange_find
from evalwright.targets.http.presets import PRESETS
from evalwright.targets.http.streams import EventReader, StreamedAnswer, event_paths
from evalwright.targets.http.turns import Turns
from evalwright.targets.templates import Template, never_filled, template_of

__all__ = ["Http"]

_HEADERS = {"Content-Type": "application/json", "User-Agent": "evalwright"}
_CAP = 10 * 2**20
_ERROR_SECONDS = 2.0
"""Seconds to wait for the body of an error response: the status alone would do."""


class Http:
    """An address (`endpoint`) that is called once per cell with JSON.

    `response_mapping` or `provider` says where the answer is in the response. Redirects are not followed, calls are
    retried by the runner, cookies are not kept between cells. Of the environment, proxies and `.netrc` are ignored;
    SSL_CERT_FILE and SSL_CERT_DIR are not. A response may have `max_response_bytes` (10 MiB), counted after
    decompression. The runner limits the time of the whole call.
    """

    config_keys: tuple[str, ...] = HTTP_KEYS
    template_keys: tuple[str, ...] = ("request_template",)

    @staticmethod
    def unread(config: Mapping[Any, Any]) -> Iterator[tuple[str, str]]:
        """Entries of mappings that have no effect, by key and message."""
        return unread_entries(config)

    def __init__(self, variant: Variant) -> None:
        config = variant.config
        problems = [Problem(file="", key=key, message=message) for key, message in mistakes(config)]
        written, template = config.get("request_template"), None
        if written and isinstance(written, str):
            template = template_of(written, "request_template", variant, problems)
        problems += never_filled(variant, ("endpoint", "headers", "query_params", "body"), "request_template")
        if problems:
            raise InputError(problems)
        preset = PRESETS.get(config.get("provider") or "")
        if preset and not written:
            template = Template(preset.request_template, "request_template", evalh_rules=variant.evalh_rules)
        self._needed = () if variant.evalh_rules else tuple(n for n in NEEDED if n not in optional_parts(config))
        self._strip_think: bool = config.get("strip_think", True)
        self._body = _RequestBody(config.get("body") or {}, template)
        known = preset.response_mapping if preset else {}
        self._mapping = ResponseMapping(config.get("response_mapping") or {}, known, self._strip_think)
        self._stream_format: str | None = config["stream_format"] if config.get("stream") else None
        self._event_paths = event_paths(config) if self._stream_format else {}
        self._method: str = config.get("method", "POST").upper()
        self._url = httpx.URL(config["endpoint"]).copy_merge_params(config.get("query_params") or {})
        self._place = place_of(config["endpoint"])
        self._headers = httpx.Headers(_HEADERS)
        self._headers.update(config.get("headers") or {})
        self._cap: int = config.get("max_response_bytes", _CAP)
        self._masker = Masker(dict(_secrets(config.get("headers") or {}, self._url)))
        self._lenient = variant.evalh_rules
        self._unfound = {} if variant.evalh_rules or self._stream_format else self._mapping.own
        """Paths that have found nothing so far: if in no reply at all, they are most likely misspelt."""
        self._malformed = self._mapping.problems + [p.problem for p in self._event_paths.values() if p.problem]
        self._client: httpx.AsyncClient | None = None

    @property
    def address(self) -> str:
        """The service that is called: if it asks for time, all cells that call it wait."""
        return f"{self._url.scheme}://{self._url.netloc.decode('ascii', 'replace').rpartition('@')[2]}"

    async def open(self) -> None:
        self._client = new_client()

    async def run(self, case: Case, trial: int) -> Answer:
        if self._malformed:
            raise TargetError("; ".join(self._malformed))
        content = self._body.content(case)
        started = time.monotonic()
        try:
            response = await self._send(content)
            try:
                return await self._read(response, started)
            finally:
                await response.aclose()
        except TargetError as error:
            # Servers quote headers and addresses in their errors, and our keys with them.
            message = self._masker.mask_text(f"{self._method} {self._place}: {error}")
            raise TargetError(message, error.type, status=error.status, retry_after=error.retry_after) from None

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    async def _send(self, content: bytes) -> httpx.Response:
        assert self._client is not None, "open() comes first"
        request = self._client.build_request(self._method, self._url, headers=self._headers, content=content)
        try:
            return await self._client.send(request, stream=True)
        except httpx.TimeoutException as error:
            raise TargetError(f"no connection or answer in time: {type(error).__name__}", "timeout") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise TargetError(
                f"no answer: {type(error).__name__}: {shortened(_message_of(error))}".rstrip(": ")
            ) from None

    async def _read(self, response: httpx.Response, started: float) -> Answer:
        if not response.is_success:
            raise await _failure(response, self._masker)
        if self._stream_format is not None:
            return await self._read_stream(self._stream_format, response, started)
        async with aclosing(pieces(response, self._cap)) as body:
            received = b"".join([piece async for piece in body])
        document = json_of(received, response, self._masker.mask_text)
        parts = self._mapping.parts(document)
        try:
            return self._answer_in(parts, document, response, received)
        except TargetError as error:
            answer = self._mapping.answer({name: parts.get(name) for name in METRICS})
            if answer.metrics == Metrics():
                raise
            answer.error = target_failure(error)  # with what the call has cost
            return answer

    def _answer_in(self, parts: Mapping[str, Any], document: Any, response: httpx.Response, received: bytes) -> Answer:
        missing = self._mapping.missing(parts, document, self._needed)
        if missing or all(part in (None, "", []) for part in parts.values()):
            self._refuse_error(error_in(document), response)
        if missing:
            excerpt = shortened(self._masker.mask_text(received[:EXCERPT_BYTES].decode(errors="replace")))
            raise TargetError(f"no answer: {'; '.join(missing)} in the reply {excerpt}")
        if not self._lenient and (strange := self._mapping.strange(parts)):
            raise TargetError(self._masker.mask_text("; ".join(strange)))
        if self._unfound:
            still = self._mapping.unmatched_paths(parts, document, self._unfound)
            self._unfound = {name: self._unfound[name] for name in still}
        answer = self._mapping.answer(parts)
        unread = self._mapping.unread_numbers(parts, answer)
        answer.doubts = (
            *(
                doubt for doubt in answer.doubts if not doubt.example.startswith("metrics.")
            ),  # named by their paths below
            *(Doubt(f"{path} found nothing", if_all=True) for path in self._unfound.values()),
            *(Doubt(f"{path} found no number that can be used", self._excerpt(number)) for path, number in unread),
        )
        return answer

    def _refuse_error(self, message: str | None, response: httpx.Response) -> None:
        """Raise TargetError if a service reports an error with a success status."""
        if message is not None:
            raise TargetError(f"HTTP {response.status_code}, but the body is an error: {self._excerpt(message)}")

    async def _read_stream(self, form: str, response: httpx.Response, started: float) -> Answer:
        reader, whole, interruption = EventReader(form, self._event_paths), StreamedAnswer(), None
        try:
            async with aclosing(pieces(response, self._cap)) as body:
                async for piece in body:
                    now = time.monotonic() - started
                    if any(whole.add(event, now) for event in reader.feed(piece)):
                        return self._streamed_answer(whole, reader, response, None)
        except Interrupted as error:
            if not whole.chunks:
                raise
            interruption = str(error)
        any(whole.add(event, time.monotonic() - started) for event in reader.end())
        if reader.cut and interruption is None:
            interruption = "the stream ends inside an event"
        return self._streamed_answer(whole, reader, response, interruption)

    def _streamed_answer(
        self, whole: StreamedAnswer, reader: EventReader, response: httpx.Response, interruption: str | None
    ) -> Answer:
        if reader.turns is not None:
            return self._answer_of_turns(whole, reader, reader.turns, interruption)
        if whole.empty:
            self._refuse_error(whole.error, response)
        if not self._lenient and whole.strange:
            problem = strange_find(self._event_paths["tool_call"].written, "tool_calls", whole.strange[0])
            raise TargetError(self._masker.mask_text(problem))
        if "final_answer" in self._needed and not whole.spoke and whole.empty:
            path = self._event_paths.get("token")
            where = f"{path.written} finds nothing in" if path is not None else "there is no text in"
            self._refuse_other(whole, reader)
            raise TargetError(f"no answer: {where} the {counted(whole.chunks, 'event')} of the stream")
        if interruption is None and whole.error is not None:
            interruption = f"the service reports an error: {self._excerpt(whole.error)}"
        if interruption is None and not whole.completed and "done" in self._event_paths and not self._lenient:
            written = self._event_paths["done"].written
            interruption = f"{written} finds nothing in the {counted(whole.chunks, 'event')} of the stream"
        answer = whole.answer(self._strip_think, interruption)
        if whole.misread:
            answer.doubts += (Doubt("paths read only a part of what the stream says", whole.misread),)
        if interruption is not None:
            answer.doubts += (Doubt("the end of the stream is missing", interruption),)
        return answer

    def _answer_of_turns(
        self, whole: StreamedAnswer, reader: EventReader, turns: Turns, interruption: str | None
    ) -> Answer:
        """The answer in the events of a protocol; an error of the service is one of the answer."""
        events = counted(whole.chunks, "event")
        if whole.error is None and turns.empty and turns.structured is None and "final_answer" in self._needed:
            types = f", of the types {', '.join(sorted(turns.unread))}" if turns.unread else ""
            ending = f", which ends with {turns.finish_reason!r}" if turns.finish_reason else ""
            about = self._excerpt(types + ending)
            self._refuse_other(whole, reader)
            raise TargetError(f"no answer: there is no text in the {events} of the stream{about}")
        if whole.error is None and turns.nameless:
            raise TargetError("the stream has a tool call without a name")
        whole.completed = whole.completed or turns.ended or (not reader.end_mark and interruption is None)
        if interruption is None and not whole.completed:
            interruption = f"there is no {reader.end_mark} in the {events} of the stream"
        answer = whole.of_turns(turns, self._strip_think, interruption)
        if whole.error is not None:
            answer.error = target_failure(TargetError(f"the service reports an error: {self._excerpt(whole.error)}"))
        elif interruption is not None:
            answer.doubts += (Doubt("the end of the stream is missing", interruption),)
        elif turns.finish_reason == "interrupt":
            answer.doubts += (Doubt("the agent stopped to ask a person"),)
        elif is_unfinished(turns.finish_reason):
            reason = self._excerpt(str(turns.finish_reason))
            answer.doubts += (Doubt(f"the reply was cut off, ending with {reason!r:.40},"),)
        return answer

    def _refuse_other(self, whole: StreamedAnswer, reader: EventReader) -> None:
        """Raise TargetError if a stream without events has something else, as a page, or an error with status 200."""
        if not whole.chunks and reader.head.strip():
            text = self._excerpt(reader.head.decode(errors="replace"))
            raise TargetError(f"expected events, found a response that begins with {text}")

    def _excerpt(self, text: str) -> str:
        return shortened(self._masker.mask_text(text[:EXCERPT_BYTES]))


async def _failure(response: httpx.Response, masker: Masker) -> TargetError:
    """The error for an unsuccessful response, with as much of its body as arrives soon."""
    status = response.status_code
    received = bytearray()
    with suppress(TargetError, TimeoutError):
        async with asyncio.timeout(_ERROR_SECONDS), aclosing(pieces(response, _CAP)) as body:
            async for piece in body:
                received += piece[:EXCERPT_BYTES]
                if len(received) >= EXCERPT_BYTES:
                    break
    excerpt = shortened(masker.mask_text(received.decode(errors="replace")))
    message = f"HTTP {status}: {excerpt}" if excerpt else f"HTTP {status} with an empty body"
    kind = "http_5xx" if status // 100 == 5 else "adapter_error"
    return TargetError(message, kind, status=status, retry_after=retry_after(response.headers))


def _message_of(error: BaseException | None) -> str:
    """The message of an error, or of the one that it was raised for: httpx hides why TLS or a connection broke."""
    while error is not None:
        if message := str(error):
            return message
        error = error.__cause__ or error.__context__
    return ""


def _secrets(headers: Mapping[str, str], url: httpx.URL) -> Iterator[tuple[str, Any]]:
    """Values that a server may repeat in its errors but no record may contain."""
    for name, value in headers.items():
        if looks_secret(name):
            yield f"{name} (whole)", value
            yield name, value.split(" ")[-1]
    yield "password", url.password
    for name, value in url.params.multi_items():
        if looks_secret(name):
            yield f"?{name}", value


class _RequestBody:
    """`body` overlaid by the rendered `request_template`, or by the case's input if there is no template.

    Without `body`, a template may render any JSON, as a batch of calls that is a list.
    """

    def __init__(self, body: dict[str, Any], template: Template | None) -> None:
        self._body, self._template = body, template

    def content(self, case: Case) -> bytes:
        """The JSON text to send."""
        try:
            return json.dumps(self._document(case), separators=(",", ":"), allow_nan=False, default=str).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise TargetError(f"cannot write the request as JSON: {error}") from None

    def _document(self, case: Case) -> Any:
        if self._template is None:
            overlay, what = case.input, "the input of a case without 'request_template'"
        else:
            overlay, what = _rendered(self._template, case), "the rendered 'request_template', which overlays 'body',"
            if not self._body:
                return overlay
        if not isinstance(overlay, dict):
            raise TargetError(f"{what} must be a JSON object, found {as_written(overlay)}")
        return {**self._body, **overlay}


def _rendered(template: Template, case: Case) -> Any:
    try:
        return json.loads(template.render(case))
    except (ValueError, RecursionError) as error:
        raise TargetError(
            f"the rendered 'request_template' is not JSON: {error}; quote strings, or write {{{{ path | json }}}}"
        ) from None
