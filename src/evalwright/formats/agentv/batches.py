"""Runs a command once for all cases of a suite (`provider_batching`)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from evalwright.errors import TargetError
from evalwright.formats.agentv.commands import Command
from evalwright.formats.agentv.exchange import ProviderReply

__all__ = ["Batch"]


class Batch:
    """Runs the command when the first case asks, once per trial; `why` says for which trials it failed."""

    def __init__(self, command: Command, files: Sequence[str], limit: float) -> None:
        self._command, self._files, self._limit = command, files, limit
        self._runs: dict[int, asyncio.Task[dict[str, ProviderReply] | None]] = {}
        self.why: dict[int, str] = {}

    async def reply_for(self, case_id: str, trial: int) -> ProviderReply | None:
        """The answer; None if the batch as a whole failed. Raises TargetError if it has no answer for the case."""
        if trial not in self._runs:
            self._runs[trial] = asyncio.create_task(self._run(trial))
        answers = await asyncio.shield(self._runs[trial])
        if answers is None:
            return None
        if case_id not in answers:
            raise TargetError(f"the batch has no answer with the id {case_id!r}", "not_in_batch")
        return answers[case_id]

    async def _run(self, trial: int) -> dict[str, ProviderReply] | None:
        try:
            async with asyncio.timeout(self._limit):
                return await self._command.ask_all(self._files)
        except TimeoutError:
            self.why[trial] = f"the batch timed out after {self._limit:g}s"
        except TargetError as error:
            self.why[trial] = f"the batch failed: {error}"
        return None
