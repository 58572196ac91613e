"""Fetch what a platform recorded of a call, and merge parts of it into the trace (specification evalh, d.7)."""

from __future__ import annotations

import asyncio
import base64
import os
from typing import Any

import msgspec

from evalwright.errors import InputError, Problem
from evalwright.model.trace import Trace

__all__ = ["Langfuse", "OpenTelemetryBackend", "Phoenix"]

_TIMEOUT = 10.0
_LARGEST = 10 * 2**20
_MERGEABLE = ("output", "messages", "tool_calls", "tool_results", "metrics", "extra", "spans")


class _Platform:
    """Keys: `endpoint`, `headers`, `wait_for_ingestion_seconds`, `max_attempts`, `merge` {trace path: JSONPath}."""

    default_endpoint: str | None = None

    def __init__(self, config: dict[str, Any]) -> None:
        problems = [Problem("", message, key=key) for key, message in self._mistakes(config)]
        if problems:
            raise InputError(problems)
        self._endpoint = str(config.get("endpoint") or config.get("host") or self.default_endpoint).rstrip("/")
        self._headers = {**(config.get("headers") or {}), **self._credentials(config)}
        self._wait = float(config.get("wait_for_ingestion_seconds", 2))
        self._attempts = int(config.get("max_attempts", 5))
        self._merge = [(path.split("."), _compiled(query)) for path, query in (config.get("merge") or {}).items()]

    def _mistakes(self, config: dict[str, Any]) -> list[tuple[str, str]]:
        found = []
        endpoint = config.get("endpoint") or config.get("host") or self.default_endpoint
        if not isinstance(endpoint, str) or not endpoint.startswith(("http://", "https://")):
            found.append(("endpoint", f"'endpoint' must be a URL, found {endpoint!r}"))
        merge = config.get("merge", {})
        if not isinstance(merge, dict):
            return [*found, ("merge", f"'merge' must be a mapping, found {merge!r}")]
        for path, query in merge.items():
            if str(path).partition(".")[0] not in _MERGEABLE:
                found.append((f"merge.{path}", f"expected a path below one of {', '.join(_MERGEABLE)}"))
            try:
                _compiled(str(query))
            except Exception as error:
                found.append((f"merge.{path}", f"no JSONPath: {error}"))
        return found

    def _credentials(self, config: dict[str, Any]) -> dict[str, str]:
        return {}

    def url(self, trace_id: str) -> str:
        raise NotImplementedError

    async def enrich(self, trace: Trace) -> None:
        """Raises LookupError or ValueError, which the run notes in the trace."""
        trace_id = trace.extra.get("trace_id")
        if not isinstance(trace_id, str) or not trace_id:
            raise LookupError("the trace has no extra.trace_id")
        found = await self._fetched(trace_id)
        plain = msgspec.to_builtins(trace)
        for steps, query in self._merge:
            values = [match.value for match in query.find(found)]
            if values:
                _put(plain, steps, values[0] if len(values) == 1 else values)
        merged = msgspec.convert(plain, Trace)
        for name in _MERGEABLE:
            setattr(trace, name, getattr(merged, name))

    async def _fetched(self, trace_id: str) -> Any:
        """The platform's record; it may take a while until it is there."""
        import httpx

        why = ""
        async with httpx.AsyncClient(headers=self._headers, timeout=_TIMEOUT) as client:
            for attempt in range(self._attempts):
                if attempt or self._wait:
                    await asyncio.sleep(self._wait)
                try:
                    response = await client.get(self.url(trace_id))
                except httpx.HTTPError as error:
                    why = f"{type(error).__name__}: the platform could not be reached"
                    continue
                if response.is_success and len(response.content) <= _LARGEST:
                    return msgspec.json.decode(response.content)
                why = f"HTTP status {response.status_code}"
        raise LookupError(f"no record of the trace after {self._attempts} attempts: {why}")


def _compiled(query: str) -> Any:
    from jsonpath_ng import ext

    return ext.parser.parse(query if query.startswith("$") else f"$.{query}")


def _put(plain: dict[str, Any], steps: list[str], value: Any) -> None:
    """Set a value; where the trace has a list, a single thing becomes one."""
    if steps[0] in ("messages", "tool_calls", "tool_results", "spans") and len(steps) == 1:
        value = value if isinstance(value, list) else [value]
    place: Any = plain
    for step in steps[:-1]:
        if not isinstance(place.get(step), dict):
            place[step] = {}
        place = place[step]
    place[steps[-1]] = value


class OpenTelemetryBackend(_Platform):
    """A backend with Tempo's or Jaeger's interface: `GET <endpoint>/api/traces/<id>`."""

    def url(self, trace_id: str) -> str:
        return f"{self._endpoint}/api/traces/{trace_id}"


class Langfuse(_Platform):
    """Langfuse's public interface; keys from `public_key`, `secret_key` or the usual variables."""

    default_endpoint = "https://cloud.langfuse.com"

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

    default_endpoint = "http://127.0.0.1:6006"

    def _credentials(self, config: dict[str, Any]) -> dict[str, str]:
        key = config.get("api_key") or os.environ.get("PHOENIX_API_KEY")
        return {"Authorization": f"Bearer {key}"} if key else {}

    def url(self, trace_id: str) -> str:
        return f"{self._endpoint}/v1/traces/{trace_id}"
