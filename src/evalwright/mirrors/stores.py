"""Stores as mirrors: a further copy of a run's records, in addition to the run's own store."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from evalwright.files.credentials import credentials
from evalwright.files.masker import Masker
from evalwright.model.cell import attempt_key
from evalwright.model.plan import Plan
from evalwright.model.protocols import RunReader, RunWriter, Store
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.summary import RunSummary
from evalwright.model.trace import Trace
from evalwright.stores.local_files import local_files
from evalwright.stores.ordered import OrderedCells
from evalwright.stores.postgres import postgres
from evalwright.stores.sqlite import sqlite

__all__ = ["StoreMirror", "local_files_mirror", "postgres_mirror", "sqlite_mirror"]

_SYNC_PERIOD = 1.0
"""Seconds: a copy may lag behind the run's own store, which is the one that is resumed."""

Build = Callable[[Mapping[str, Any], Masker | None, Path], Store]


def local_files_mirror(config: Mapping[str, Any]) -> StoreMirror:
    """A copy as a folder of JSON Lines files below `path`."""
    return StoreMirror(local_files, config)


def postgres_mirror(config: Mapping[str, Any]) -> StoreMirror:
    """A copy in a PostgreSQL database: `dsn`, `schema`, `pool_size`, `run_namespace`."""
    return StoreMirror(postgres, config)


def sqlite_mirror(config: Mapping[str, Any]) -> StoreMirror:
    """A copy in a SQLite file: `path`, `run_namespace`."""
    return StoreMirror(sqlite, config)


class StoreMirror:
    """Writes a copy of each record to a store. Raises InputError for a configuration that the store rejects."""

    def __init__(self, build: Build, config: Mapping[str, Any]) -> None:
        self._store: Callable[[Masker | None], Store] = lambda masker: build(config, masker, Path("runs"))
        self._store(None)  # only to check the configuration, before the run starts
        self._writer: RunWriter | None = None
        self._synced = 0.0
        self._secrets: dict[str, str] = {}

    def hide(self, secrets: Mapping[str, str]) -> None:
        """Mask these, too: the plan does not show which values a suite took from variables."""
        self._secrets |= secrets

    def start(self, plan: Plan) -> None:
        """Start a copy of the run, or continue the one that exists."""
        store = self._store(Masker.of({**dict(_credentials(plan)), **self._secrets}, os.environ))
        if plan.run_id in store.run_ids() and _is_same_plan(store.read(plan.run_id).plan, plan):
            self._writer = store.open(plan.run_id)
            return
        copied = msgspec.structs.replace(plan)
        self._writer = store.create(copied, (), {})
        self._writer.save_plan(msgspec.structs.replace(plan, run_id=copied.run_id))

    def catch_up(self, run: RunReader) -> None:
        """Copy the cells of sessions that were killed before they had sent them: of each cell, the newest attempt."""
        if self._writer is None:
            return
        copied = set(map(attempt_key, self._writer.verdicts(CaseVerdict)))
        if all(attempt_key(verdict) in copied for verdict in run.verdicts(CaseVerdict)):
            return
        with OrderedCells(run) as cells:
            for trace, results, verdict in cells.all(
                [variant.name for variant in run.plan.variants] if run.plan else []
            ):
                if verdict is not None and attempt_key(verdict) not in copied:
                    self.trace(trace, results, verdict)

    def trace(self, trace: Trace, results: Sequence[EvaluationResult], verdict: CaseVerdict) -> None:
        if self._writer is None:
            return
        self._writer.append_trace(trace)
        self._writer.append_results(results)
        self._writer.append_verdict(verdict)
        if time.monotonic() - self._synced > _SYNC_PERIOD:
            self._writer.sync()
            self._synced = time.monotonic()

    def summary(self, summary: RunSummary) -> None:
        if self._writer is not None:
            self._writer.save_summary(summary)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def _is_same_plan(stored: Plan | None, plan: Plan) -> bool:
    return stored is not None and (stored.started_at, stored.config_hash) == (plan.started_at, plan.config_hash)


def _credentials(plan: Plan) -> Iterator[tuple[str, str]]:
    """The credentials in the configurations of a plan, each under a unique name."""
    plugins = [plan.store, *plan.mirrors, *([plan.workspace] if plan.workspace else [])]
    sections = [*(v.config for v in plan.variants), *({"type": p.type, **p.config} for p in plugins)]
    for number, (key, text) in enumerate(credentials(sections)):
        yield f"{key}:{number}", text
