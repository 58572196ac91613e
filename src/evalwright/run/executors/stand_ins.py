"""What a system finds in its worker in place of what the run's own process has: prints and models."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from evalwright.errors import TargetError
from evalwright.model.chat import ChatReply, ChatRequest, Embedding, EmbeddingRequest, Moderation, Purpose
from evalwright.model.plan import Price
from evalwright.model.trace import TraceError
from evalwright.run.executors.frames import ModelCall, ModelReply
from evalwright.targets.failures import target_error

__all__ = ["ModelsOfRun", "Prints", "asking"]

asking: ContextVar[int] = ContextVar("evalwright_asking", default=0)
"""The system's call that is made in this context."""
_MOST_PRINTED = 10 * 2**20
"""Characters of one worker that are shown."""
_LONGEST_LINE = 64 * 2**10


class ModelsOfRun:
    """The models of the run, which makes the calls: no key and no budget leaves it."""

    def __init__(self, send: Callable[[ModelCall], None]) -> None:
        self._send = send
        self._requests: dict[int, asyncio.Future[ModelReply]] = {}
        self._number = 0

    async def chat(self, request: ChatRequest, purpose: Purpose = "judge") -> ChatReply:
        self._number += 1
        number, reply = self._number, asyncio.get_running_loop().create_future()
        self._requests[number] = reply
        self._send(ModelCall(number, request, purpose, asking.get()))
        try:
            answer: ModelReply = await reply
        finally:
            self._requests.pop(number, None)
        if answer.reply is None:
            raise target_error(answer.error or TraceError("bad_reply", "the run had no reply of the model"))
        return answer.reply

    def resolve(self, reply: ModelReply) -> None:
        """Give a call the run's reply."""
        waiting = self._requests.get(reply.id)
        if waiting is not None and not waiting.done():
            waiting.set_result(reply)

    def forget(self, request: ChatRequest) -> None:
        """Nothing to do: replies to systems are not cached."""

    async def embed(self, request: EmbeddingRequest, purpose: Purpose = "judge") -> Embedding:
        raise TargetError("systems on other machines cannot ask for embeddings")

    async def moderate(
        self, model: str, text: str, base_url: str | None = None, api_key_env: str | None = None
    ) -> Moderation:
        raise TargetError("systems on other machines cannot ask for moderation")

    def price(self, model: str) -> Price | None:
        return None


class Prints:
    """A `sys.stdout` whose lines are sent to the run."""

    encoding: str = "utf-8"
    errors: str = "backslashreplace"

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show, self._lock = show, threading.Lock()
        self._line, self._left = "", _MOST_PRINTED

    def write(self, text: str) -> int:
        with self._lock:
            whole, newline, rest = (self._line + text).rpartition("\n")
            if len(rest) > _LONGEST_LINE:
                whole, newline, rest = whole + newline + rest, "\n", ""
            self._line = rest
            if newline and self._left > 0:
                self._left -= len(whole) + 1
                if self._left <= 0:
                    whole = whole[: len(whole) + self._left] + "\n(what is printed from here on is left out)"
                self._show(whole)
        return len(text)

    def flush(self) -> None: ...

    def close(self) -> None: ...

    def isatty(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        # Programs that inherit it write where the process itself does.
        return 2

    @property
    def buffer(self) -> Any:
        return _Bytes(self)


class _Bytes:
    """The binary stream below, for code that writes bytes."""

    def __init__(self, prints: Prints) -> None:
        self._prints = prints

    def write(self, data: bytes) -> int:
        self._prints.write(bytes(data).decode("utf-8", "backslashreplace"))
        return len(data)

    def flush(self) -> None: ...
