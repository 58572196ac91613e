"""Records model calls and replays their replies, for runs without a key and without a network."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from evalwright.errors import InputError, Problem
from evalwright.files.durable import must_be_a_file, private_file
from evalwright.files.jsonl import lines_of
from evalwright.llm.failures import CallFailed
from evalwright.model.chat import ChatReply, ChatRequest, Embedding, Moderation

__all__ = ["CallRecorder", "RecordedCalls"]

_LONGEST = 1 << 16
"""Bytes of the first line that are checked: a call begins with its key and kind."""
_KINDS: dict[str, Any] = {"chat": ChatReply, "embed": Embedding, "moderate": Moderation}


class CallRecorder:
    """Appends each answered call to a file, secrets masked."""

    def __init__(self, path: Path, mask: Callable[[str], str]) -> None:
        self._mask = mask
        must_be_a_file(path, terminal=True)
        try:
            _must_be_a_recording(path)
            private_file(path)
            self._file = path.open("a", encoding="utf-8")
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror}") from error

    def keep(self, key: str, kind: str, request: Any, reply: Any) -> None:
        row = {"key": key, "kind": kind, "asked": msgspec.to_builtins(request), "reply": msgspec.to_builtins(reply)}
        self._file.write(self._mask(json.dumps(row, ensure_ascii=False)) + "\n")
        self._file.flush()  # an interrupted run keeps what it has paid for

    def close(self) -> None:
        self._file.close()


def _must_be_a_recording(path: Path) -> None:
    """Raises InputError if the file, to which calls would be added, is not a recording; OSError."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        first = file.readline(_LONGEST)
    if first.strip() and not (first.startswith(b"{") and b'"key"' in first and b'"kind"' in first):
        raise InputError(f"{path} contains something other than recorded calls: choose another file")


class RecordedCalls:
    """Replays recorded calls; any other call is an error.

    Replies to the same call are served in the order of recording, and the last one for all further calls.
    """

    def __init__(self, path: Path) -> None:
        self._replies: dict[str, list[tuple[str, Any]]] = {}
        self._path = path
        must_be_a_file(path, terminal=True)
        problems = []
        for number, line in lines_of(path):
            try:
                row = json.loads(line)
                reply = msgspec.convert(row["reply"], _KINDS[row["kind"]])
            except (ValueError, KeyError, TypeError, msgspec.ValidationError) as error:
                problems.append(Problem(str(path), f"not a recorded call: {type(error).__name__}: {error}", number))
                continue
            self._replies.setdefault(row["key"], []).append((row["kind"], reply))
        if problems:
            raise InputError(problems)

    def find(self, key: str, request: ChatRequest | str) -> Any:
        """The reply. Raises CallFailed `not_recorded`."""
        replies = self._replies.get(key)
        if not replies:
            what = request.model if isinstance(request, ChatRequest) else request
            raise CallFailed("not_recorded", f"this call of {what!r} is not recorded in {self._path}")
        return (replies.pop(0) if len(replies) > 1 else replies[0])[1]
