"""Which runs have an index: large ones, those for which it is asked, and those that have it already."""

from __future__ import annotations

import fcntl
import os
from contextlib import closing
from pathlib import Path

import pytest

from evalwright.model.plan import RunSettings, Variant
from evalwright.stores.index.file import INDEX
from evalwright.stores.local_files import LocalFiles
from evalwright.stores.sqlite import Sqlite
from evalwright.testing import a_case, a_plan, a_trace
from stores.stores import KINDS, Kept

CELLS = 4


@pytest.fixture(params=KINDS)
def kept(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kept:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Kept(request.param, tmp_path)


@pytest.fixture
def large_from(monkeypatch: pytest.MonkeyPatch):
    def patch(cells: int) -> None:
        for module in ("local_files.reader", "tables.run"):
            monkeypatch.setattr(f"evalwright.stores.{module}.INDEXED_FROM", cells)

    return patch


def stored(kept: Kept, settings: RunSettings | None = None) -> str:
    """A run of two cases, one variant with its own number of trials and one without."""
    variants = [Variant("v1", "replay", trials=1), Variant("v2", "replay")]
    plan = a_plan(variants=variants, run=settings or RunSettings())
    with closing(kept.store().create(plan, [a_case(id=name) for name in "ab"], {})) as writer:
        for place, name in enumerate("ab"):
            for variant in ("v1", "v2"):
                writer.append_trace(a_trace(case_id=name, case_index=place, variant_name=variant))
    return writer.plan.run_id


def test_a_small_run_has_an_index_only_for_those_who_ask(kept: Kept) -> None:
    with closing(kept.store().read(stored(kept))) as reader:
        assert reader.index() is None
        assert reader.index("never") is None
        with closing(reader.index("always")) as index:
            assert (len(index), index.path) == (CELLS, None)
        assert not list(kept.folder.rglob(INDEX))
        with closing(reader.index("to_keep")) as index:
            assert (len(index), index.path) == (CELLS, next(kept.folder.rglob(INDEX)))


def test_an_index_can_be_kept_in_a_folder_whose_name_is_no_utf8(tmp_path: Path) -> None:
    kept = Kept("local_files", tmp_path / os.fsdecode(b"caf\xe9"))
    kept.folder.mkdir()
    with closing(kept.store().read(stored(kept))) as reader, closing(reader.index("to_keep")) as index:
        assert index.path == next(kept.folder.rglob(INDEX))


def test_a_large_run_keeps_its_index(kept: Kept, large_from) -> None:
    large_from(CELLS)
    with closing(kept.store().read(stored(kept))) as reader:
        assert reader.index("never") is None
        with closing(reader.index()) as index:
            assert (len(index), index.path) == (CELLS, next(kept.folder.rglob(INDEX)))
        with closing(reader.index("never")) as index:
            assert len(index) == CELLS


def test_a_run_with_one_cell_less_is_small(kept: Kept, large_from) -> None:
    large_from(CELLS + 1)
    with closing(kept.store().read(stored(kept))) as reader:
        assert reader.index() is None


def test_a_smaller_run_has_one_for_a_caller_whose_scan_costs_more(kept: Kept) -> None:
    with closing(kept.store().read(stored(kept))) as reader:
        assert reader.index(least=CELLS + 1) is None
        assert reader.index("never", CELLS) is None
        with closing(reader.index(least=CELLS)) as index:
            assert (len(index), index.path) == (CELLS, next(kept.folder.rglob(INDEX)))
        with closing(reader.index("never", CELLS)) as index:
            assert len(index) == CELLS


def test_a_large_run_has_one_whatever_a_caller_wants(kept: Kept, large_from) -> None:
    large_from(CELLS)
    with closing(kept.store().read(stored(kept))) as reader, closing(reader.index(least=CELLS + 1)) as index:
        assert len(index) == CELLS


def test_a_large_run_whose_suite_wants_no_index_has_none(kept: Kept, large_from) -> None:
    large_from(CELLS)
    with closing(kept.store().read(stored(kept, RunSettings(index=False)))) as reader:
        assert reader.index() is None


def test_a_run_without_a_plan_is_as_large_as_its_traces(tmp_path: Path, large_from) -> None:
    """As of other programs, which leave none."""
    folders, files = Kept("local_files", tmp_path), Kept("sqlite", tmp_path)
    (tmp_path / "runs" / stored(folders) / "plan.json").unlink()
    run_id = stored(files)
    files.query("UPDATE runs SET payload = NULL")
    for number, is_large in ((CELLS - 1, True), (CELLS + 1, False)):
        large_from(number)
        with closing(Sqlite(tmp_path / "runs.sqlite").read(run_id)) as reader:
            assert (reader.index() is not None) is is_large
    size = (tmp_path / "runs" / run_id / "traces.jsonl").stat().st_size
    with closing(LocalFiles(tmp_path / "runs").read(run_id)) as reader:
        large_from(size)
        assert reader.index() is None
        large_from(1)
        with closing(reader.index()) as index:
            assert len(index) == CELLS


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_the_index_of_a_database_that_another_process_brings_up_to_date_is_read(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("evalwright.stores.index._PATIENCE", 0)
    kept = Kept(kind, tmp_path)
    with closing(kept.store().read(stored(kept))) as reader:
        reader.index("to_keep").close()
        [place] = tmp_path.rglob("index.lock")
        descriptor = os.open(place, os.O_RDWR)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            with closing(reader.index("to_keep")) as index:
                assert len(index) == CELLS
            next(tmp_path.rglob(INDEX)).unlink()
            assert reader.index("to_keep") is None, "the other one is making it"
        finally:
            os.close(descriptor)
