"""Fetches what a platform recorded about a call, and merges parts of it into the trace."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any
from urllib.parse import quote

import httpx
import msgspec

from evalwright.errors import InputError, Problem, TargetError
from evalwright.files.key_paths import as_written
from evalwright.model.trace import Doubt, Trace
from evalwright.targets.http.config import header_mistakes

__all__ = ["Langfuse", "OpenTelemetryBackend", "Phoenix"]

_TIMEOUT = 10.0
_LARGEST = 10 * 2**20
_MERGEABLE = ("output", "messages", "tool_calls", "tool_results", "metrics", "extra", "spans")


class _Platform:
    """Keys: `endpoint`, `headers`, `wait_for_ingestion_seconds`, `max_attempts`, `merge` {trace path: JSONPath}."""

    default_endpoint: str | None = None
    config_keys: tuple[str, ...] = (
        "endpoint", "host", "headers", "wait_for_ingestion_seconds", "max_attempts", "merge",
    )  # fmt: skip

    def __init__(self, config: dict[str, Any]) -> None:
        problems = [Problem("", message, key=key) for key, message in (*self._mistakes(config), *_limits(config))]
        if problems:
            raise InputError(problems)
        self._endpoint = str(config.get("endpoint") or config.get("host") or self.default_endpoint).rstrip("/")
        self._headers = {**(config.get("headers") or {}), **self._credentials(config)}
        self._wait = float(config.get("wait_for_ingestion_seconds", 2))
        self._attempts = int(config.get("max_attempts", 5))
        self._merge = [(path, query, _compiled(query)) for path, query in (config.get("merge") or {}).items()]
        self._unfound = {path for path, _, _ in self._merge}
        """Paths that have found nothing so far: if in no record at all, they are most likely misspelt."""

    def _mistakes(self, config: dict[str, Any]) -> list[tuple[str, str]]:
        problems = []
        endpoint = config.get("endpoint") or config.get("host") or self.default_endpoint
        if not isinstance(endpoint, str) or not endpoint.startswith(("http://", "https://")):
            problems.append(("endpoint", f"'endpoint' must be a URL, found {as_written(endpoint)}"))
        merge = config.get("merge", {})
        if not isinstance(merge, dict):
            return [*problems, ("merge", f"'merge' must be a mapping, found {as_written(merge)}")]
        for path, query in merge.items():
            if str(path).partition(".")[0] not in _MERGEABLE:
                problems.append((f"merge.{path}", f"expected a path below one of {', '.join(_MERGEABLE)}"))
            try:
                _compiled(str(query))
            except Exception as error:
                problems.append((f"merge.{path}", f"not a JSONPath: {error}"))
        return problems

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
        plain = msgspec.to_builtins(trace)
        for path, _, compiled in self._merge:
            values = [match.value for match in compiled.find(record)]
            if values:
                self._unfound.discard(path)
                _put(plain, path.split("."), values[0] if len(values) == 1 else values)
        merged = msgspec.convert(plain, Trace)
        for name in _MERGEABLE:
            setattr(trace, name, getattr(merged, name))
        never = ((path, query) for path, query, _ in self._merge if path in self._unfound)
        return [Doubt(f"merge.{path}: {query} found nothing", if_all=True) for path, query in never]

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
                        why = f"HTTP status {response.status_code}"
                except httpx.HTTPError as error:
                    why = f"{type(error).__name__}: the platform could not be reached"
                except TargetError as error:
                    why = str(error)
        raise LookupError(f"no record of the trace after {self._attempts} attempts: {why}")


async def _document(response: httpx.Response) -> Any:
    """The JSON of a reply. Raises TargetError if it is not JSON, too large or incomplete."""
    from evalwright.targets.http.body import json_of, pieces

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


def _compiled(query: str) -> Any:
    from evalwright.sandbox.jsonpaths import parsed

    return parsed(query if query.startswith("$") else f"$.{query}")


def _put(plain: dict[str, Any], steps: list[str], value: Any) -> None:
    """Set a value; a single value becomes a list if the trace has one there."""
    if steps[0] in ("messages", "tool_calls", "tool_results", "spans") and len(steps) == 1:
        value = value if isinstance(value, list) else [value]
    place: Any = plain
    for step in steps[:-1]:
        if not isinstance(place.get(step), dict):
            place[step] = {}
        place = place[step]
    place[steps[-1]] = value


class OpenTelemetryBackend(_Platform):
    """A backend with the API of Tempo or Jaeger: `GET <endpoint>/api/traces/<id>`."""

    def url(self, trace_id: str) -> str:
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
