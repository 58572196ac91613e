"""Records of CSV, with the lines on which they begin."""

from __future__ import annotations

import pytest

from evalwright.files import csv_records as module
from evalwright.files.csv_records import CsvError, csv_records


def records(text: str, separator: str = ",") -> list[tuple[int, list[str]]]:
    return list(csv_records(text.splitlines(keepends=True), separator))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a,b\n1,2\n", [(1, ["a", "b"]), (2, ["1", "2"])]),
        ("a,b\r\n,\r\n", [(1, ["a", "b"]), (2, ["", ""])]),
        ("a\n\nb", [(1, ["a"]), (3, ["b"])]),
        ('"a,b","say ""hi"""\n', [(1, ["a,b", 'say "hi"'])]),
        ('"two\nlines",x\ny,z\n', [(1, ["two\nlines", "x"]), (3, ["y", "z"])]),
        ('"",\n', [(1, ["", ""])]),
    ],
)
def test_cells_are_told_apart(text: str, found: list[tuple[int, list[str]]]) -> None:
    assert records(text) == found
    assert records(text.replace(",", "\t"), "\t") == [
        (line, [cell.replace(",", "\t") for cell in cells]) for line, cells in found
    ]


def test_a_quote_within_a_cell_of_tsv_is_a_character() -> None:
    text = 'nail\tsays\n5" nail\tsay "hi"\n3\t"two\nlines"\tx"\r\n'
    assert records(text, "\t") == [
        (1, ["nail", "says"]), (2, ['5" nail', 'say "hi"']), (3, ["3", "two\nlines", 'x"']),
    ]  # fmt: skip
    with pytest.raises(CsvError, match="text after its closing quote"):
        records('a\n"Hello" she said\n', "\t")


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ('a\n"open\nb', 2, "never closed"),
        ('a\nsay "hi"\n', 2, "does not begin with one"),
        ('a,b\n5" nail,1\n2" nail,1\n', 2, "does not begin with one"),
        ('a\n"one""\ntwo" three\n', 2, "text after its closing quote"),
        ('a\n"x" y\n', 2, "text after its closing quote"),
    ],
)
def test_a_mistake_is_told_with_the_line_of_its_record(text: str, line: int, told: str) -> None:
    with pytest.raises(CsvError, match=told) as caught:
        records(text)
    assert caught.value.line == line


def test_a_record_may_have_16_mib() -> None:
    most = '"' + "x" * (16 * 2**20 - 1)
    with pytest.raises(CsvError, match="never closed"):
        list(csv_records([most]))
    with pytest.raises(CsvError, match="a record of more than 16 MiB"):
        list(csv_records([most + "x"]))


def test_a_record_without_end_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LONGEST", 8)
    assert records('"234567"') == [(1, ["234567"])]
    with pytest.raises(CsvError, match="is a quote missing"):
        records('"2345678"')
