"""Runs that have no index, because it could not say what a scan of their records says; and how far records are read."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from evalwright.model.cell_index import StaleIndex
from evalwright.model.plan import Plan
from evalwright.model.trace import Trace
from evalwright.stores.index import opened_index
from evalwright.stores.index.keeper import IndexKeeper
from evalwright.stores.index.reading import RunIndex
from evalwright.stores.index.sources import FolderSource
from evalwright.stores.local_files import LocalFiles
from evalwright.testing import a_case, a_plan, a_result, a_trace, a_verdict

CELLS = 5
NEWER = b'{"case_id":"c0","variant_name":"v1","schema_version":"2.0"}\n'


@pytest.fixture
def plan() -> Plan:
    return a_plan(cases_total=CELLS)


@pytest.fixture
def run(tmp_path: Path, plan: Plan) -> Path:
    cases = [a_case(id=f"c{number}") for number in range(CELLS)]
    with closing(LocalFiles(tmp_path).create(plan, cases, {})) as writer:
        for number in range(CELLS):
            of = {"case_id": f"c{number}"}
            writer.append_trace(a_trace(**of, case_index=number))
            writer.append_results([a_result(**of)])
            writer.append_verdict(a_verdict(**of, case_index=number))
    return writer.folder


def add(file: Path, data: bytes) -> None:
    with file.open("ab") as records:
        records.write(data)


def cells(run: Path, plan: Plan) -> list[str] | None:
    """The cases of an index; None where there is none."""
    index: RunIndex | None = opened_index(run, plan)
    if index is None:
        return None
    with closing(index):
        return [entry.case_id for entry in index.cells()]


def test_a_sound_run_has_one(run: Path, plan: Plan) -> None:
    assert cells(run, plan) == ["c0", "c1", "c2", "c3", "c4"]


@pytest.mark.parametrize(
    "line",
    [NEWER, b'{"case_id":"c0","variant_name":"v1"}\n', b"{\n", b'{"case_id":"c0","varia'],
    ids=["of a later version", "without what it must have", "damaged", "torn"],
)
@pytest.mark.parametrize("grown", [False, True])
def test_records_of_which_a_scan_would_speak_leave_the_run_to_it(
    run: Path, plan: Plan, line: bytes, grown: bool
) -> None:
    if grown:
        assert cells(run, plan)
    add(run / "traces.jsonl", line)
    assert cells(run, plan) is None


def test_a_run_with_an_index_that_is_damaged_since_can_be_written_to(run: Path, plan: Plan) -> None:
    with closing(LocalFiles(run.parent).read(run.name)) as reader, closing(reader.index("to_keep")):
        pass
    (run / "traces.jsonl").write_bytes(b"{\n" + (run / "traces.jsonl").read_bytes())
    with closing(LocalFiles(run.parent).open(run.name)) as writer:
        writer.append_trace(a_trace(case_id="c0", attempt=2, case_index=0))
        assert [trace.attempt for trace in writer.traces(Trace)][-1] == 2
    assert cells(run, plan) is None


def test_results_too_long_for_a_short_number_are_found(tmp_path: Path) -> None:
    texts = ["x" * 70_000, "short"]
    with closing(LocalFiles(tmp_path).create(a_plan(), [a_case()], {})) as writer:
        writer.append_trace(a_trace(case_index=0))
        writer.append_results([a_result(evaluator=text[:5], reason=text) for text in texts])
    with closing(opened_index(writer.folder, writer.plan)) as index:
        [entry] = index.cells()
        assert [row.reason for row in index.records(entry).results] == texts


@pytest.mark.parametrize("name", ["results", "verdicts"])
def test_records_of_an_attempt_that_has_no_trace_leave_the_run_to_a_scan(run: Path, plan: Plan, name: str) -> None:
    with closing(LocalFiles(run.parent).open(run.name)) as writer:
        if name == "results":
            writer.append_results([a_result(case_id="c0", attempt=2)])
        else:
            writer.append_verdict(a_verdict(case_id="c0", attempt=2, case_index=0))
    assert cells(run, plan) is None


def test_blank_lines_are_nothing(run: Path, plan: Plan) -> None:
    add(run / "traces.jsonl", b"\n \r\n")
    assert len(cells(run, plan) or ()) == CELLS


def test_times_of_another_zone_leave_the_run_to_a_scan(run: Path, plan: Plan) -> None:
    for name in ("traces", "results"):
        file = run / f"{name}.jsonl"
        file.write_bytes(file.read_bytes().replace(b'678000Z"', b'678000+02:00"'))
    assert cells(run, plan) is None


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("verdicts", b'{"case_id":"c0","variant_name":"v1","status":"fail","case_index":0}\n'),
        ("traces", b'c5"'),
        ("traces", b'"case_index":9'),
        ("traces", b'"trial":1'),
        ("traces", b'"variant_name":"v9"'),
        ("verdicts", b'"case_index":1'),
    ],
    ids=["two verdicts", "no such case", "no such position", "no such trial", "no such variant", "another position"],
)
def test_records_that_contradict_each_other_leave_the_run_to_a_scan(
    run: Path, plan: Plan, file: str, change: bytes
) -> None:
    path = run / f"{file}.jsonl"
    if change.startswith(b"{"):
        add(path, change)
    else:
        was = {b"c5": b'c0"', b'"case_index"': b'"case_index":0', b'"trial"': b'"trial":0'}
        old = next((old for key, old in was.items() if change.startswith(key)), b'"variant_name":"v1"')
        data = path.read_bytes()
        assert old in data
        path.write_bytes(data.replace(old, change, 1))
    assert cells(run, plan) is None


@pytest.mark.parametrize("together", [True, False])
def test_two_cases_of_one_name_leave_the_run_to_a_scan(
    run: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch, together: bool
) -> None:
    if not together:  # the first is written before the other is read
        monkeypatch.setattr("evalwright.stores.index.sources._SHARE", 1)
    for name in ("traces", "results", "verdicts"):
        file = run / f"{name}.jsonl"
        file.write_bytes(file.read_bytes().replace(b'"c4"', b'"c0"'))
    assert cells(run, plan) is None


def test_a_record_that_was_changed_behind_its_back_is_found_when_it_is_read(run: Path, plan: Plan) -> None:
    with closing(opened_index(run, plan)) as index:
        entries = list(index.cells())
        verdicts, traces = run / "verdicts.jsonl", run / "traces.jsonl"
        verdicts.write_bytes(verdicts.read_bytes().replace(b'"c1"', b'"c9"'))
        traces.write_bytes(traces.read_bytes().replace(b'"c2"', b'"c9"').replace(b'"attempt":1', b'"attempt":2', 1))
        assert index.records(entries[3]).trace.case_id == "c3"
        for ask in (lambda: index.verdict(entries[1]), lambda: index.records(entries[2])):
            with pytest.raises(StaleIndex, match="another record"):
                ask()
        with pytest.raises(StaleIndex):
            index.records(entries[0])
        (run / "verdicts.jsonl").write_bytes(b"")
        with pytest.raises(StaleIndex):
            index.verdict(entries[4])


def test_a_line_that_is_half_written_is_read_when_it_is_whole(run: Path, plan: Plan) -> None:
    traces = run / "traces.jsonl"
    lines = traces.read_bytes().splitlines(keepends=True)
    whole = b"".join(lines)
    traces.write_bytes(whole[: -len(lines[-1]) + 20])
    for name in ("results", "verdicts"):
        (run / f"{name}.jsonl").write_bytes(b"")
    with closing(IndexKeeper(run, plan)) as keeper:
        keeper.follow()
        traces.write_bytes(whole)
        keeper.follow()
    assert cells(run, plan) == ["c0", "c1", "c2", "c3", "c4"]


def test_records_are_read_as_far_as_they_went_when_the_reading_began(run: Path) -> None:
    traces = run / "traces.jsonl"
    data = traces.read_bytes()
    first, size = data.index(b"\n") + 1, len(data)
    source = FolderSource(run)
    with source.moment() as moment:
        add(traces, data)
        assert moment.ends["traces.jsonl"] == size
        for until, end in ((0, 0), (1, first), (first, first), (first + 1, 2 * first), (size, size), (2 * size, size)):
            found, stop = moment.read("traces.jsonl", 0, until)
            assert (stop, b"".join(found.lines)) == (end, data[:end])
            assert [*found.starts][:-1] == [*range(0, end, first)]
            assert [*found.lengths] == [first] * (end // first)
        found, stop = moment.read("traces.jsonl", first, size)
        assert (next(iter(found.starts)), stop) == (first, size)
    source.close()


def test_a_file_of_records_that_cannot_be_read_leaves_the_run_to_a_scan(run: Path, plan: Plan) -> None:
    assert cells(run, plan)
    (run / "results.jsonl").unlink()
    (run / "results.jsonl").mkdir()
    assert cells(run, plan) is None


def test_more_cells_may_be_without_verdicts_than_are_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalwright.stores.index.follow._WAITING", 3)
    monkeypatch.setattr("evalwright.stores.index.sources._SHARE", 2_000)
    names = [f"c{number}" for number in range(10)]
    plan = a_plan(cases_total=len(names))
    with closing(LocalFiles(tmp_path).create(plan, [a_case(id=name) for name in names], {})) as writer:
        for number, name in enumerate(names):
            writer.append_trace(a_trace(case_id=name, case_index=number))
            writer.append_results([a_result(case_id=name)])
    assert cells(writer.folder, plan) == names
