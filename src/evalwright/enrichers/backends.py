"""Fetches what a platform recorded about a call, parts of which complete the trace."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any
from urllib.parse import quote

import httpx

from evalwright.enrichers.merging import Merge, merge_mistakes
from evalwright.errors import InputError, Problem, TargetError
from evalwright.files.key_paths import as_written
from evalwright.model.trace import Doubt, Trace
from evalwright.targets.http.body import json_of, pieces
from evalwright.targets.http.config import header_mistakes

__all__ = ["Langfuse", "OpenTelemetryBackend", "Phoenix"]

_TIMEOUT = 10.0
_LARGEST = 10 * 2**20
_NOT_YET = (404, 408, 425, 429)
"""Statuses below 500 that may change: the record may still appear, or the platform asks for patience."""
_ADDRESSES = ("endpoint", "host", "base_url")


class _Platform:
    """Keys: `endpoint`, `headers`, `wait_for_ingestion_seconds`, `max_attempts`, `merge` {trace path: JSONPath}."""

    default_endpoint: str | None = None
    config_keys: tuple[str, ...] = (
        *_ADDRESSES, "headers", "wait_for_ingestion_seconds", "max_attempts", "merge",
    )  # fmt: skip

    def __init__(self, config: dict[str, Any]) -> None:
        problems = [Problem("", message, key=key) for key, message in (*self._mistakes(config), *_limits(config))]
        if problems:
            raise InputError(problems)
        self._endpoint = str(self._address(config)).rstrip("/")
        headers = config.get("headers") or {}
        own_key = any(name.lower() == "authorization" for name in headers)
        self._headers = headers if own_key else {**headers, **self._credentials(config)}
        self._wait = float(config.get("wait_for_ingestion_seconds", 2))
        self._attempts = int(config.get("max_attempts", 5))
        self._merge = Merge(config.get("merge") or {})

    def _address(self, config: dict[str, Any]) -> Any:
        return next((config[key] for key in _ADDRESSES if config.get(key)), self.default_endpoint)

    def _mistakes(self, config: dict[str, Any]) -> Iterator[tuple[str, str]]:
        endpoint = self._address(config)
        if not isinstance(endpoint, str) or not endpoint.startswith(("http://", "https://")):
            yield "endpoint", f"'endpoint' must be a URL, found {as_written(endpoint)}"
        for key in ("public_key", "secret_key", "api_key"):
            if not isinstance(config.get(key), str | None):
                yield key, "expected text"
        if config.get("merge") is not None:
            yield from merge_mistakes(config["merge"])

    def _credentials(self, config: dict[str, Any]) -> dict[str, str]:
        return {}

    def url(self, trace_id: str) -> str:
        """The address of the record; `trace_id` is quoted, because it comes from the system under test."""
        raise NotImplementedError

    async def enrich(self, trace: Trace) -> list[Doubt]:
        """Merge the platform's record into the trace. Raises LookupError or ValueError, which the run notes in it."""
        trace_id = trace.extra.get("trace_id")
        if not isinstance(trace_id, str) or not trace_id.strip("."):
            raise LookupError("the trace has no extra.trace_id")
        record = await self._fetch(self.url(quote(trace_id, safe="")))
        return self._merge.apply(record, trace)

    async def _fetch(self, url: str) -> Any:
        """The platform's record, which may take a while to appear."""
        why = ""
        headers = {"Accept-Encoding": "gzip", **self._headers}
        async with httpx.AsyncClient(headers=headers, timeout=_TIMEOUT) as client:
            for attempt in range(self._attempts):
                if attempt or self._wait:
                    await asyncio.sleep(self._wait)
                try:
                    async with client.stream("GET", url) as response:
                        if response.is_success:
                            return await _document(response)
                        status = response.status_code
                        why = f"HTTP status {status}"
                        if status < 500 and status not in _NOT_YET:
                            raise LookupError(f"the platform refused to give the record: {why}")
                except httpx.HTTPError as error:
                    why = f"{type(error).__name__}: the platform could not be reached"
                except TargetError as error:
                    why = str(error)
        raise LookupError(f"no record of the trace after {self._attempts} attempts: {why}")


async def _document(response: httpx.Response) -> Any:
    """The JSON of a reply. Raises TargetError if it is not JSON, too large or incomplete."""
    async with aclosing(pieces(response, _LARGEST)) as body:
        received = b"".join([piece async for piece in body])
    return json_of(received, response, lambda _: "(not shown)")


def _limits(config: dict[str, Any]) -> Iterator[tuple[str, str]]:
    wait, attempts = config.get("wait_for_ingestion_seconds", 2), config.get("max_attempts", 5)
    if isinstance(wait, bool) or not isinstance(wait, (int, float)) or not 0 <= wait < float("inf"):
        yield "wait_for_ingestion_seconds", f"expected seconds, 0 or more, found {as_written(wait)}"
    if isinstance(attempts, bool) or not isinstance(attempts, int) or attempts < 1:
        yield "max_attempts", f"expected a whole number from 1, found {as_written(attempts)}"
    yield from header_mistakes(config.get("headers"))


class OpenTelemetryBackend(_Platform):
    """A backend with the API of Tempo or Jaeger: `GET <endpoint>/api/traces/<id>`, or an endpoint with `{trace_id}`."""

    def url(self, trace_id: str) -> str:
        if "{trace_id}" in self._endpoint:
            return self._endpoint.replace("{trace_id}", trace_id)
        return f"{self._endpoint}/api/traces/{trace_id}"


class Langfuse(_Platform):
    """Langfuse's public API; keys from `public_key` and `secret_key`, or from the usual environment variables."""

    default_endpoint: str = "https://cloud.langfuse.com"
    config_keys: tuple[str, ...] = (*_Platform.config_keys, "public_key", "secret_key")

    def _credentials(self, config: dict[str, Any]) -> dict[str, str]:
        public = config.get("public_key") or os.environ.get("LANGFUSE_PUBLIC_KEY", "")
        secret = config.get("secret_key") or os.environ.get("LANGFUSE_SECRET_KEY", "")
        if not (public and secret):
            return {}
        return {"Authorization": "Basic " + base64.b64encode(f"{public}:{secret}".encode()).decode()}

    def url(self, trace_id: str) -> str:
        return f"{self._endpoint}/api/public/traces/{trace_id}"


class Phoenix(_Platform):
    """Arize Phoenix; the key from `api_key` or PHOENIX_API_KEY."""

    default_endpoint: str = "http://127.0.0.1:6006"
    config_keys: tuple[str, ...] = (*_Platform.config_keys, "api_key")

    def _credentials(self, config: dict[str, Any]) -> dict[str, str]:
        key = config.get("api_key") or os.environ.get("PHOENIX_API_KEY")
        return {"Authorization": f"Bearer {key}"} if key else {}

    def url(self, trace_id: str) -> str:
        return f"{self._endpoint}/v1/traces/{trace_id}"
