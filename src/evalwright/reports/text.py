"""Text for a terminal: data made harmless, widths as the eye sees them, colour where it can be shown.

Whatever comes from files, models or systems goes through `harmless` before it is shown: control characters,
escape sequences and characters that reorder text appear as visible escapes.
"""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TextIO

__all__ = [
    "Paint",
    "block",
    "capped",
    "ended",
    "flat",
    "folded",
    "harmless",
    "harmless_json",
    "is_terminal",
    "json_line",
    "one_line",
    "paint_for",
    "short_line",
    "shortened",
    "width",
]

_HARMFUL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_IN_JSON = re.compile("[\x80-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""What JSON may contain as it is, and terminals act on."""
_COMMAND = re.compile(r"(?<=\n)([ \t]*)::")
"""Text that GitHub takes for a command when it begins a line of a log."""
_COLOUR = re.compile(r"\x1b\[\d+m")
_LINE_END = re.compile(r"\s*\n\s*")
_SPACE = re.compile(r"[ \t\n]+")
_MOST_LINES = 20
_STYLES = {
    "bold": "1",
    "dim": "2",
    "pass": "32",
    "fail": "31",
    "error": "35",
    "skip": "2",
    "borderline": "33",
    "heading": "1",
}


def harmless(text: str) -> str:
    """The text with every character that could act on a terminal as a visible escape; keeps LF and tab.

    The same applies to text at the start of a later line that GitHub would take for a command.
    """
    if _is_plain(text):
        return text
    return _COMMAND.sub(r"\1\\x3a:", _HARMFUL.sub(_escape, text))


def harmless_json(text: str) -> str:
    """The same JSON with escapes for characters that could act on a terminal."""
    return text if text.isascii() else _IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _is_plain(text: str) -> bool:
    """Whether it is ASCII without a control character or a line end, as nearly all texts are: they stay as they are."""
    return text.isascii() and text.isprintable()


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"


def flat(text: str) -> str:
    """Text on one line: no part of it can pass for a line of its own."""
    return _LINE_END.sub(" ", text)


def capped(text: str, limit: int | None) -> str:
    """At most `limit` characters; the number of omitted ones is appended."""
    if limit is None or len(text) <= limit:
        return text
    return f"{text[:limit]}… (+{len(text) - limit:,} characters)"


def one_line(text: str, limit: int | None = None) -> str:
    """Harmless text on one line, at most about `limit` characters long."""
    if limit is not None and len(text) > 4 * limit:  # enough remains to show where the cut is
        text = text[: 4 * limit] + "…"
    if "  " in text or not _is_plain(text):
        text = harmless(_SPACE.sub(" ", text))
    line = text.strip()
    return line if limit is None or len(line) <= limit else line[: limit - 1].rstrip() + "…"


def json_line(value: Any) -> str:
    """A value as JSON on one line of at most 200 characters."""
    return one_line(json.dumps(value, ensure_ascii=False), 200)


def shortened(line: str, columns: int) -> str:
    """A harmless line in at most `columns` columns: ids of a suite differ at their ends, so the middle is cut."""
    if width(line) <= columns:
        return line
    head, tail = line[: (columns + 1) // 2], line[-(columns // 2) :] if columns > 1 else ""
    while head and width(head) + width(tail) >= columns:
        head, tail = (head[:-1], tail) if len(head) >= len(tail) else (head, tail[1:])
    return f"{head}…{tail}"


def short_line(text: str, columns: int) -> str:
    """A name as a harmless line in at most `columns` columns."""
    return shortened(one_line(text), columns)


def ended(line: str, columns: int) -> str:
    """A harmless line in at most `columns` columns: the beginning is kept."""
    if width(line) <= columns:
        return line
    while line and width(line) >= columns:
        line = line[:-1]
    return line.rstrip() + "…"


def folded(pieces: Iterable[str], columns: int | None, first: str = "", indent: str = "") -> list[str]:
    """Harmless pieces with a space between them in lines of at most `columns` columns, broken between pieces only."""
    lines, line, fresh = [], first, True
    for piece in pieces:
        joined = line + ("" if fresh else " ") + piece
        if not fresh and columns is not None and width(joined) > columns:
            lines.append(line)
            joined = indent + piece
        line, fresh = joined, False
    return [*lines, line]


def block(text: str, indent: str, limit: int | None) -> str:
    """Harmless text of several lines, its later lines indented; with a `limit` of characters also at most 20 lines."""
    shown = capped(text, limit)
    if _is_plain(shown):
        return shown
    if limit is not None and shown.count("\n") > _MOST_LINES:
        left = text.count("\n") + 1 - _MOST_LINES
        shown = "\n".join([*shown.split("\n", _MOST_LINES)[:_MOST_LINES], f"… (+{left:,} lines)"])
    return harmless(shown).replace("\t", "    ").replace("\n", "\n" + indent)


def width(text: str) -> int:
    """Columns that a harmless text takes on a terminal; colours take none."""
    if "\x1b" in text:
        text = _COLOUR.sub("", text)
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


@dataclass(frozen=True, slots=True)
class Paint:
    """What the screen can show. Puts colour round a text, or leaves it as it is."""

    on: bool = False
    columns: int | None = None
    """Width of the screen; None if lines may have any length."""
    whole: bool = False
    """Whether texts and names outside tables are never cut, because the reader is a program."""

    def __call__(self, text: str, style: str) -> str:
        if not self.on or not text or (code := _STYLES.get(style)) is None:
            return text
        return f"\x1b[{code}m{text}\x1b[0m"


def is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty() and os.environ.get("TERM") != "dumb"
    except ValueError:
        return False


def paint_for(stream: TextIO) -> Paint:
    """What a stream can show: colours on a terminal unless NO_COLOR is set (no-color.org), and its width.

    The variable COLUMNS overrides the width. Files and pipes get 120 columns: they are mostly read on wide screens.
    """
    terminal = is_terminal(stream)
    import shutil

    columns = shutil.get_terminal_size((80 if terminal else 120, 0)).columns
    colours = terminal and not os.environ.get("NO_COLOR")
    return Paint(colours, columns, not terminal and not os.environ.get("COLUMNS"))
