"""Text for a terminal: data made harmless, widths as the eye sees them, aligned tables, a little colour.

Whatever comes from files, models or systems goes through `harmless` before it is shown: control characters,
escape sequences and characters that reorder text appear as visible escapes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

__all__ = ["Paint", "Styled", "Table", "block", "capped", "harmless", "one_line", "width"]

_HARMFUL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_SPACE = re.compile(r"[ \t\n]+")
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

Styled = tuple[str, str]
"""A text and the name of its style."""


def harmless(text: str) -> str:
    """The text with every character that could act on a terminal as a visible escape; keeps LF and tab."""
    return text if text.isascii() and text.isprintable() else _HARMFUL.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"


def capped(text: str, limit: int | None) -> str:
    """At most `limit` characters; what is left out is counted."""
    if limit is None or len(text) <= limit:
        return text
    return f"{text[:limit]}… (+{len(text) - limit:,} characters)"


def one_line(text: str, limit: int | None = None) -> str:
    """Harmless text on one line, at most about `limit` characters long."""
    if limit is not None and len(text) > 4 * limit:  # enough is left to see where the cut is
        text = text[: 4 * limit] + "…"
    line = _SPACE.sub(" ", harmless(text)).strip()
    return line if limit is None or len(line) <= limit else line[: limit - 1].rstrip() + "…"


def block(text: str, indent: str, limit: int | None) -> str:
    """Harmless text of several lines, at most `limit` characters, its later lines indented."""
    return harmless(capped(text, limit)).replace("\t", "    ").replace("\n", "\n" + indent)


def width(text: str) -> int:
    """Columns that a harmless text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


@dataclass(frozen=True, slots=True)
class Paint:
    """Puts colour round a text, or leaves it as it is."""

    on: bool = False

    def __call__(self, text: str, style: str) -> str:
        code = _STYLES.get(style)
        return f"\x1b[{code}m{text}\x1b[0m" if self.on and code and text else text


@dataclass(slots=True)
class Table:
    """Aligned columns without lines: those whose name begins with `>` to the right, empty ones left out."""

    columns: Sequence[str]
    limit: int = 60
    """Characters of a cell."""
    rows: list[list[Styled]] = field(default_factory=list)

    def add(self, cells: Iterable[str | Styled]) -> None:
        row = [(cell, "") if isinstance(cell, str) else cell for cell in cells]
        self.rows.append([(one_line(text, self.limit), style) for text, style in row])

    def lines(self, paint: Paint, indent: str = "  ") -> list[str]:
        used = [i for i in range(len(self.columns)) if any(row[i][0] for row in self.rows)]
        header = [(self.columns[i].removeprefix(">"), "dim") for i in used]
        rows = [header, *([row[i] for i in used] for row in self.rows)]
        widths = [max(width(row[i][0]) for row in rows) for i in range(len(used))]
        right = [self.columns[i].startswith(">") for i in used]
        return [indent + _aligned(row, widths, right, paint) for row in rows]


def _aligned(row: list[Styled], widths: list[int], right: list[bool], paint: Paint) -> str:
    parts = []
    last = max((i for i, (text, _) in enumerate(row) if text), default=-1)
    for i, (text, style) in enumerate(row[: last + 1]):
        space = " " * (widths[i] - width(text))
        painted = paint(text, style)
        parts.append(space + painted if right[i] else painted + (space if i < last else ""))
    return "  ".join(parts)
