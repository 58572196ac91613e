"""Calls that may wait: made in batches, which providers answer within a day at half the price.

What was submitted is noted in a file, so that a command that was killed while a batch was in progress finds the answers
when it asks the same questions again. Questions arrive one by one; once no further one arrives for a moment, those so
far form a batch.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from evalwright.errors import InputError
from evalwright.files.durable import private_file
from evalwright.llm.failures import CallFailed
from evalwright.llm.retries import Rules

__all__ = ["SHARE_OF_PRICE", "BatchAnswer", "BatchApi", "Batches"]

SHARE_OF_PRICE = 0.5
"""What OpenAI and Anthropic charge for a token in a batch, as a share of its list price."""
_MOST_QUESTIONS = 10_000
_MOST_BYTES = 90 * 2**20
"""Maximum size of one batch, below the limits of both providers (50,000 and 100,000 questions, 200 and 256 MB)."""
_MOST_SILENCES = 20
"""After this many polls in a row without an answer, a batch is given up for now."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS questions (key TEXT PRIMARY KEY, batch TEXT NOT NULL, status INTEGER, body BLOB)
"""


class BatchAnswer(NamedTuple):
    """The answer to one question: HTTP status and body, as the provider returns them without batches."""

    key: str
    status: int
    body: dict[str, Any]


class BatchApi(Protocol):
    """The batches of one provider, at one address and with one key. Its methods raise CallFailed."""

    async def submit(self, questions: Mapping[str, Mapping[str, Any]]) -> str:
        """Submit questions by key; returns the id of their batch."""

    async def is_done(self, batch: str) -> bool: ...

    def answers(self, batch: str) -> AsyncIterator[BatchAnswer]: ...


class _Question(NamedTuple):
    key: str
    body: Mapping[str, Any]
    size: int


class Batches:
    """All batches of one command, noted in the file at `path`, secrets masked.

    Raises InputError if the file cannot be used.
    """

    def __init__(
        self,
        path: Path,
        rules: Rules,
        mask: Callable[[str], str] = str,
        failed: Callable[[str], None] | None = None,
    ) -> None:
        """`failed` is called with the reason why a whole batch was rejected or gave no answers."""
        self._path, self._rules, self._mask, self._failed = path, rules, mask, failed
        try:
            private_file(path)
            self._notes = sqlite3.connect(path, timeout=10, isolation_level=None)
            self._notes.execute(_SCHEMA)
        except (OSError, sqlite3.Error) as error:
            raise InputError(f"cannot note batches in {path}: {error}") from error
        self._queues: dict[tuple[BatchApi, Any], list[_Question]] = {}
        """By model, too: OpenAI accepts only one model per batch."""
        self._waiting: dict[str, asyncio.Future[BatchAnswer]] = {}
        self._polls: dict[str, asyncio.Task[None]] = {}
        self._collecting: asyncio.TimerHandle | None = None
        self._handing_in: set[asyncio.Task[None]] = set()

    async def ask(self, key: str, api: BatchApi, body: Mapping[str, Any]) -> dict[str, Any]:
        """The provider's reply to a question. Raises CallFailed."""
        noted = self._noted_batch(key)
        # what failed in an earlier batch is asked again
        if noted is None or (noted[1] is not None and noted[1] >= 400):
            answer = await self._next_batch(key, api, body)
        elif noted[1] is None:
            answer = await self._reply_in_batch(key, api, noted[0])
        else:
            answer = BatchAnswer(key, noted[1], msgspec.json.decode(noted[2]))
        if answer.status >= 400:
            raise _refusal_error(answer)
        return answer.body

    async def close(self) -> None:
        tasks = [*self._polls.values(), *self._handing_in]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        (noted,) = self._notes.execute("SELECT count(*) FROM questions").fetchone()
        self._notes.close()
        if not noted:  # no batch was accepted
            self._path.unlink(missing_ok=True)

    def _noted_batch(self, key: str) -> Any:
        return self._notes.execute("SELECT batch, status, body FROM questions WHERE key = ?", (key,)).fetchone()

    def _future(self, key: str) -> asyncio.Future[BatchAnswer]:
        return self._waiting.setdefault(key, asyncio.get_running_loop().create_future())

    async def _next_batch(self, key: str, api: BatchApi, body: Mapping[str, Any]) -> BatchAnswer:
        if key not in self._waiting:  # the same question is asked only once
            self._queues.setdefault((api, body.get("model")), []).append(
                _Question(key, body, len(msgspec.json.encode(body)))
            )
        future = self._future(key)
        if self._collecting is not None:
            self._collecting.cancel()
        self._collecting = asyncio.get_running_loop().call_later(self._rules.batch_idle, self._collect)
        return await asyncio.shield(future)

    async def _reply_in_batch(self, key: str, api: BatchApi, batch: str) -> BatchAnswer:
        future = self._future(key)
        self._poll(api, batch)
        return await asyncio.shield(future)

    def _collect(self) -> None:
        queues, self._queues, self._collecting = self._queues, {}, None
        for (api, _), questions in queues.items():
            for part in _parts(questions):
                task = asyncio.ensure_future(self._hand_in(api, part))
                self._handing_in.add(task)
                task.add_done_callback(self._handing_in.discard)

    async def _hand_in(self, api: BatchApi, part: Sequence[_Question]) -> None:
        try:
            batch = await api.submit({call.key: call.body for call in part})
            self._note(batch, part)
        except Exception as error:  # also one of the notes: what waits for answers must not wait for ever
            self._fail([call.key for call in part], error)
            return
        self._poll(api, batch)

    def _note(self, batch: str, part: Sequence[_Question]) -> None:
        rows = [(call.key, batch) for call in part]
        with self._notes:  # commits, or takes back all of them
            self._notes.execute("BEGIN")
            self._notes.executemany("INSERT OR REPLACE INTO questions VALUES (?, ?, NULL, NULL)", rows)

    def _poll(self, api: BatchApi, batch: str) -> None:
        if batch not in self._polls:
            self._polls[batch] = asyncio.ensure_future(self._fetch(api, batch))
            # one that failed is polled again for whoever asks later
            self._polls[batch].add_done_callback(lambda _: self._polls.pop(batch))

    async def _fetch(self, api: BatchApi, batch: str) -> None:
        try:
            await self._until_done(api, batch)
            async for answer in api.answers(batch):
                self._keep(answer)
        except Exception as error:
            self._fail(self._open_keys(batch), error)
        else:
            for key in self._open_keys(batch):
                self._keep(BatchAnswer(key, 504, {"error": {"message": f"{batch} ended without an answer to it"}}))

    async def _until_done(self, api: BatchApi, batch: str) -> None:
        pause, silences = self._rules.first_poll, 0
        while True:
            try:
                if await api.is_done(batch):
                    return
                silences = 0
            except CallFailed as failure:
                silences += 1
                if not failure.retryable or silences == _MOST_SILENCES:
                    raise
            await asyncio.sleep(pause)
            pause = min(2 * pause, self._rules.longest_poll)

    def _open_keys(self, batch: str) -> list[str]:
        query = "SELECT key FROM questions WHERE batch = ? AND status IS NULL"
        return [str(key) for (key,) in self._notes.execute(query, (batch,))]

    def _keep(self, answer: BatchAnswer) -> None:
        self._notes.execute(
            "UPDATE questions SET status = ?, body = ? WHERE key = ?",
            (answer.status, self._mask(msgspec.json.encode(answer.body).decode()).encode(), answer.key),
        )
        future = self._waiting.pop(answer.key, None)
        if future is not None and not future.done():
            future.set_result(answer)

    def _fail(self, keys: Sequence[str], error: Exception) -> None:
        """Report an error to the waiting calls; nothing is noted, so that the next command asks for the batch again."""
        if self._failed is not None and keys:
            self._failed(self._mask(str(error)))
        for key in keys:
            future = self._waiting.pop(key, None)
            if future is not None and not future.done():
                future.set_exception(error)
                with suppress(asyncio.CancelledError):
                    future.exception()  # the waiting call may be gone


def _parts(questions: Sequence[_Question]) -> list[list[_Question]]:
    parts: list[list[_Question]] = [[]]
    size = 0
    for question in questions:
        if parts[-1] and (len(parts[-1]) == _MOST_QUESTIONS or size + question.size > _MOST_BYTES):
            parts.append([])
            size = 0
        parts[-1].append(question)
        size += question.size
    return parts


def _refusal_error(answer: BatchAnswer) -> CallFailed:
    inner = answer.body.get("error", answer.body)
    inner = inner.get("error", inner) if isinstance(inner, dict) else inner  # Anthropic nests it one level deeper
    text = str(inner.get("message") if isinstance(inner, dict) else inner)[:500]
    kinds = {401: "authentication", 403: "authentication", 402: "quota", 429: "rate_limited", 504: "timeout"}
    kind = kinds.get(answer.status, "http_5xx" if answer.status >= 500 else "bad_request")
    failure = CallFailed(kind, f"HTTP {answer.status} in a batch: {text}")
    failure.status = answer.status
    return failure
