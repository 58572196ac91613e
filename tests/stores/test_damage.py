"""Damaged files: what can be read is read, the rest is named with its line, and nothing raises."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest

from evalwright.errors import InputError, StorageError
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.trace import Trace
from evalwright.stores.artifacts import read_artifact
from evalwright.stores.local_files import LocalFiles
from evalwright.stores.local_files.lines import MIGRATIONS
from evalwright.stores.local_files.reader import LocalReader
from evalwright.testing import a_case, a_plan, a_result, a_trace, a_verdict


@pytest.fixture
def run(tmp_path: Path) -> Path:
    cases = [a_case(id=f"c{i}") for i in range(3)]
    with_three = LocalFiles(tmp_path).create(a_plan(), cases, {})
    for number in range(3):
        with_three.append_trace(a_trace(case_id=f"c{number}", case_index=number))
        with_three.append_results([a_result(case_id=f"c{number}")])
        with_three.append_verdict(a_verdict(case_id=f"c{number}"))
    with_three.close()
    return with_three.folder


def reader(run: Path) -> LocalReader:
    return LocalFiles(run.parent).read(run.name)


def test_a_line_that_cannot_be_read_is_named_and_the_rest_is_read(run: Path) -> None:
    path = run / "traces.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"{oops\n" + lines[2])
    stored = reader(run)
    assert [t.case_id for t in stored.traces(Trace)] == ["c0", "c2"]
    assert [note[:16] for note in stored.damage] == ["traces.jsonl:2: "]


def test_damage_is_said_once_however_often_it_is_read(run: Path) -> None:
    (run / "results.jsonl").write_bytes(b"{oops\n")
    stored = reader(run)
    for _ in range(3):
        assert list(stored.results(EvaluationResult)) == []
    assert len(stored.damage) == 1


def test_lines_are_counted_from_the_start_inside_a_part_too(run: Path) -> None:
    path = run / "traces.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2]) + b"{" + b"x" * len(lines[0]) + b"\n" + lines[2])
    stored = reader(run)
    assert [t.case_id for part in stored.parts(4) for t in stored.traces(Trace, part)] == ["c0", "c1", "c2"]
    assert [note[:16] for note in stored.damage] == ["traces.jsonl:3: "]


def test_any_flipped_byte_costs_at_most_the_lines_it_touches(run: Path) -> None:
    path = run / "verdicts.jsonl"
    data = path.read_bytes()
    ends = [i for i, byte in enumerate(data) if byte == 10]
    for position in range(len(data)):
        path.write_bytes(data[:position] + bytes([data[position] ^ 0x55]) + data[position + 1 :])
        stored = reader(run)
        try:
            verdicts = list(stored.verdicts(CaseVerdict))
        except InputError:  # the digit of a version was hit
            continue
        line = sum(end < position for end in ends)
        touched = {line, line + 1} if position in ends else {line}
        assert {f"c{n}" for n in range(3) if n not in touched} <= {v.case_id for v in verdicts}
        assert len(verdicts) + len(stored.damage) <= 4
        assert len(verdicts) == 3 or stored.damage


@pytest.mark.parametrize("kind", ["traces", "results", "verdicts"])
def test_a_torn_last_line_is_cut_on_opening_and_said_once(run: Path, kind: str) -> None:
    path = run / f"{kind}.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"case_id":"torn')
    writer = LocalFiles(run.parent).open(run.name)
    assert writer.damage == [f"{kind}.jsonl: torn tail of 16 bytes, cut"]
    writer.close()
    assert path.read_bytes() == whole


def test_readers_leave_a_torn_last_line_out_and_alone(run: Path) -> None:
    path = run / "traces.jsonl"
    torn = path.read_bytes()[:-10]
    path.write_bytes(torn)
    stored = reader(run)
    assert [t.case_id for t in stored.traces(Trace)] == ["c0", "c1"]
    assert stored.damage == ["traces.jsonl:3: torn tail, left out"]
    assert path.read_bytes() == torn


@pytest.mark.parametrize(
    "line", [b"[" * 100_000 + b"\n", b'"\xff"\n', b"\x00" * 600 + b"\n", b"17\n", b'{"case_id":5}\n']
)
def test_no_line_raises(run: Path, line: bytes) -> None:
    path = run / "traces.jsonl"
    path.write_bytes(line + path.read_bytes())
    stored = reader(run)
    assert len(list(stored.traces(Trace))) == 3
    assert [note[:16] for note in stored.damage] == ["traces.jsonl:1: "]


@pytest.mark.parametrize("version", ['"2.0"', '"10.1"', "2", "2.5"])
def test_records_of_a_later_major_version_are_refused(run: Path, version: str) -> None:
    with (run / "results.jsonl").open("a") as file:
        file.write(f'{{"schema_version": {version}, "case_id": "x"}}\n')
    expected = rf"{re.escape(str(run))}/results\.jsonl:4  schema_version  has version {version.strip(chr(34))}"
    with pytest.raises(InputError, match=expected):
        list(reader(run).results(EvaluationResult))


def test_a_variant_in_a_plan_and_an_artifact_of_a_later_major_version_are_refused(run: Path) -> None:
    plan = json.loads((run / "plan.json").read_text())
    plan["variants"] = [{"name": "v", "adapter": "cli", "schema_version": "2.0"}]
    (run / "plan.json").write_text(json.dumps(plan))
    with pytest.raises(InputError, match=r"plan\.json.*variants\[0\]\.schema_version  has version 2\.0"):
        reader(run)
    folder = run / "artifacts" / "c" / "v"
    folder.mkdir(parents=True)
    (folder / "artifact.json").write_text('{"schema_version": "2.0"}')
    with pytest.raises(InputError, match=r"c/v/artifact\.json  schema_version  has version 2\.0"):
        read_artifact(run / "artifacts", "c", "v", 0, 1, 1)


@pytest.mark.parametrize(("version", "refused"), [('"2.0"', True), ("2", True), ('"1.99"', False)])
def test_a_plan_of_a_later_major_version_is_refused(run: Path, version: str, refused: bool) -> None:
    plan = run / "plan.json"
    plan.write_text(plan.read_text().replace('"schema_version": "1.0"', f'"schema_version": {version}'))
    assert version in plan.read_text()
    if refused:
        with pytest.raises(InputError, match=r"plan\.json.*schema_version  has version 2"):
            reader(run)
    else:
        assert len(list(reader(run).traces(Trace))) == 3


@pytest.mark.parametrize("version", ['"1.0"', '"1.99"', '"0.9"', "1", "null", '"one"', '"\u00b2.0"', '"99999999999.0"'])
def test_records_of_this_major_version_and_older_are_read(run: Path, version: str) -> None:
    class Mark(msgspec.Struct):
        case_id: str

    with (run / "verdicts.jsonl").open("a") as file:
        file.write(f'{{"schema_version": {version}, "case_id": "x"}}\n')
    assert [mark.case_id for mark in reader(run).verdicts(Mark)][-1] == "x"


def test_records_of_an_older_version_are_migrated_step_by_step(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MIGRATIONS, "0.8", lambda old: {**old, "case": old["id"], "schema_version": "0.9"})
    monkeypatch.setitem(MIGRATIONS, "0.9", lambda old: {**old, "case_id": old["case"], "schema_version": "1.0"})
    (run / "verdicts.jsonl").write_text(
        '{"schema_version": "0.8", "id": "old", "variant_name": "v", "status": "pass"}\n'
    )
    assert list(reader(run).verdicts(CaseVerdict)) == [CaseVerdict("old", "v", "pass")]


def test_a_file_of_rubbish_gives_a_short_list(run: Path) -> None:
    (run / "results.jsonl").write_bytes(b"{oops\n" * 5000)
    stored = reader(run)
    assert list(stored.results(EvaluationResult)) == []
    assert len(stored.damage) == 101
    assert stored.damage[-1] == "further lines that cannot be read are not listed"


def test_a_damaged_case_is_refused_by_line_as_skipping_would_move_the_others(run: Path) -> None:
    path = run / "cases.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"{oops\n" + lines[2])
    stored = reader(run)
    with pytest.raises(InputError, match=r"cases\.jsonl:2"):
        list(stored.cases())
    with pytest.raises(InputError, match=r"cases\.jsonl:2"):
        stored.case(1)
    assert stored.case(2).id == "c2"


@pytest.mark.parametrize("name", ["traces", "results", "verdicts", "cases"])
def test_a_disk_that_cannot_be_read_is_a_storage_error_that_names_the_file(run: Path, name: str) -> None:
    stored = reader(run)
    (run / f"{name}.jsonl").unlink()
    (run / f"{name}.jsonl").symlink_to("/proc/self/mem")  # where nothing is mapped at 0: an I/O error
    read = getattr(stored, name)
    with pytest.raises(StorageError, match=rf"cannot read {re.escape(str(run))}/{name}\.jsonl: Input/output error"):
        list(read() if name == "cases" else read(object))


@pytest.mark.parametrize("name", ["plan.json", "verdicts.jsonl", "cases.jsonl"])
def test_an_unreadable_file_is_an_input_error(run: Path, name: str) -> None:
    (run / name).unlink()
    (run / name).mkdir()

    def read() -> None:
        stored = reader(run)
        for _ in (*stored.verdicts(CaseVerdict), *stored.cases()):
            pass

    with pytest.raises(InputError, match=rf"{re.escape(name)}  cannot be read"):
        read()
