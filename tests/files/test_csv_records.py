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


@pytest.fixture
def eight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells of at most eight characters."""
    monkeypatch.setattr(module, "_LONGEST", 8)


@pytest.mark.usefixtures("eight")
@pytest.mark.parametrize("text", ["12345678,12345678", '"12345678","12\n45678",x', '"12\n4567","12\n4567"'])
def test_cells_have_a_greatest_length_and_records_have_none(text: str) -> None:
    assert [line for line, _ in records(text)] == [1]


@pytest.mark.usefixtures("eight")
@pytest.mark.parametrize("text", ["a,123456789\n", 'a,"123456789"\n', 'a,"1\n3456789"\n'])
def test_a_longer_cell_is_a_mistake(text: str) -> None:
    with pytest.raises(CsvError, match="a cell of more than") as caught:
        records(f"a,b\n{text}")
    assert caught.value.line == 2


def test_a_cell_may_have_16_mib() -> None:
    most = "x" * (16 * 2**20)
    assert records(f'1,"{most}"\n') == [(1, ["1", most])]
    with pytest.raises(CsvError, match="a cell of more than 16 MiB"):
        records(f'1,"{most}x"\n')


@pytest.mark.usefixtures("eight")
def test_a_cell_without_end_is_not_read_to_its_end() -> None:
    read = iter(['"1234\n', "678\n", "never"])
    with pytest.raises(CsvError, match="is a quote missing"):
        list(csv_records(read))
    assert [*read] == ["never"]
