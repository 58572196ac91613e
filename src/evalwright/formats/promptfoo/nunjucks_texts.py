"""The filters of Nunjucks for texts. As there, most read no other value as a text, not even a number."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from jinja2 import Undefined

from evalwright.files.numbers import is_number
from evalwright.formats.promptfoo.javascript_operators import number_of, string_of
from evalwright.formats.promptfoo.values import template_text

__all__ = ["LONGEST_TEXT", "TEXT_FILTERS", "SafeText", "present_text"]

LONGEST_TEXT = 2**29 - 24
"""Characters of the longest text that Node makes; without a limit, a template could take all memory."""

_TAGS = re.compile(r"</?[a-z][a-z0-9]*\b[^>]*>|<!--.*?-->", re.IGNORECASE | re.DOTALL)
_WORD = re.compile(r"\w+", re.ASCII)
_ESCAPED = str.maketrans({"&": "&amp;", '"': "&quot;", "'": "&#39;", "<": "&lt;", ">": "&gt;", "\\": "&#92;"})


class SafeText(str):
    """A text that is not escaped again."""

    __slots__ = ()


def _text(value: Any) -> str:
    """A text, or nothing in place of one. Raises TypeError."""
    if value is None or value is False or isinstance(value, Undefined):
        return ""
    return present_text(value)


def present_text(value: Any) -> str:
    """A text. Raises TypeError."""
    if not isinstance(value, str):
        shown = "undefined" if isinstance(value, Undefined) else "null" if value is None else template_text(value)
        raise TypeError(f"a filter for texts was given {shown!r:.60}")
    return value


def _capitalized(value: Any) -> str:
    text = _text(value).lower()
    return text[:1].upper() + text[1:]


def _titled(value: Any) -> str:
    """Words are separated by blanks and nothing else."""
    return " ".join(map(_capitalized, _text(value).split(" ")))


def _truncated(value: Any, length: int = 255, cuts_words: bool = False, end: str = "...") -> str:
    text = _text(value)
    if len(text) <= length:
        return text
    blank = -1 if cuts_words else text.rfind(" ", 0, length + 1)
    return text[: blank if blank > 0 else length] + end


def _replaced(value: Any, old: str, new: str, count: int = -1) -> Any:
    """Numbers have their digits replaced; anything else that is no text stays as it is, as does a text in which
    something else is to be replaced."""
    replaceable = isinstance(old, str) or is_number(old)
    if not replaceable or not (isinstance(value, str) or is_number(value)):
        return value
    return template_text(value).replace(template_text(old), string_of(new), count)


def _centered(value: Any, width: Any = 80) -> str:
    text = "" if value is None or value is False or isinstance(value, Undefined) else template_text(value)
    if isinstance(value, (int, float, dict)):
        return text  # these have no length
    missing = _blanks(width or 80) - (len(value) if isinstance(value, (list, tuple)) else len(text))
    before, after = divmod(max(0, missing), 2)
    return " " * before + text + " " * (before + after)


def _blanks(width: Any) -> int:
    """A width that fits into memory. Raises ValueError."""
    number = number_of(width)
    if number > LONGEST_TEXT:
        raise ValueError(f"a text cannot have {string_of(width)} blanks")
    return int(number) if number == number else 0


def _indented(value: Any, width: Any = 4, first: bool = False) -> str:
    text = _text(value)
    blanks = " " * _blanks(width or 4)
    _blanks(len(blanks) * text.count("\n"))
    return (blanks if first and text else "") + text.replace("\n", f"\n{blanks}")


def _without_tags(value: Any, keeps_lines: bool = False) -> str:
    text = _TAGS.sub("", _text(value)).strip()
    if not keeps_lines:
        return re.sub(r"\s+", " ", text)
    lines = [re.sub(r" +", " ", line.strip(" ")) for line in re.split(r"\r?\n", text)]
    return re.sub(r"\n\n\n+", "\n\n", "\n".join(lines))


def _word_count(value: Any) -> int | None:
    """None without any word: nothing is printed."""
    return len(_WORD.findall(_text(value))) or None


def _with_breaks(value: Any) -> str:
    nothing = value is None or isinstance(value, Undefined)
    return "" if nothing else re.sub(r"\r\n|\n", "<br />\n", present_text(value))


def _safe(value: Any) -> str:
    return SafeText(template_text(value))


def _escaped_again(value: Any) -> str:
    return SafeText(template_text(value).translate(_ESCAPED))


def _escaped(value: Any) -> str:
    return value if isinstance(value, SafeText) else _escaped_again(value)


_PUNCTUATED = re.compile(r"(?:\(|<|&lt;)?(.*?)(?:\.|,|\)|\n|&gt;)?")
_MAIL = re.compile(r"[\w.!#$%&'*+\-/=?^`{|}~]+@[a-z\d\-]+(?:\.[a-z\d\-]+)+", re.IGNORECASE | re.ASCII)
_DOMAIN = re.compile(r"\.(?:org|net|com)(?::|/|$)")


def _with_links(value: Any, length: Any = None, no_follow: Any = False) -> str:
    shown = None if length is None or isinstance(length, Undefined) else int(length)
    more = ' rel="nofollow"' if no_follow is True else ""

    def linked(word: str) -> str:
        match = _PUNCTUATED.fullmatch(word)
        url = match[1] if match else word
        if _MAIL.fullmatch(url):
            return f'<a href="mailto:{url}">{url}</a>'
        if url.startswith(("http://", "https://")):
            return f'<a href="{url}"{more}>{url[:shown]}</a>'
        if url.startswith("www.") or _DOMAIN.search(url):
            return f'<a href="http://{url}"{more}>{url[:shown]}</a>'
        return word

    return "".join(map(linked, re.split(r"(\s+)", present_text(value))))


TEXT_FILTERS: dict[str, Callable[..., Any]] = {
    "capitalize": _capitalized,
    "center": _centered,
    "e": _escaped,
    "escape": _escaped,
    "forceescape": _escaped_again,
    "indent": _indented,
    "lower": lambda value: _text(value).lower(),
    "nl2br": _with_breaks,
    "replace": _replaced,
    "safe": _safe,
    "striptags": _without_tags,
    "title": _titled,
    "trim": lambda value: present_text(value).strip(),
    "truncate": _truncated,
    "upper": lambda value: _text(value).upper(),
    "urlize": _with_links,
    "wordcount": _word_count,
}
