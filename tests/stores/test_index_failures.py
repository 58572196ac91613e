"""What is left of an index whose making was interrupted, or failed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from evalwright.model.plan import Plan
from evalwright.model.trace import Metrics
from evalwright.stores.index import opened_index
from evalwright.stores.index.assembly import JoinedIndex
from evalwright.stores.index.file import INDEX, create_index, meta_of
from evalwright.stores.index.follow import Follower
from evalwright.stores.index.numbering import PlanNumbering
from evalwright.stores.index.schema import AT, is_named
from evalwright.stores.index.sources import CoveredRecords, FolderSource, RecordsAtMoment
from evalwright.stores.local_files import LocalFiles
from evalwright.stores.local_files.writer import LocalWriter
from evalwright.testing import a_case, a_plan, a_result, a_trace, a_verdict

CELLS = 4


@pytest.fixture
def plan() -> Plan:
    return a_plan(cases_total=CELLS)


@pytest.fixture
def writer(tmp_path: Path, plan: Plan) -> Iterator[LocalWriter]:
    with closing(LocalFiles(tmp_path).create(plan, [a_case(id=f"c{n}") for n in range(CELLS)], {})) as made:
        for number in range(CELLS - 1):
            add(made, number)
        yield made


def add(writer: LocalWriter, number: int, **trace: object) -> None:
    of = {"case_id": f"c{number}", **{key: trace[key] for key in ("attempt",) if key in trace}}
    writer.append_trace(a_trace(**{**of, **trace}, case_index=number, latency_ms=5, metrics=Metrics(cost_usd=0.5)))
    writer.append_results([a_result(**of)])
    writer.append_verdict(a_verdict(**of, case_index=number))


class Interrupted(FolderSource):
    """A source whose reader is interrupted at the end of each reading, as long as `hurt` is set."""

    hurt = False

    @contextmanager
    def moment(self) -> Iterator[RecordsAtMoment]:
        with super().moment() as moment:
            noted = moment.covered

            def covered(name: str, at: int) -> CoveredRecords:
                if self.hurt:
                    raise KeyboardInterrupt
                return noted(name, at)

            moment.covered = covered  # type: ignore[method-assign]
            yield moment


def said(run: Path, plan: Plan) -> tuple[Any, ...]:
    with closing(opened_index(run, plan)) as index:
        counts = sorted((count.n, count.variant, count.status) for count in index.counts())
        cells = [*index.cells()]
        return cells, counts, index.sums(), index.superseded(), [index.records(cell) for cell in cells]


def test_an_interruption_leaves_what_was_there_and_reading_goes_on(writer: LocalWriter, plan: Plan) -> None:
    source = Interrupted(writer.folder)
    with closing(create_index(writer.folder, plan)) as connection:
        follower = Follower(connection, source, PlanNumbering(plan))
        follower.follow(trusted=True)
        add(writer, CELLS - 1)
        add(writer, 0, attempt=2)
        source.hurt = True
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                follower.follow(trusted=True)
            assert connection.execute("SELECT count(*) FROM cells").fetchone() == (CELLS - 1,)
            assert not connection.in_transaction
        source.hurt = False
        follower.follow(trusted=True)
    found = said(writer.folder, plan)
    (writer.folder / INDEX).unlink()
    assert said(writer.folder, plan) == found
    assert (len(found[0]), found[2].spent_usd, found[3]) == (CELLS, 2.5, 1)


def test_what_an_interrupted_transaction_made_is_made_again(writer: LocalWriter, plan: Plan) -> None:
    source = Interrupted(writer.folder)
    with closing(create_index(writer.folder, plan)) as connection:
        follower = Follower(connection, source, PlanNumbering(plan))
        source.hurt = True
        with pytest.raises(KeyboardInterrupt):
            follower.follow(trusted=True)
        source.hurt = False
        follower.follow(trusted=True)
        assert is_named(connection)
    found = said(writer.folder, plan)
    (writer.folder / INDEX).unlink()
    assert said(writer.folder, plan) == found


def test_a_run_of_which_there_can_be_no_index_is_not_read_again(writer: LocalWriter, plan: Plan) -> None:
    add(writer, 99)
    with closing(create_index(writer.folder, plan)) as connection:
        for _ in range(2):
            Follower(connection, FolderSource(writer.folder), PlanNumbering(plan)).follow_or_note(trusted=True)
            assert meta_of(connection, "odd") == "a record belongs to no cell of the plan"
            assert connection.execute("SELECT count(*) FROM cells").fetchone() == (0,)


def joined_from(run: Path, plan: Plan, target: Path) -> JoinedIndex:
    """The index of a copy of a run, with the rows of the index of the run."""
    joined = JoinedIndex(target, plan)
    with closing(opened_index(run, plan)) as index:
        for row in index.rows():
            joined.add(
                row,
                index.profiles[row[AT.profile]],
                row[AT.numbers],
                row[AT.trace_len],
                length_of_results(row),
                row[AT.verdict_len],
            )
    return joined


def length_of_results(row: Mapping[int, Any]) -> list[int]:
    return [
        int.from_bytes(row[AT.results_packed][at : at + 2], "little") for at in range(0, len(row[AT.results_packed]), 2)
    ]


@pytest.mark.parametrize("rows_together", [1000, 2])
def test_an_index_that_is_put_together_is_that_of_the_records(
    writer: LocalWriter, plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_together: int
) -> None:
    monkeypatch.setattr("evalwright.stores.index.assembly._BATCH", rows_together)
    (target := tmp_path / "copy").mkdir()
    for name in ("traces", "results", "verdicts"):
        (target / f"{name}.jsonl").write_bytes((writer.folder / f"{name}.jsonl").read_bytes())
    joined = joined_from(writer.folder, plan, target)
    joined.finish()
    joined.close()
    made = (target / INDEX).read_bytes()
    assert said(target, plan) == said(writer.folder, plan)
    assert (target / INDEX).read_bytes() == made, "it is used as it is"


def test_an_index_that_cannot_be_put_together_is_told_and_left_out(
    writer: LocalWriter, plan: Plan, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (target := tmp_path / "copy").mkdir()
    (target / INDEX).mkdir()
    joined = joined_from(writer.folder, plan, target)
    joined.finish()
    joined.close()
    assert caplog.text.count("no index is made of the merged run") == 1


def test_an_index_that_was_not_finished_is_none(writer: LocalWriter, plan: Plan, tmp_path: Path) -> None:
    (target := tmp_path / "copy").mkdir()
    joined_from(writer.folder, plan, target).close()
    with closing(opened_index(target, plan)) as index:
        assert len(index) == 0
