"""The batch APIs of OpenAI (`/v1/batches`) and Anthropic (`/v1/messages/batches`), through the official clients."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from evalwright.llm.batches import BatchAnswer
from evalwright.llm.connections import replies_up_to
from evalwright.llm.failures import CallFailed, failure_of
from evalwright.llm.replies import reading_reply

__all__ = ["AnthropicBatches", "OpenAIBatches"]

_ENDPOINT = "/v1/chat/completions"
_LARGEST = 2**30
"""Bytes of the answers to one batch."""
_STATUS = {"invalid_request_error": 400, "authentication_error": 401, "permission_error": 403, "rate_limit_error": 429}
"""HTTP statuses of Anthropic's errors; all others are its own fault."""


class OpenAIBatches:
    """Batches of chat completions: a file of questions is uploaded, and files of answers and errors are fetched."""

    def __init__(self, client: Any, errors: type[Exception]) -> None:
        self._client, self._errors = client, errors

    async def submit(self, questions: Mapping[str, Mapping[str, Any]]) -> str:
        lines = [
            msgspec.json.encode({"custom_id": key, "method": "POST", "url": _ENDPOINT, "body": body})
            for key, body in questions.items()
        ]
        with _failing(self._errors):
            file = await self._client.files.create(file=("questions.jsonl", b"\n".join(lines)), purpose="batch")
            batch = await self._client.batches.create(
                input_file_id=file.id, endpoint=_ENDPOINT, completion_window="24h"
            )
            return str(batch.id)

    async def is_done(self, batch: str) -> bool:
        with _failing(self._errors):
            state = await self._client.batches.retrieve(batch)
            if state.status == "failed":
                reasons = getattr(state.errors, "data", None) or []
                message = "; ".join(str(reason.message) for reason in reasons[:3])
                raise CallFailed("bad_request", f"{batch} failed: {message or 'its provider does not say why'}")
            return state.status in ("completed", "expired", "cancelled")

    async def answers(self, batch: str) -> AsyncIterator[BatchAnswer]:
        with _failing(self._errors):
            state = await self._client.batches.retrieve(batch)
            for name in (state.output_file_id, state.error_file_id):
                if name:
                    with replies_up_to(_LARGEST):
                        content = await self._client.files.content(name)
                    for line in content.content.splitlines():
                        if line.strip():
                            yield _batch_answer(msgspec.json.decode(line))


def _batch_answer(row: Any) -> BatchAnswer:
    response = row.get("response")
    if response:
        return BatchAnswer(row["custom_id"], int(response["status_code"]), response["body"])
    return BatchAnswer(row["custom_id"], 504, {"error": row.get("error") or {}})


class AnthropicBatches:
    """Batches of messages."""

    def __init__(self, client: Any, errors: type[Exception]) -> None:
        self._client, self._errors = client, errors

    async def submit(self, questions: Mapping[str, Mapping[str, Any]]) -> str:
        requests = [{"custom_id": key, "params": body} for key, body in questions.items()]
        with _failing(self._errors):
            batch = await self._client.messages.batches.create(requests=[], extra_body={"requests": requests})
            return str(batch.id)

    async def is_done(self, batch: str) -> bool:
        with _failing(self._errors):
            state = await self._client.messages.batches.retrieve(batch)
            return bool(state.processing_status == "ended")

    async def answers(self, batch: str) -> AsyncIterator[BatchAnswer]:
        with _failing(self._errors):
            with replies_up_to(_LARGEST):
                rows = await self._client.messages.batches.results(batch)
            async for row in rows:
                result = row.result.model_dump(mode="json")
                if result["type"] == "succeeded":
                    yield BatchAnswer(row.custom_id, 200, result["message"])
                elif result["type"] == "errored":
                    inner = (result.get("error") or {}).get("error") or {}
                    yield BatchAnswer(row.custom_id, _STATUS.get(str(inner.get("type")), 500), {"error": inner})
                else:
                    yield BatchAnswer(row.custom_id, 504, {"error": {"message": f"the question {result['type']}"}})


@contextmanager
def _failing(errors: type[Exception]) -> Iterator[None]:
    """Turns the exceptions of a client, and unreadable replies, into CallFailed."""
    with reading_reply():
        try:
            yield
        except errors as error:
            raise failure_of(error) from error
