"""What is left of runs in SQLite files that are damaged, or whose disk is full."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalwright.errors import InputError
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.trace import Trace
from evalwright.stores.sqlite import Sqlite
from evalwright.testing import a_case, a_plan, a_result, a_trace, a_verdict
from stores.sqlite_files import fill

CELLS = 20


def test_a_payload_that_is_no_text_is_named(tmp_path: Path) -> None:
    file = tmp_path / "runs.db"
    fill(Sqlite(file), cells=3)
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("UPDATE traces SET payload = NULL WHERE case_id = 'c0'")
        connection.execute("UPDATE traces SET payload = x'ff00' WHERE case_id = 'c1'")
    reader = Sqlite(file).read("r")
    assert [trace.case_id for trace in reader.traces(Trace)] == ["c2"]
    assert [note[:10] for note in reader.damage] == ["traces:1: ", "traces:2: "]
    reader.close()


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A whole file, without a log beside it."""
    folder = tmp_path_factory.mktemp("intact")
    fill(Sqlite(folder / "runs.db"), cells=CELLS)
    return (folder / "runs.db").read_bytes()


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A run whose cells are all in the log of a process that is gone."""
    folder = tmp_path_factory.mktemp("killed")
    writer = Sqlite(folder / "runs.db").create(a_plan(run_id="r"), [a_case()], {})
    for number in range(CELLS):
        writer.append_trace(a_trace(case_id=f"c{number}"))
        writer.append_results([a_result(case_id=f"c{number}")])
        writer.append_verdict(a_verdict(case_id=f"c{number}"))
        writer.sync()
    yield folder / "runs.db"
    writer.close()


@given(lost=st.integers(0, 150_000))
@settings(suppress_health_check=list(HealthCheck))
def test_a_torn_log_costs_the_last_cells_whole(killed: Path, lost: int) -> None:
    folder = Path(tempfile.mkdtemp())
    for ending in ("", "-wal"):
        shutil.copy(f"{killed}{ending}", folder / f"runs.db{ending}")
    log = folder / "runs.db-wal"
    kept = max(60_000, log.stat().st_size - lost)
    with log.open("r+b") as file:
        file.truncate(kept)
    writer = Sqlite(folder / "runs.db").open("r")
    cells = [trace.case_id for trace in writer.traces(Trace)]
    assert cells == [f"c{number}" for number in range(len(cells))]
    assert [verdict.case_id for verdict in writer.verdicts(CaseVerdict)] == cells
    assert [result.case_id for result in writer.results(EvaluationResult)] == cells
    assert writer.damage == []
    writer.close()
    shutil.rmtree(folder)


@given(st.lists(st.tuples(st.floats(0, 0.9999), st.integers(0, 255)), min_size=1, max_size=40))
@settings(suppress_health_check=list(HealthCheck))
def test_a_damaged_file_ends_in_a_named_error_or_is_read(intact: bytes, flips: list[tuple[float, int]]) -> None:
    data = bytearray(intact)
    for place, byte in flips:
        data[int(place * len(data))] = byte
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "runs.db"
        file.write_bytes(data)
        read: list[object] = []
        with suppress(InputError):
            for run_id in Sqlite(file).run_ids():
                with closing(Sqlite(file).read(run_id)) as reader:
                    read += [*reader.cases(), *reader.traces(Trace), *reader.verdicts(CaseVerdict), reader.summary()]
        assert len(read) <= 2 * CELLS + 2


FULL = """
import resource, sys
from pathlib import Path
from evalwright.run.outcomes import folded_summary
from evalwright.errors import StorageError
from evalwright.stores.sqlite import Sqlite
from evalwright.testing import *
def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
limit(9000)
try:
    Sqlite(Path(sys.argv[1] + ".new")).create(a_plan(run_id="r"), [a_case()], {})
except StorageError as error:
    print(error)
limit(resource.RLIM_INFINITY)
Sqlite(Path(sys.argv[1])).create(a_plan(run_id="r"), [a_case()], {}).close()
limit(100)
try:
    Sqlite(Path(sys.argv[1])).run_ids()
except StorageError as error:
    print(error)
limit(400_000)
writer = Sqlite(Path(sys.argv[1])).open("r")
written = 0
try:
    while True:
        writer.append_trace(a_trace(case_id=f"c{written}"))
        writer.append_verdict(a_verdict(case_id=f"c{written}"))
        writer.sync()
        written += 1
except StorageError as error:
    print(written, error)
try:
    writer.append_trace(a_trace(case_id="late"))
except StorageError as error:
    print("again")
"""


def test_a_full_disk_ends_the_run_and_keeps_what_was_synced(tmp_path: Path) -> None:
    file = tmp_path / "runs.db"
    done = subprocess.run([sys.executable, "-c", FULL, str(file)], capture_output=True, text=True, check=True)
    new, reading, first, second = done.stdout.splitlines()
    # What failed is told, and not that the transaction is over; a disk that fails is no fault of the file's content.
    assert new == f"cannot write {file}.new: disk I/O error"
    assert reading == f"cannot read {file}: disk I/O error"
    assert f"cannot write {file}" in first
    assert second == "again"
    reader = Sqlite(file).read("r")
    assert [trace.case_id for trace in reader.traces(Trace)] == [f"c{n}" for n in range(int(first.split()[0]))]
    reader.close()
