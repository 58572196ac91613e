"""Judging stored traces with models that are asked in batches: patience, many cells at once, notes to go on from."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import msgspec

from evalwright.errors import InputError
from evalwright.llm.choices import ModelChoices
from evalwright.model.plan import Plan
from evalwright.model.protocols import RunWriter

__all__ = ["JudgeCalls", "forget", "in_batches"]

_A_DAY = 26 * 3600.0
"""Seconds for which an evaluator waits: providers answer a batch within 24 hours, and a second one asks again."""
_CELLS = 10_000
"""That wait at once: their questions are one batch. What they hold of memory is their traces."""


class JudgeCalls(NamedTuple):
    """How models are asked while a run is judged again."""

    plan: Plan
    models: ModelChoices | None
    concurrency: int | None


def in_batches(asking: JudgeCalls, writer: RunWriter) -> JudgeCalls:
    """The same, in batches that are noted in the user's cache folder by the run."""
    from platformdirs import user_cache_path

    models = asking.models or ModelChoices()
    if models.replay is not None:
        raise InputError("--batch with --replay: recorded calls are not asked at all")
    name = hashlib.sha256(str(writer.location).encode()).hexdigest()[:32]
    notes = user_cache_path("evalwright") / "batches" / f"{name}.sqlite"
    run = msgspec.structs.replace(asking.plan.run, evaluator_timeout_seconds=_A_DAY)
    plan = msgspec.structs.replace(asking.plan, run=run)
    return JudgeCalls(plan, replace(models, batch=notes), asking.concurrency or _CELLS)


def forget(models: ModelChoices | None) -> None:
    """Remove the notes once every question in them has its answer."""
    notes: Path | None = None if models is None else models.batch
    if notes is None or not notes.is_file():
        return
    with suppress(sqlite3.Error), closing(sqlite3.connect(notes)) as database:
        if database.execute("SELECT count(*) FROM questions WHERE status IS NULL").fetchone()[0]:
            return
    notes.unlink(missing_ok=True)
