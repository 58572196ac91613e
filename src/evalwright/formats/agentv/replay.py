"""Recorded answers as a target of `targets.yaml`: `provider: replay` of AgentV 4."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evalwright.errors import TargetError
from evalwright.files.boundary import Boundary, OutsideError
from evalwright.formats.agentv.exchange import PromptRequest, ProviderReply, reply_in
from evalwright.formats.agentv.health import refused

__all__ = ["RecordedAnswers"]

_NARROWING = ("suite", "eval_path", "variant")


class RecordedAnswers:
    """The answers of `source_target` in the JSON Lines of `fixtures`, by case, and by `suite` and the like if given."""

    def __init__(self, target: Mapping[str, Any], folder: str) -> None:
        name = target.get("name")
        for key in ("fixtures", "source_target"):
            if not target.get(key):
                raise refused(key, f"target {name!r} needs {key!r}: the recordings, and whose answers they are")
        self._folder = Path(folder)
        self._file: Path = self._folder / target["fixtures"]
        self._wanted = {key: target[key] for key in ("source_target", *_NARROWING) if target.get(key)}
        self._records: list[dict[str, Any]] | None = None

    async def ask(self, request: PromptRequest, purpose: str) -> ProviderReply:
        if self._records is None:
            self._records = await asyncio.to_thread(
                lambda: list(self._read(request.boundary or Boundary(self._folder)))
            )
        wanted = {**self._wanted, "test_id": request.case_id}
        records = [record for record in self._records if all(record.get(key) == value for key, value in wanted.items())]
        if not records:
            message = ", ".join(f"{key} {value!r}" for key, value in wanted.items())
            raise TargetError(f"{self._file} has no answer of {message}", "not_recorded")
        attempts = sorted(records, key=lambda entry: int(entry.get("attempt") or 0))
        record = attempts[min(request.attempt, len(attempts) - 1)]
        return reply_in(record, "")

    def _read(self, boundary: Boundary) -> Iterator[dict[str, Any]]:
        try:
            lines = boundary.read(self._file).decode("utf-8", "replace").splitlines()
        except (OSError, OutsideError) as error:
            raise TargetError(f"the recordings cannot be read: {error}", "not_recorded") from None
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise TargetError(f"{self._file}:{number}: not JSON: {error}", "not_recorded") from None
            if isinstance(record, dict):
                yield record
