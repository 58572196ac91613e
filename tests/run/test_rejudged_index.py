"""The index of a run whose cells are judged again is that which is made of its records, and is not made anew."""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given

from evalwright.model.plan import EvaluatorSpec, Plan, Variant
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace
from evalwright.run.locations import Place
from evalwright.stores.local_files import LocalFiles
from evalwright.testing import a_plan, a_trace
from run.judged_runs import judged_again, runs, stored


def answers(run: Any) -> Any:
    with closing(run.index("to_keep")) as index:
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
            run.index("to_keep").close()
            file = Path(run.location) / "index.sqlite"
            before = file.stat().st_ino
            judged_again(place)
            assert file.stat().st_ino == before
            kept = answers(run)
            file.unlink()
            assert kept == answers(run)


def test_a_large_run_without_an_index_gets_none_that_nobody_has_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalwright.stores.local_files.reader.INDEXED_FROM", 200)
    store = LocalFiles(tmp_path)
    spec = EvaluatorSpec("said", "answered")
    plan = a_plan(run_id="stored", variants=[Variant("v1", "replay")], evaluators=[spec])
    names = [f"c{i}" for i in range(200)]
    writer = store.create(plan, [Case(name, "in") for name in names], {})
    for i, name in enumerate(names):
        writer.append_trace(a_trace(case_id=name, case_index=i, variant_name="v1", run_id="stored"))
    writer.close()
    file = Path(writer.location) / "index.sqlite"
    file.unlink(missing_ok=True)
    judged_again(Place(store, "stored", tmp_path))
    assert not file.exists()
    with closing(store.read("stored")) as run, closing(run.index()) as index:
        assert len(index) == 200
    assert file.exists()
