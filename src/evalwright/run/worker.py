"""The process at the other end of `isolation: process`: builds the target once, then answers one call after another."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from pathlib import Path
from typing import BinaryIO

import msgspec

from evalwright.model.plan import Variant
from evalwright.model.protocols import Target
from evalwright.model.trace import Answer
from evalwright.run.children import end_with_parent
from evalwright.run.isolation import Request
from evalwright.session.network import listen
from evalwright.session.streams import Router
from evalwright.session.workspace import working_in
from evalwright.targets.build import build_target
from evalwright.targets.failures import target_failure


class _Hello(msgspec.Struct):
    variant: Variant
    import_paths: list[str]
    offline: bool = False


def main(descriptor: int) -> None:
    end_with_parent(os.getppid())
    # text is written line by line, so that the last words of a dying process are kept
    sys.stdout = Router(sys.stdout, lambda: True)
    with socket.socket(fileno=descriptor) as connection, connection.makefile("rb") as requests:
        connection.set_inheritable(False)
        hello = msgspec.json.decode(_frame(requests) or b"", type=_Hello)
        if hello.offline:
            listen(lambda: True)
        target = build_target(hello.variant, hello.import_paths)
        loop = asyncio.new_event_loop()
        if opening := getattr(target, "open", None):
            loop.run_until_complete(opening())
        while (data := _frame(requests)) is not None:
            try:
                answer = loop.run_until_complete(_answer_to_request(target, data))
                reply = b"A" + msgspec.json.encode(answer)
            except BaseException as error:  # also SystemExit: the target may still answer the next call
                reply = b"E" + msgspec.json.encode(target_failure(error))
            connection.sendall(len(reply).to_bytes(8, "big") + reply)


async def _answer_to_request(target: Target, data: bytes) -> Answer:
    """The answer to a request; after an empty one, with which the target is closed, it says nothing."""
    if not data:
        if closing := getattr(target, "close", None):
            await closing()
        return Answer()
    request = msgspec.json.decode(data, type=Request)
    with working_in(None if request.workspace is None else Path(request.workspace)):
        return await target.run(request.case, request.trial)


def _frame(requests: BinaryIO) -> bytes | None:
    """The next request; None if the other process has ended."""
    size = requests.read(8)
    return requests.read(int.from_bytes(size, "big")) if len(size) == 8 else None


if __name__ == "__main__":
    main(int(sys.argv[1]))
