"""A backend that is an HTTP service; a module of its own, as few suites have one and httpx takes long to import."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

import httpx

from evalwright.errors import TargetError
from evalwright.formats.letta.conversation import Context
from evalwright.targets.http.body import json_of, pieces, shortened
from evalwright.targets.http.config import place_of

__all__ = ["HttpBackend"]

_CAP = 10 * 2**20
"""Bytes of a reply."""


class HttpBackend:
    """POSTs `{input, messages, sample, model, session_id, agent}`, reads `{output}` or `{messages}`."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def reply(self, message: str, context: Context) -> Any:
        payload = {
            "input": message,
            "messages": [m for turn in context.history for m in turn],
            "sample": context.sample.model_dump(mode="json"),
            "model": context.model,
            "session_id": context.agent_id,
            "agent": context.agent,
        }
        try:
            async with (
                httpx.AsyncClient(timeout=None, trust_env=False) as client,  # the runner limits the time
                client.stream("POST", self._url, json=payload) as response,
                aclosing(pieces(response, _CAP)) as body,
            ):
                received = b"".join([piece async for piece in body])
            if not response.is_success:
                kind = "http_5xx" if response.status_code // 100 == 5 else "adapter_error"
                raise TargetError(f"HTTP {response.status_code}: {shortened(received.decode(errors='replace'))}", kind)
            return _answer_in(json_of(received, response, str), context)
        except httpx.HTTPError as error:
            raise self._with_address(TargetError(f"no answer: {type(error).__name__}: {error}")) from error
        except TargetError as error:
            raise self._with_address(error) from error

    def _with_address(self, error: TargetError) -> TargetError:
        """The error, with the called address but without any secrets in it."""
        return TargetError(f"POST {place_of(self._url)}: {error}", error.type)


def _answer_in(body: Any, context: Context) -> Any:
    if not isinstance(body, dict) or not ("output" in body or "messages" in body):
        raise TargetError("expected a JSON object with 'output' or 'messages'")
    if isinstance(body.get("blocks"), dict):
        context.blocks.update({str(k): str(v) for k, v in body["blocks"].items()})
    if isinstance(body.get("usage"), dict):
        context.usage = [*context.usage, body["usage"]]
    return body["messages"] if "messages" in body else body["output"]
