from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.errors import InputError
from evalwright.files.jsonl import decoded, exact, lines_of, repeated_keys, repeated_keys_in


def read(folder: Path, data: bytes) -> list[tuple[int, bytes]]:
    file = folder / "lines.jsonl"
    file.write_bytes(data)
    return list(lines_of(file))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("jsonl")


def test_blank_lines_count_but_are_not_there(folder: Path) -> None:
    assert read(folder, b"1\n\n  \n2\n") == [(1, b"1"), (4, b"2")]


def test_a_carriage_return_before_the_line_end_is_dropped(folder: Path) -> None:
    assert read(folder, b"1\r\n2\r\n") == [(1, b"1"), (2, b"2")]


def test_the_last_line_needs_no_end(folder: Path) -> None:
    assert read(folder, b"1\n2") == [(1, b"1"), (2, b"2")]


def test_a_byte_order_mark_is_no_part_of_the_first_line(folder: Path) -> None:
    assert read(folder, b"\xef\xbb\xbf1\n") == [(1, b"1")]


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85", "\x0c", "\x0b", "\x1c"])
def test_only_a_line_feed_ends_a_line(folder: Path, mark: str) -> None:
    line = f'"a{mark}b"'.encode()
    assert read(folder, line + b"\n") == [(1, line)]


@pytest.mark.parametrize("name", ["missing.jsonl", "", "a" * 5000, "nul\0byte"])
def test_what_cannot_be_read_is_named(folder: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"cannot be read|does not exist"):
        list(lines_of(folder / name))


@given(data=st.binary())
def test_no_byte_but_line_ends_and_blanks_is_lost(folder: Path, data: bytes) -> None:
    kept = b"".join(line for _, line in read(folder, b"x" + data))
    assert kept.translate(None, b"\r\n \t\x0b\x0c") == (b"x" + data).translate(None, b"\r\n \t\x0b\x0c")


@pytest.mark.parametrize(
    ("line", "keys"),
    [
        (b'{"a": 1, "b": {"a": 2}, "c": [{"a": 3}, {"a": 4}]}', []),
        (b'{"a": 1, "b" : 2, "a"  :3}', ["a"]),
        (b'{"a": {"x": 1, "\\u0078": 2, "y": 1, "y": 1}}', ["x", "y"]),
        (b'["{\\"a\\": 1, \\"a\\": 2}"]', []),
        (b'{"a\\u003ab": 1, "c": 2, "c": 3}', ["c"]),
    ],
)
def test_keys_that_come_twice_in_one_object_are_named(tmp_path: Path, line: bytes, keys: list[str]) -> None:
    assert repeated_keys(line) == keys
    path, others = tmp_path / "lines.jsonl", [b'{"a": {"b:": ":"}}\r', b"", b'["a", {"a": 1}]'] * 2000
    path.write_bytes(b"\n".join([*others, line, *others]))
    assert list(repeated_keys_in(path)) == [(6001, key) for key in keys]


@pytest.mark.parametrize("read_json", [decoded, exact])
def test_half_a_character_is_no_json(read_json: Callable[[str | bytes], object]) -> None:
    for text in ('{"a": ["\\ud800"]}', b'{"\\uDFFF x": NaN}', b'{"\xed\xa0\x80": 1}'):
        with pytest.raises(ValueError, match=r"\\ud(800|fff) without its other half"):
            read_json(text)
    assert read_json('["\\ud83d\\ude00", "\\\\ud800"]') == ["\U0001f600", "\\ud800"]


def test_json_keeps_whole_numbers_of_any_size() -> None:
    assert exact(b"[123456789012345678901234567890]") == [123456789012345678901234567890]
