"""Tables of a terminal: aligned, harmless, and never wider than the screen."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.model.summary import ComparisonReport, VariantDelta
from evalwright.reports.table import Table
from evalwright.reports.terminal import run_lines
from evalwright.reports.text import Paint, width
from reports.runs import plan, summary, variant


def test_columns_are_aligned_whatever_the_width_of_characters() -> None:
    table = Table(("name", ">n"))
    table.add(["値段", "1"])
    table.add(["a", "1,000"])
    ends = {width(line) for line in table.lines(Paint())}
    assert len(ends) == 1


def test_colours_do_not_move_columns() -> None:
    table = Table(("name", ">n"))
    table.add([("a", "bold"), ("1", "fail")])
    plain, painted = table.lines(Paint(False)), table.lines(Paint(True))
    assert "\x1b[31m1\x1b[0m" in painted[1]
    assert [_stripped(line) for line in painted] == plain


def _stripped(line: str) -> str:
    return re.sub("\x1b\\[[0-9]+m", "", line)


def test_empty_columns_are_left_out() -> None:
    table = Table(("a", "b", "c"))
    table.add(["1", "", "3"])
    assert table.lines(Paint(), indent="") == ["a  c", "1  3"]


def test_a_cell_cannot_add_rows_or_colours() -> None:
    table = Table(("name",))
    table.add(["x\ny\x1b[31m"])
    assert table.lines(Paint(), indent="")[1:] == ["x y\\x1b[31m"]


def test_names_that_rows_share_are_shown_once() -> None:
    table = Table(("a", "b", ">n"), names=2)
    for row in (("x", "1", "10"), ("x", "2", "20"), ("y", "1", "30")):
        table.add(row)
    assert table.lines(Paint(), indent="") == ["a  b   n", "x  1  10", "   2  20", "y  1  30"]


@pytest.fixture
def wide_table() -> Table:
    table = Table(("name", ">first", ">second", ">third"), names=1, wide=[2])
    table.add(("a", "1", "2", "3"))
    table.add(("b", "4", "", "6"))
    return table


def test_a_screen_with_room_has_one_table(wide_table: Table) -> None:
    assert wide_table.lines(Paint(columns=26), indent="") == [
        "name  first  second  third",
        "a         1       2      3",
        "b         4              6",
    ]


def test_wide_columns_go_below_first_and_rows_without_them_are_left_out(wide_table: Table) -> None:
    assert wide_table.lines(Paint(columns=25), indent="") == [
        "name  first  third",
        "a         1      3",
        "b         4      6",
        "",
        "name  second",
        "a          2",
    ]


def test_what_still_has_no_room_goes_below_too(wide_table: Table) -> None:
    lines = wide_table.lines(Paint(columns=12), indent="")
    assert [line.split() for line in lines if line.startswith("name")] == [
        ["name", "first"],
        ["name", "third"],
        ["name", "second"],
    ]


@given(
    st.text(min_size=1, max_size=70),
    st.integers(min_value=0, max_value=10**9),
    st.integers(min_value=40, max_value=200),
)
def test_no_table_of_a_run_is_wider_than_the_screen(name: str, number: int, columns: int) -> None:
    cells = dict.fromkeys(("pass", "borderline", "fail", "error", "skip"), number)
    variants = [variant(name, cells=cells, pass_rate_n=number, cost_total_usd=float(number)), variant("b")]
    delta = VariantDelta(name, 0.1, -1e6, [], [], number, (-0.05, 0.21), 0.412)
    lines = run_lines(
        plan(), summary(variants=variants, comparison=ComparisonReport("b", [delta])), Paint(columns=columns)
    )
    assert max(map(width, lines)) <= columns
