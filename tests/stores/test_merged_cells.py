"""The records of a cell of a shard as those of the merged run."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from evalwright.model.cell_index import StaleIndex
from evalwright.model.plan import EvaluatorSpec
from evalwright.run.cells import Grid
from evalwright.stores.index.file import INDEX
from evalwright.stores.local_files import LocalFiles
from evalwright.stores.merge.cells import renaming
from evalwright.stores.merge.indexed_shard import IndexedShard
from evalwright.stores.merge.scanned_shard import ScannedShard
from evalwright.testing import a_case, a_plan, a_result, a_trace, a_verdict

NAMES = ["first", "second"]
decoded = msgspec.json.Decoder().decode_lines
encoded = msgspec.json.Encoder().encode_lines


@pytest.mark.parametrize("quotes", range(4))
@pytest.mark.parametrize("lines", [1, 2])
def test_a_record_gets_the_id_and_what_it_quotes_stays(lines: int, quotes: int) -> None:
    records = [{"case_id": "a", "run_id": "part", "input": [{"run_id": "part"}] * quotes}, {"run_id": "part"}][:lines]
    renamed = renaming("part", "whole")(encoded(records), lines)
    assert decoded(renamed) == [{**record, "run_id": "whole"} for record in records]


def test_a_record_of_another_run_gets_the_id_too() -> None:
    renamed = renaming("part", "whole")(b'{"case_id":"a","run_id":"older"}\n', 1)
    assert decoded(renamed) == [{"case_id": "a", "run_id": "whole"}]
    assert renaming("part", "whole")(b"", 1) == b""


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    """Two cells with records of the same lengths, and the index of them."""
    plan = a_plan(cases_total=2, evaluators=[EvaluatorSpec(name, "contains_text") for name in NAMES])
    with closing(LocalFiles(tmp_path).create(plan, [a_case(id=name) for name in "ab"], {})) as writer:
        for place, name in enumerate("ab"):
            writer.append_trace(a_trace(case_id=name, case_index=place))
            writer.append_results([a_result(case_id=name, evaluator=one) for one in NAMES])
            writer.append_verdict(a_verdict(case_id=name, case_index=place))
    with closing(LocalFiles(tmp_path).read(writer.folder.name)) as reader, closing(reader.index("to_keep")):
        pass
    return writer.folder


def read(shard: Path, evaluators: list[str] = NAMES) -> list[object]:
    run = LocalFiles(shard.parent).read(shard.name)
    with closing(run) as reader, closing(reader.index("never")) as index:
        return list(IndexedShard(index, renaming(shard.name, "whole"), evaluators).cells())


def test_the_cells_of_an_indexed_shard_are_its_records(shard: Path) -> None:
    cells = read(shard)
    assert [cell.number for cell in cells] == [0, 1]
    for cell, name in zip(cells, "ab", strict=True):
        for lines, count in ((cell.trace, 1), (cell.results, 2), (cell.verdict, 1)):
            assert [(row["case_id"], row["run_id"]) for row in decoded(lines)] == [(name, "whole")] * count
        assert [row["evaluator"] for row in decoded(cell.results)] == NAMES


@pytest.mark.parametrize(("order", "expected"), [(NAMES[::-1], NAMES[::-1]), (["second"], NAMES[::-1]), ([], NAMES)])
def test_results_are_in_the_order_of_the_evaluators_and_others_behind_them(
    shard: Path, order: list[str], expected: list[str]
) -> None:
    for cell in read(shard, order):
        assert [row["evaluator"] for row in decoded(cell.results)] == expected
        assert [name for name, _ in cell.known.profile[3]] == expected


@pytest.mark.parametrize(
    "change",
    [
        "trace_at = (SELECT o.trace_at FROM cells o WHERE o.number = 1 - cells.number)",  # another cell's
        "trace_len = trace_len - 1",
        "trace_len = trace_len + 10",
        "verdict_at = (SELECT o.verdict_at FROM cells o WHERE o.number = 1 - cells.number)",
        "verdict_len = verdict_len - 1",
        "results_at = (SELECT o.results_at FROM cells o WHERE o.number = 1 - cells.number)",
        "results_at = results_at + 1",
    ],
)
def test_records_that_are_not_those_of_the_index_are_refused(shard: Path, change: str) -> None:
    with closing(sqlite3.connect(shard / INDEX)) as index, index:
        index.execute(f"UPDATE cells SET {change}")
    with pytest.raises(StaleIndex):
        read(shard)


def test_results_of_another_number_are_refused(shard: Path) -> None:
    with closing(sqlite3.connect(shard / INDEX)) as index, index:
        index.execute("UPDATE cells SET results_packed = substr(results_packed, 1, 2)")
    with pytest.raises(StaleIndex):
        read(shard)


@pytest.mark.parametrize("keep_open", [True, False])
@pytest.mark.parametrize("evaluators", [NAMES, ["first"], []])
def test_the_cells_of_a_shard_without_an_index_are_its_records(
    shard: Path, keep_open: bool, evaluators: list[str]
) -> None:
    """Also where there are more results than evaluators, of each of which the last counts."""
    with (shard / "results.jsonl").open("ab") as file:
        for name in "ab":
            file.write(encoded([a_result(case_id=name, evaluator=one, passed=False) for one in (NAMES[0], "more")]))
    plan = LocalFiles(shard.parent).read(shard.name).plan
    scanned = ScannedShard(shard, Grid(plan), renaming(shard.name, "whole"), evaluators, keep_open=keep_open)
    cells = list(scanned.cells())
    assert (len(cells), scanned.damage, scanned.statuses["pass"]) == (2, [], 2)
    for cell in cells:
        rows = [(row["evaluator"], row["passed"]) for row in decoded(cell.results)]
        assert rows == [("first", False), ("second", True), ("more", False)]


def test_a_line_that_cannot_be_read_is_named_and_left_out(shard: Path) -> None:
    traces = shard / "traces.jsonl"
    first, second = traces.read_bytes().splitlines(keepends=True)
    traces.write_bytes(first + b"{torn\n" + second)
    plan = LocalFiles(shard.parent).read(shard.name).plan
    scanned = ScannedShard(shard, Grid(plan), renaming(shard.name, "whole"), NAMES, keep_open=True)
    assert [decoded(cell.trace)[0]["case_id"] for cell in scanned.cells()] == ["a", "b"]
    [damage] = scanned.damage
    assert damage.startswith(f"{traces}:2: left out: ")


def retried(folder: Path, judged: str = "ab") -> Path:
    """A shard of two cells, the first of which was run again and not judged any more."""
    plan = a_plan(cases_total=2, evaluators=[EvaluatorSpec(name, "contains_text") for name in NAMES])
    with closing(LocalFiles(folder).create(plan, [a_case(id=name) for name in "ab"], {})) as writer:
        for place, name in enumerate("ab"):
            writer.append_trace(a_trace(case_id=name, case_index=place))
            writer.append_results([a_result(case_id=name, evaluator=one) for one in NAMES])
            if name in judged:
                writer.append_verdict(a_verdict(case_id=name, case_index=place))
        writer.append_trace(a_trace(case_id="a", case_index=0, attempt=2))
    return Path(writer.folder)


def test_verdicts_of_earlier_attempts_and_of_no_cell_do_not_count(tmp_path: Path) -> None:
    shard = retried(tmp_path)
    with (shard / "verdicts.jsonl").open("ab") as file:
        file.write(encoded([a_verdict(case_id="z", case_index=9)]))
    plan = LocalFiles(tmp_path).read(shard.name).plan
    scanned = ScannedShard(shard, Grid(plan), renaming(shard.name, "whole"), NAMES, keep_open=True)
    first, second = scanned.cells()
    assert (first.verdict, decoded(first.trace)[0]["attempt"]) == (b"", 2)
    assert decoded(second.verdict)[0]["case_id"] == "b"
    assert scanned.statuses["pass"] == 1


def test_the_highest_attempt_counts_wherever_it_stands_and_cells_without_a_trace_are_left_out(tmp_path: Path) -> None:
    shard = retried(tmp_path)
    first, _, again = (shard / "traces.jsonl").read_bytes().splitlines(keepends=True)
    (shard / "traces.jsonl").write_bytes(again + first + encoded([a_trace(case_id="z", case_index=9)]))
    plan = LocalFiles(tmp_path).read(shard.name).plan
    scanned = ScannedShard(shard, Grid(plan), renaming(shard.name, "whole"), NAMES, keep_open=True)
    [cell] = scanned.cells()
    assert (cell.number, decoded(cell.trace)[0]["attempt"], cell.results) == (0, 2, b"")


def test_of_an_attempt_that_is_there_twice_the_last_records_count(tmp_path: Path) -> None:
    plan = a_plan(cases_total=2, evaluators=[EvaluatorSpec(name, "contains_text") for name in NAMES])
    with closing(LocalFiles(tmp_path).create(plan, [a_case(id=name) for name in "ab"], {})) as writer:
        for name, score, names in (("a", 0.1, NAMES[:1]), ("b", 0.2, NAMES), ("a", 0.3, NAMES)):
            writer.append_trace(a_trace(case_id=name, case_index="ab".index(name), latency_ms=int(10 * score)))
            writer.append_results([a_result(case_id=name, evaluator=one, score=score) for one in names])
            writer.append_verdict(a_verdict(case_id=name, case_index="ab".index(name), score=score))
    scanned = ScannedShard(writer.folder, Grid(plan), renaming(writer.folder.name, "whole"), NAMES, keep_open=True)
    first, second = scanned.cells()
    for cell, score in ((first, 0.3), (second, 0.2)):
        rows = decoded(cell.results)
        assert [(row["evaluator"], row["score"]) for row in rows] == [(name, score) for name in NAMES]
        assert (decoded(cell.trace)[0]["latency_ms"], decoded(cell.verdict)[0]["score"]) == (int(10 * score), score)


def test_a_cell_that_was_not_judged_has_no_verdict_in_an_indexed_shard(tmp_path: Path) -> None:
    shard = retried(tmp_path, judged="a")
    with closing(LocalFiles(tmp_path).read(shard.name)) as reader, closing(reader.index("to_keep")):
        pass
    assert [cell.verdict for cell in read(shard)] == [b"", b""]


def test_an_index_that_goes_on_with_a_cell_has_what_one_made_anew_has(shard: Path) -> None:
    def rows() -> list[tuple[object, ...]]:
        with closing(LocalFiles(shard.parent).read(shard.name)) as reader, closing(reader.index("to_keep")):
            pass
        with closing(sqlite3.connect(shard / INDEX)) as index:
            return index.execute("SELECT * FROM cells ORDER BY number").fetchall()

    with closing(LocalFiles(shard.parent).open(shard.name)) as writer:
        writer.append_trace(a_trace(case_id="a", case_index=0, attempt=2))
        writer.append_results([a_result(case_id="a", evaluator=name, attempt=2) for name in NAMES])
        writer.append_verdict(a_verdict(case_id="a", case_index=0, attempt=2))
    followed = rows()
    for file in shard.glob(f"{INDEX}*"):
        file.unlink()
    assert followed == rows()
