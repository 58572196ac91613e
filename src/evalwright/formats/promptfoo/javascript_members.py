"""Members of JavaScript's values, as templates call them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evalwright.formats.promptfoo.nunjucks_values import List
from evalwright.formats.promptfoo.values import template_text

__all__ = ["OF_LISTS", "OF_NUMBERS", "OF_TEXTS"]


def _sliced(value: Any) -> Callable[..., Any]:
    return lambda start=0, end=None: value[int(start) : None if end is None else int(end)]


def _at(value: Any) -> Callable[..., Any]:
    return lambda place=0: value[int(place)] if -len(value) <= place < len(value) else None


def _substring(text: str) -> Callable[..., str]:
    def between(start: float = 0, end: float | None = None) -> str:
        first, last = sorted(max(0, int(place)) for place in (start, len(text) if end is None else end))
        return text[first:last]

    return between


def _substr(text: str) -> Callable[..., str]:
    def of_length(start: float = 0, length: float | None = None) -> str:
        rest = text[int(start) :]
        return rest if length is None else rest[: max(0, int(length))]

    return of_length


def _padding(text: str, width: float, fill: str) -> str:
    missing = max(0, int(width) - len(text))
    return (fill * missing)[:missing]


def _last_index(items: list[Any]) -> Callable[[Any], int]:
    return lambda item: max((i for i, other in enumerate(items) if other == item), default=-1)


OF_TEXTS: dict[str, Callable[[str], Any]] = {
    "at": _at,
    "charAt": lambda text: lambda place=0: text[int(place) : int(place) + 1] if place >= 0 else "",
    "concat": lambda text: lambda *parts: text + "".join(map(template_text, parts)),
    "endsWith": lambda text: text.endswith,
    "includes": lambda text: lambda part: template_text(part) in text,
    "indexOf": lambda text: text.find,
    "lastIndexOf": lambda text: text.rfind,
    "padEnd": lambda text: lambda width, fill=" ": text + _padding(text, width, fill),
    "padStart": lambda text: lambda width, fill=" ": _padding(text, width, fill) + text,
    "repeat": lambda text: lambda times: text * times,
    "replace": lambda text: lambda old, new: text.replace(old, new, 1),
    "replaceAll": lambda text: text.replace,
    "slice": _sliced,
    "split": lambda text: lambda sign: List(list(text) if sign == "" else text.split(sign)),
    "startsWith": lambda text: text.startswith,
    "substr": _substr,
    "substring": _substring,
    "toLowerCase": lambda text: text.lower,
    "toString": lambda text: lambda: text,
    "toUpperCase": lambda text: text.upper,
    "trim": lambda text: text.strip,
    "trimEnd": lambda text: text.rstrip,
    "trimStart": lambda text: text.lstrip,
}
OF_LISTS: dict[str, Callable[[list[Any]], Any]] = {
    "at": _at,
    "concat": lambda items: lambda other: List([*items, *other]),
    "includes": lambda items: lambda item: item in items,
    "indexOf": lambda items: lambda item: items.index(item) if item in items else -1,
    "join": lambda items: lambda sign=",": sign.join(map(template_text, items)),
    "lastIndexOf": _last_index,
    "slice": lambda items: lambda *places: List(_sliced(items)(*places)),
    "toString": lambda items: lambda: template_text(items),
}
OF_NUMBERS: dict[str, Callable[[float], Any]] = {
    "toFixed": lambda number: lambda digits=0: f"{number:.{int(digits)}f}",
    "toString": lambda number: lambda: template_text(number),
}
