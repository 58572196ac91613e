"""Judging stored traces with models called in batches: long waits, many cells at once, and notes to resume from."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import msgspec

from evalwright.errors import InputError
from evalwright.files.user_folder import user_folder
from evalwright.llm.choices import ModelChoices
from evalwright.model.plan import Plan
from evalwright.model.protocols import RunWriter

__all__ = ["JudgeCalls", "forget", "in_batches"]

_A_DAY = 26 * 3600.0
"""Seconds for which an evaluator waits: providers answer within 24 hours, and unreadable replies need a second
batch."""
_CELLS = 10_000
"""Cells that wait at once: their calls are one batch. Each keeps its trace in memory."""


class JudgeCalls(NamedTuple):
    """How models are called while a run is re-evaluated."""

    plan: Plan
    models: ModelChoices | None
    concurrency: int | None
    failures: Sequence[str] = ()
    """Why batches failed as a whole."""

    def must_be_answered(self) -> None:
        """Raise InputError if batches failed: the earlier results are better than an error in each of their cells."""
        if self.failures:
            why = "; ".join(dict.fromkeys(self.failures))
            raise InputError(f"--batch: {why}. Earlier results are kept; without --batch judges are called one by one")


def in_batches(calls: JudgeCalls, writer: RunWriter) -> JudgeCalls:
    """The same, in batches; the run notes them in the user's cache folder."""
    models, failures = calls.models or ModelChoices(), list[str]()
    if models.replay is not None:
        raise InputError("--batch with --replay: recorded calls are not made at all")
    name = hashlib.sha256(str(writer.location).encode()).hexdigest()[:32]
    notes = user_folder("batches") / f"{name}.sqlite"
    run = msgspec.structs.replace(calls.plan.run, evaluator_timeout_seconds=_A_DAY)
    plan = msgspec.structs.replace(calls.plan, run=run)
    return JudgeCalls(
        plan, replace(models, batch=notes, batch_failed=failures.append), calls.concurrency or _CELLS, failures
    )


def forget(models: ModelChoices | None) -> None:
    """Remove the notes once every call in them has its reply."""
    notes: Path | None = None if models is None else models.batch
    if notes is None or not notes.is_file():
        return
    import sqlite3  # hardly any command has batches

    with suppress(sqlite3.Error), closing(sqlite3.connect(notes)) as database:
        if database.execute("SELECT count(*) FROM questions WHERE status IS NULL").fetchone()[0]:
            return
    notes.unlink(missing_ok=True)
