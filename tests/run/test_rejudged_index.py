"""The index of a run whose cells are judged again is that which is made of its records, and is not made anew."""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given

from evalwright.model.plan import Plan
from evalwright.model.trace import Trace
from evalwright.run.locations import Place
from evalwright.stores.local_files import LocalFiles
from run.judged_runs import judged_again, runs, stored


def answers(run: Any) -> Any:
    with closing(run.index(keep=True)) as index:
        cells = list(index.cells())
        records = [msgspec.to_builtins(index.records(cell)) for cell in cells]
        counts = sorted((count._replace(alike=0) for count in index.counts()), key=str)
        known = [msgspec.structs.replace(cell, alike=None) for cell in cells]
        attempts = index.attempts()
        return known, records, counts, index.sums(), attempts.usual, sorted(attempts.others), index.superseded()


@given(runs())
def test_the_index_says_what_one_of_the_new_records_does(made: tuple[Plan, list[Trace]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = LocalFiles(Path(folder))
        run_id = stored(store, *made)
        place = Place(store, run_id, Path(folder))
        with closing(store.read(run_id)) as run:
            run.index(keep=True).close()
            file = Path(run.location) / "index.sqlite"
            before = file.stat().st_ino
            judged_again(place)
            assert file.stat().st_ino == before
            kept = answers(run)
            file.unlink()
            assert kept == answers(run)
