"""Texts of records as pages show them: nothing invisible, nothing unbounded."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from evalwright.reports.text import shortened

__all__ = [
    "Fold",
    "few",
    "first_part",
    "folds",
    "pretty",
    "searchable",
    "shell_word",
    "short_name",
    "visible",
    "words_of",
]

_LINE = 120
"""Characters up to which JSON stays on one line."""
_DEEP = " " * 8
"""The prefix of lines below the third level."""
_FOLDED = 4
"""The number of lines from which something is folded."""
_MOST_PARTS = 100
_LONGEST_NAME = 120
_MOST_NAMES = 5
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff\ud800-\udfff\U000e0000-\U000e0fff]"
)
_SIGNS = "\xa9\xae\u203c\u2049\u2122\u2139\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
_LETTERS = "\u0620-\u0dff\ufb50-\ufdff\ufe70-\ufefc"
"""Of Arabic, Persian and the scripts of India, which are spelt with joiners."""
_SPELT = re.compile(
    f"(?<=[{_SIGNS}])[\ufe0e\ufe0f]|(?<=[0-9#*])\ufe0f(?=\u20e3)|(?<=[{_SIGNS}\ufe0f])\u200d(?=[{_SIGNS}])"
    f"|(?<=[{_LETTERS}])[\u200c\u200d](?=[{_LETTERS}])|({_INVISIBLE.pattern})"
)
"""What is invisible, in its group; outside of it, what belongs to an emoji or to the spelling of a word."""


def visible(text: str) -> str:
    """The text with a mark and the code in place of characters that are invisible or that turn the order of others."""
    return _SPELT.sub(
        lambda match: match[0] if match[1] is None else f"⟦U+{ord(match[0]):04X}⟧", text.replace("\r\n", "\n")
    )


def short_name(text: object) -> str:
    """A name in a row of a list, where nothing may fill the page: the middle of a long one is cut."""
    return visible(shortened(str(text), _LONGEST_NAME))


def first_part(text: str, most: int) -> str:
    """At most so many characters of a text, with a mark if there are more."""
    return visible(text if len(text) <= most else f"{text[: most - 1].rstrip()}…")


def few(names: Sequence[str]) -> str:
    """The first names in a row of a list, and how many more there are."""
    more = len(names) - _MOST_NAMES
    message = ", ".join(map(short_name, names[:_MOST_NAMES]))
    return f"{message} and {more} more" if more > 0 else message


def shell_word(text: object) -> str:
    """A text as one word of a command line. Invisible characters are escaped as bash and zsh read them: the marks that
    pages show in their place would be copied."""
    word = str(text)
    if _INVISIBLE.search(word) is None:
        return shlex.quote(word)
    escaped = word.replace("\\", r"\\").replace("'", r"\'")
    return "$'" + _INVISIBLE.sub(lambda match: rf"\U{ord(match[0]):08X}", escaped) + "'"


def pretty(value: Any) -> str:
    """Text as it is, anything else as JSON: on one line if it is short."""
    if isinstance(value, str):
        return value
    line = json.dumps(value, ensure_ascii=False)
    return line if len(line) <= _LINE else json.dumps(value, ensure_ascii=False, indent=2)


class Fold(NamedTuple):
    """Lines of a text; if it has a `title`, that is the line before them, and they are shown on request."""

    title: str
    text: str


def folds(json_text: str) -> list[Fold]:
    """JSON on lines, with objects and lists of the fourth level folded, but for short ones; of many the first ones."""
    parts: list[Fold] = []
    open_lines: list[str] = []
    for deep, group in groupby(json_text.split("\n"), key=_is_deep):
        lines = list(group)
        if deep and open_lines and len(lines) >= _FOLDED and len(parts) < _MOST_PARTS:
            title = open_lines.pop()
            parts += [Fold("", "\n".join(open_lines)), Fold(title, "\n".join(lines))]
            open_lines = []
        else:
            open_lines += lines
    return [*parts, Fold("", "\n".join(open_lines))] if open_lines or not parts else parts


def _is_deep(line: str) -> bool:
    return line.startswith(_DEEP)


def searchable(text: str) -> str:
    """As the table has a text that is searched: upper and lower case alike, and whole, which patterns end at U+0000."""
    return text.lower().replace("\0", " ")


def words_of(text: str) -> Iterator[str]:
    """Words and the text between them."""
    yield from re.findall(r"\s+|\w+|[^\w\s]", text)
