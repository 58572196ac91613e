"""Tables in other files than CSV: JSON, packed files, several files, Parquet."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random

import pytest

from formats.native.tables import inputs, suite, wrong
from formats.suites import refusal


def test_numbers_of_json_stay_as_they_are(tmp_path):
    data = '[{"id": "1", "n": 1152921504606846977, "x": 1.0}]'
    assert inputs(tmp_path, data, name="d.json") == {"1": {"n": 1152921504606846977, "x": 1.0}}


def test_a_document_has_one_list_of_rows_or_says_which(tmp_path):
    document = {"data": {"rows": [{"id": "a", "q": 1}]}, "other": [{"id": "b"}], "names": ["x"]}
    assert [*inputs(tmp_path, json.dumps(document), name="d.json")] == ["b"]
    assert [*inputs(tmp_path, json.dumps(document), name="d.json", records="data.rows")] == ["a"]


def test_packed_files_and_globs_are_read_in_order(tmp_path):
    for name in ("b", "a"):
        (tmp_path / f"part-{name}.jsonl.gz").write_bytes(
            gzip.compress(json.dumps({"id": name, "input": {"q": 1}}).encode())
        )
    assert [case.id for case in suite(tmp_path, path="part-*.jsonl.gz").cases] == ["a", "b"]
    assert [case.id for case in suite(tmp_path, path=["part-b.jsonl.gz", "part-a.jsonl.gz"]).cases] == ["b", "a"]


def test_folders_that_a_glob_matches_are_not_read(tmp_path):
    (tmp_path / "data" / "old.csv").mkdir(parents=True)
    (tmp_path / "data" / "new.csv").write_text("id,q\n1,x\n")
    assert [case.id for case in suite(tmp_path, type="csv", path="data/**").cases] == ["1"]


def test_zstd_needs_its_extra(tmp_path):
    zstandard = pytest.importorskip("zstandard")
    data = zstandard.ZstdCompressor().compress(b"id,q\n1,x\n")
    assert inputs(tmp_path, data, name="d.csv.zst") == {"1": {"q": "x"}}
    assert inputs(tmp_path, data + zstandard.compress(b"2,y\n"), name="d.csv.zst") == {"1": {"q": "x"}, "2": {"q": "y"}}
    noise = Random(1)  # that no compressor shortens: several blocks
    rows = zstandard.compress(b"id,q\n" + b"".join(b"%d,%x\n" % (i, noise.getrandbits(8000)) for i in range(500)))
    for broken in (rows[: len(rows) // 2], rows[:-1], rows[:2000] + b"odd" + rows[2000:]):
        assert "cannot be read" in wrong(tmp_path, broken, name="d.csv.zst")[0].message


def workbook(path, *sheets):
    """Sheets of rows in a file."""
    openpyxl = pytest.importorskip("openpyxl")
    made = openpyxl.Workbook()
    made.remove(made.active)
    for title, rows in sheets:
        sheet = made.create_sheet(title)
        for row in rows:
            sheet.append(row)
    made.save(path)
    return path.read_bytes()


def test_cells_of_workbooks_keep_their_types(tmp_path):
    rows = [
        ["id", "q", "n", "x", "yes", "on", "at"],
        ["a", " 007 ", 3.0, 0.5, True, date(2026, 1, 2), datetime(2026, 1, 2, 3, 4)],
        [],
        ["b", None, 1e300],
    ]
    data = workbook(tmp_path / "made.xlsx", ("First", rows), ("Second", [["id", "q"], ["c", "two"]]))
    day = {"on": "2026-01-02", "at": "2026-01-02T03:04:00"}
    empty = dict.fromkeys(("q", "x", "yes", "on", "at"))
    read = inputs(tmp_path, data, name="d.xlsx")
    assert read == {"a": {"q": " 007 ", "n": 3, "x": 0.5, "yes": True, **day}, "b": {**empty, "n": 1e300}}
    assert type(read["a"]["n"]) is int
    assert inputs(tmp_path, data, name="d.xlsx", sheet="Second") == {"c": {"q": "two"}}
    assert "there is no sheet 'Secnd'; did you mean" in wrong(tmp_path, data, name="d.xlsx", sheet="Secnd")[0].message
    assert [p.key for p in wrong(tmp_path, data, name="d.xlsx", sheet=2)] == ["dataset.sheet"]


def test_a_workbook_ends_where_its_values_end(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    workbook(file := tmp_path / "made.xlsx", ("S", [["id", "q"], ["a", 1]]))
    book = openpyxl.load_workbook(file)
    book["S"]["XFD1048576"].font = openpyxl.styles.Font(bold=True)
    book.save(file)
    assert inputs(tmp_path, file.read_bytes(), name="d.xlsx") == {"a": {"q": 1}}
    book["S"]["XFD1048576"] = "x"
    book.save(file)
    [stray] = wrong(tmp_path, file.read_bytes(), name="d.xlsx")
    assert "has 1,048,576 rows of 16,384 cells, expected at most 50,000,000 cells" in stray.message


def test_what_has_no_value_in_a_workbook_is_named(tmp_path):
    data = workbook(tmp_path / "made.xlsx", ("S", [["id", "q"], ["a", "=1+1"], ["b", "#DIV/0!"]]))
    said = [problem.message for problem in wrong(tmp_path, data, name="d.xlsx")]
    assert [message.split(":")[0] for message in said] == [
        "the formula in B2 has no stored value", "the formula in B3 failed",
    ]  # fmt: skip
    said = wrong(tmp_path, workbook(tmp_path / "made.xlsx", ("S", [["id", "q"]])), name="d.xlsx")
    assert "has no rows" in said[0].message
    assert "cannot be read as an Excel workbook" in wrong(tmp_path, b"id,q\n", name="d.xlsx")[0].message


def test_parquet_keeps_types_and_writes_times_as_text(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pyarrow.table(
        {
            "id": ["a"], "n": [1 << 40], "l": [["x"]], "s": [{"k": 1}], "d": [date(2026, 1, 2)],
            "t": [datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)], "c": [Decimal("1.50")], "z": [None],
            "b": pyarrow.array([datetime(2026, 1, 2, 3)], pyarrow.timestamp("us", "Europe/Berlin")),
            "m": [datetime(2026, 1, 2, 3, 4, 5, 6)],
        }
    )  # fmt: skip
    parquet.write_table(table, tmp_path / "d.parquet")
    (case,) = suite(tmp_path, path="d.parquet").cases
    assert case.input == {
        "n": 1 << 40, "l": ["x"], "s": {"k": 1}, "d": "2026-01-02", "t": "2026-01-02T03:04:05Z", "c": "1.50", "z": None,
        "b": "2026-01-02T03:00:00Z", "m": "2026-01-02T03:04:05.000006",
    }  # fmt: skip
    parquet.write_table(pyarrow.table({"id": ["a"], "b": [b"x"]}), tmp_path / "d.parquet")
    (problem,) = refusal(lambda: list(suite(tmp_path, path="d.parquet").cases)).problems
    assert "'b'" in problem.message
    assert [case.id for case in suite(tmp_path, path="d.parquet", map={"id": "id", "input.q": "id"}).cases] == ["a"]


@pytest.mark.parametrize(
    ("column", "kind", "fact"),
    [
        ([10**15], "timestamp", "[1].b"),
        ([10**8], "date32", "[1].b"),
        (b"\xff", "string", "[0].b"),
    ],
)
def test_a_value_of_parquet_that_has_no_form_is_a_mistake_with_its_place(tmp_path, column, kind, fact):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    if kind == "string":
        values = pa.Array.from_buffers(pa.string(), 1, pa.array([column]).buffers())
    else:
        values = pa.array([0, *column], pa.timestamp("s") if kind == "timestamp" else pa.date32())
    ids = [str(number) for number in range(len(values))]
    parquet.write_table(pa.table({"id": ids, "b": values}), tmp_path / "d.parquet")
    (problem,) = refusal(lambda: list(suite(tmp_path, path="d.parquet").cases)).problems
    assert (problem.key, problem.message.startswith("cannot be read: ")) == (fact, True)


def test_a_column_that_parquet_has_twice_is_refused(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.Table.from_arrays([pa.array(["a"])] * 3, names=["id", "q", "q"])
    parquet.write_table(table, tmp_path / "d.parquet")
    (problem,) = refusal(lambda: list(suite(tmp_path, path="d.parquet").cases)).problems
    assert problem.message == "the column 'q' occurs more than once"
