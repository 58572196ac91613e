"""The query of an address: a key or value that its page does not know is an error that names it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evalwright.errors import did_you_mean

__all__ = ["BadQuery", "page_start", "single_value", "single_values", "unknown_key", "unknown_value", "whole_number"]


class BadQuery(ValueError):
    """A key or value of an address that is not known; the message names it."""


def unknown_key(name: str, known: Sequence[str]) -> BadQuery:
    there = f"there are: {', '.join(known)}" if known else "there are none"
    return BadQuery(f"unknown key {name[:200]!r}{did_you_mean(name, known)} ({there})")


def unknown_value(name: str, value: str, known: Sequence[str]) -> BadQuery:
    """`known` may be long, of which the first ones are named, or empty if they are too many to choose from."""
    message = (
        f"expected {'one of: ' if len(known) > 1 else ''}{', '.join(known[:20])}" if known else "which no cell has"
    )
    return BadQuery(f"{name!r} is {value[:200]!r}, {message}")


def single_value(found: dict[str, str], name: str, value: str) -> None:
    """Note the value of a key that has only one. Raises BadQuery if it has one already."""
    if found.setdefault(name, value) != value:
        raise BadQuery(f"{name!r} is given twice, as {found[name][:100]!r} and as {value[:100]!r}")


def single_values(pairs: Iterable[tuple[str, str]], known: Sequence[str]) -> dict[str, str]:
    """The values of a query that has each key once; empty ones are left out. Raises BadQuery."""
    values: dict[str, str] = {}
    for name, value in pairs:
        if name not in known:
            raise unknown_key(name, known)
        if value:
            single_value(values, name, value)
    return values


def whole_number(name: str, value: str, least: int = 0, most: int = 10**12 - 1) -> int:
    """Raises BadQuery."""
    if not (value.isascii() and value.isdigit() and len(value) <= 12) or not least <= int(value) <= most:
        to = "" if most == 10**12 - 1 else f" to {most:,}"
        raise BadQuery(f"{name!r} is {value[:100]!r}, expected a whole number from {least}{to}")
    return int(value)


def page_start(after: int, count: int) -> int:
    """How many of `count` rows come before a page. Raises BadQuery if that are all of them."""
    if after and after >= count:
        raise BadQuery(f"'after' is {after}, but there are only {count:,} rows")
    return after
