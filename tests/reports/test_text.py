from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.reports.text import block, capped, harmless, one_line, shortened, width

HOSTILE = [
    "\x1b[2J\x1b[H",  # clears the screen
    "\x1b]8;;http://evil.example\x07click\x1b]8;;\x07",
    "\x1b]0;title\x07",
    "\x9b31m",  # the eight-bit form of ESC [
    "a\rb",
    "a\x08\x08b",
    "\u202egnp.exe",  # reorders what follows
    "\u2066x\u2069",
    "\x00",
    "\u2028",
    "\udc80",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_what_acts_on_a_terminal_is_shown_and_not_done(text: str) -> None:
    shown = harmless(text)
    assert not any(unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl") for character in shown)


def test_harmless_text_says_what_was_there() -> None:
    assert harmless("a\x1b[31mb\u202e") == "a\\x1b[31mb\\u202e"


@pytest.mark.parametrize("text", ["plain", "Größe, 値段, مرحبا", "👩‍👩‍👧 family", "two\nlines\tand a tab"])
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert harmless(text) == text


@given(st.text())
def test_one_line_is_one_line(text: str) -> None:
    assert len(one_line(text).splitlines()) <= 1


@given(st.text(), st.integers(min_value=1, max_value=50))
def test_one_line_keeps_to_its_limit(text: str, limit: int) -> None:
    assert len(one_line(text, limit)) <= limit


def test_what_is_left_out_is_counted() -> None:
    assert capped("x" * 1500, 500) == "x" * 500 + "… (+1,000 characters)"


def test_later_lines_of_a_block_are_indented() -> None:
    assert block("one\ntwo", "    ", None) == "one\n    two"


def test_a_block_of_short_lines_is_cut_too() -> None:
    assert block("ok\n" * 100, "", 400).splitlines() == [*["ok"] * 20, "… (+81 lines)"]


def test_a_block_without_a_limit_has_all_lines() -> None:
    assert block("ok\n" * 100, "", None) == "ok\n" * 100


def test_wide_characters_take_two_columns() -> None:
    assert width("値段 e\u0301") == 6


@given(st.text(), st.integers(min_value=1, max_value=50))
def test_a_shortened_line_keeps_to_its_columns(text: str, columns: int) -> None:
    assert width(shortened(one_line(text), columns)) <= columns


def test_a_shortened_name_keeps_both_ends() -> None:
    assert shortened("refund-order-of-somebody-else", 15) == "refund-…dy-else"
