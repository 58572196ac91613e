"""Labels of people, as spreadsheets and scripts write them, and every mistake in them at its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.errors import InputError
from evalwright.importers.labels import LabelRow, read_labels


def read(folder: Path, text: str | bytes, name: str = "labels.csv") -> list[LabelRow]:
    rows, problems = read_labels(written(folder, text, name))
    assert problems == []
    return rows


def mistakes(folder: Path, text: str | bytes) -> list[str]:
    rows, problems = read_labels(written(folder, text))
    assert rows == []
    return [str(problem).removeprefix(f"{folder / 'labels.csv'}:") for problem in problems]


def written(folder: Path, text: str | bytes, name: str = "labels.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_spreadsheet_with_byte_order_mark_quotes_and_crlf(tmp_path: Path) -> None:
    text = '\ufeffCase ID,evaluator,human verdict,note\r\n"a, ""b""",judge,Pass,"two\r\nlines"\r\nc2,judge,no,\r\n'
    assert read(tmp_path, text) == [
        LabelRow(2, 'a, "b"', "judge", passed=True),
        LabelRow(4, "c2", "judge", passed=False),
    ]


@pytest.mark.parametrize("separator", [";", "\t"])
def test_other_separators_are_seen_in_the_header(tmp_path: Path, separator: str) -> None:
    text = "case_id,evaluator,score,variant,trial\nc1,judge,4.5,new,2\n".replace(",", separator)
    assert read(tmp_path, text) == [LabelRow(2, "c1", "judge", "new", 2, None, 4.5)]


def test_json_lines_with_verdicts_and_scores(tmp_path: Path) -> None:
    rows = [
        {"case_id": "c1", "evaluator": "judge", "verdict": True, "score": 4, "trial": 0},
        {"case": "c2", "evaluator": "judge", "verdict": "fail", "variant": None, "by": "Ada"},
    ]
    text = "\n\n".join(map(json.dumps, rows))
    assert read(tmp_path, text, "labels.jsonl") == [
        LabelRow(1, "c1", "judge", None, 0, True, 4.0),
        LabelRow(3, "c2", "judge", passed=False),
    ]


def test_every_mistake_is_told_at_its_line(tmp_path: Path) -> None:
    rows = [",judge,pass,,,", "c1,,maybe,,,", "c2,judge,,nan,-1,0", ",,,,,", "c3,judge,,,,2"]
    text = "\n".join(["case_id,evaluator,verdict,score,trial,attempt", *rows, ""])
    assert mistakes(tmp_path, text) == [
        "2  case_id  is missing",
        "3  evaluator  is missing",
        "3  verdict  expected pass or fail, found 'maybe'",
        "4  score  expected a number, found 'nan'",
        "4  trial  expected 0, 1, 2, ..., found '-1'",
        "4  attempt  expected 1, 2, 3, ..., found '0'",
        "6  verdict  neither a verdict nor a score",
    ]


def test_a_label_of_a_balanced_sample_needs_its_stratum(tmp_path: Path) -> None:
    header = "case_id,evaluator,verdict,sampling,stratum,stratum_size"
    [row] = read(tmp_path, f"{header}\nc,judge,pass,balanced,fail,40\n")
    assert (row.chosen, row.stratum, row.stratum_size) == ("balanced", "fail", 40)
    assert read(tmp_path, f"{header}\nc,judge,pass,random,,\n")[0].stratum_size is None
    assert mistakes(tmp_path, f"{header}\nc,judge,pass,balanced,,0\nc,judge,pass,balanced,good,40\n") == [
        "2  stratum  expected pass or fail for a balanced sample, found ''",
        "2  stratum_size  expected 1, 2, 3, ... for a balanced sample, found '0'",
        "3  stratum  expected pass or fail for a balanced sample, found 'good'",
    ]


def test_missing_columns_are_one_mistake(tmp_path: Path) -> None:
    listed = mistakes(tmp_path, "case,judge\nc1,pass\nc2,pass\n")
    assert listed == ["1  no column 'evaluator', 'verdict' or 'score'; found: case, judge"]


def test_a_misspelt_column_is_named_with_what_it_may_mean(tmp_path: Path) -> None:
    path = written(tmp_path, "case_id,evaluator,verdict,varaint\nc1,judge,pass,v\n")
    _, problems = read_labels(path)
    assert [problem.message for problem in problems] == ["nothing reads 'varaint'; did you mean \"variant\"?"]


def test_two_columns_for_one_thing_are_refused(tmp_path: Path) -> None:
    _, problems = read_labels(written(tmp_path, "case,id,evaluator,verdict\nc1,c2,judge,pass\n"))
    assert [problem.message for problem in problems] == ["two columns for the case_id"]


def test_a_row_with_too_many_values_is_refused(tmp_path: Path) -> None:
    assert mistakes(tmp_path, "case_id,evaluator,verdict\na,b,judge,pass\n") == ["2  4 values under 3 columns"]


def test_an_open_quote_is_a_mistake_of_the_line_where_it_opens(tmp_path: Path) -> None:
    (listed,) = mistakes(tmp_path, 'case_id,evaluator,verdict\n"c1,judge,pass\nc2,judge,pass\n')
    assert listed.startswith("2  not valid CSV: ")


def test_broken_json_lines_are_told_and_the_rest_is_read(tmp_path: Path) -> None:
    rows, problems = read_labels(written(tmp_path, '{"case_id": \n[1]\n{"case_id":"c","evaluator":"j","verdict":1}\n'))
    assert [row.case_id for row in rows] == ["c"]
    assert [problem.line for problem in problems] == [1, 2]


def test_types_of_json_are_held_to(tmp_path: Path) -> None:
    text = '{"case_id": 7, "evaluator": "j", "verdict": null, "score": true}'
    assert mistakes(tmp_path, text) == [
        "1  case_id  expected text, found 7",
        "1  score  expected a number, found true",
    ]


def test_a_header_alone_is_a_mistake(tmp_path: Path) -> None:
    _, problems = read_labels(written(tmp_path, "case_id,evaluator,verdict\n"))
    assert [problem.message for problem in problems] == ["has no labels"]


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "is empty"), (b"\n \n", "is empty"), ("case_id,évaluateur".encode("latin-1"), "is not UTF-8")],
    ids=["empty", "blank", "latin-1"],
)
def test_a_file_that_cannot_be_read_at_all(tmp_path: Path, content: bytes, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_labels(written(tmp_path, content))


@given(st.binary(max_size=200))
def test_whatever_the_bytes_there_are_labels_or_problems(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = written(tmp_path_factory.getbasetemp(), b"case_id,evaluator,verdict\n" + data)
    try:
        rows, problems = read_labels(path)
    except InputError:
        return
    assert all(row.passed is not None for row in rows)
    assert all(problem.line for problem in problems if problem.message != "has no labels")
