"""A SQLite file with a finished run, and the rows that are in it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

from evalwright.stores.sqlite import Sqlite
from evalwright.testing import a_case, a_plan, a_result, a_summary, a_trace, a_verdict

LATER = a_plan().started_at + timedelta(days=1)


def rows(file: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(query).fetchall()


def fill(store: Sqlite, run_id: str = "r", cells: int = 2) -> None:
    writer = store.create(a_plan(run_id=run_id, started_at=LATER), [a_case()], {})
    for number in range(cells):
        writer.append_trace(a_trace(case_id=f"c{number}"))
        writer.append_results([a_result(case_id=f"c{number}")])
        writer.append_verdict(a_verdict(case_id=f"c{number}"))
    writer.save_summary(a_summary())
    writer.close()
