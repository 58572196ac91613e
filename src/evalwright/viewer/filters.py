"""How cells are filtered, sorted and grouped: read from an address and written back into one."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urlencode

from evalwright.errors import did_you_mean
from evalwright.viewer.schema import STATUSES

__all__ = ["CELL_COLUMNS", "GROUPS", "METADATA", "SORTS", "BadQuery", "Filter", "QueryPairs"]

QueryPairs = Sequence[tuple[str, str]]
"""The query of an address, in its order."""

SORTS = ("suite", "status", "latency", "cost", "tokens", "score", "duration")
GROUPS = ("none", "case", "status", "variant", "evaluator", "tag", "reason")
CELL_COLUMNS = (
    "variant",
    "trial",
    "failed",
    "answer",
    "latency",
    "cost",
    "score",
    "tokens",
    "duration",
    "attempt",
    "tags",
)
METADATA = "meta."
"""The prefix of the names of metadata, as conditions and as columns."""
_RANGES = ("latency", "cost", "tokens", "score")
_MANY = ("status", "tag", "variant", "error", "reason", "trial", "case")
_WORDS = {"in": ("messages",), "verdict": ("pass", "fail"), "flaky": ("1",), "group": GROUPS, "status": STATUSES}
_LONGEST = 2_000


class BadQuery(ValueError):
    """A key or value of an address that is not known; the message names it."""


@dataclass(frozen=True)
class Filter:
    """The wanted cells and their order. Empty: all, in the order of the suite."""

    q: str = ""
    in_messages: bool = False
    status: tuple[str, ...] = ()
    evaluator: str = ""
    verdict: str = ""
    """With `evaluator`: `pass` for cells that it passed; else those that it failed or could not judge."""
    tag: tuple[str, ...] = ()
    variant: tuple[str, ...] = ()
    error: tuple[str, ...] = ()
    reason: tuple[str, ...] = ()
    trial: tuple[int, ...] = ()
    case: tuple[str, ...] = ()
    metadata: tuple[tuple[str, str], ...] = ()
    ranges: dict[str, float] = field(default_factory=dict)
    """`latency_min` and so on: milliseconds, US dollars, tokens, score."""
    flaky: bool = False
    sort: str = "suite"
    descending: bool = False
    group: str = "none"
    columns: tuple[str, ...] = ()
    """The columns of the list, of `CELL_COLUMNS` and metadata; empty: the usual ones."""
    after: int = 0
    """How many cells come before the page."""

    @property
    def words(self) -> list[str]:
        """The words that must all be found, in lower case; a phrase in double quotes counts as one."""
        try:
            found = shlex.shlex(self.q, posix=True)
            found.whitespace_split, found.quotes, found.escape, found.commenters = True, '"', "", ""
            words = list(found)
        except ValueError:  # a quote that is not closed is a character like any other
            words = self.q.split()
        return list(dict.fromkeys(word.lower() for word in words if word))

    @property
    def evaluators(self) -> tuple[str, ...]:
        """The one evaluator, as the other choices are."""
        return (self.evaluator,) if self.evaluator else ()

    @property
    def narrows(self) -> bool:
        return bool(self.pairs(place=False))

    def pairs(self, *, place: bool = True) -> list[tuple[str, str]]:
        """As the query of an address; without `place`, only the part that chooses cells."""
        found = [("q", self.q), ("in", "messages" if self.in_messages else "")]
        found += [(name, str(value)) for name in _MANY for value in getattr(self, name)]
        found += [("evaluator", self.evaluator), ("verdict", self.verdict)]
        found += [(f"{METADATA}{name}", value) for name, value in self.metadata]
        found += [(name, repr(value).removesuffix(".0")) for name, value in self.ranges.items()]
        found += [("flaky", "1" if self.flaky else "")]
        if place:
            sort = "" if self.sort == "suite" and not self.descending else f"{'-' * self.descending}{self.sort}"
            found += [("sort", sort), ("group", "" if self.group == "none" else self.group)]
            found += [("column", name) for name in self.columns]
            found += [("after", str(self.after) if self.after else "")]
        return [(name, value) for name, value in found if value]

    def query(self, **changes: object) -> str:
        """The query of the address with some changes; the first page unless `after` is given."""
        changed = replace(self, **{"after": 0, **changes})  # type: ignore[arg-type]
        pairs = changed.pairs()
        return f"?{urlencode(pairs)}" if pairs else ""

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]], also: Sequence[str] = ()) -> Filter:
        """Read a query. `also` are keys that the page understands itself. Raises BadQuery."""
        found: dict[str, object] = {}
        many: dict[str, list[str]] = {name: [] for name in _MANY}
        metadata, ranges, columns = [], {}, []
        for name, value in pairs:
            if len(value) > _LONGEST:
                raise BadQuery(f"{name!r} is longer than {_LONGEST:,} characters")
            if name in also or value == "":
                _known(name, also)
            elif name in _WORDS and value not in _WORDS[name]:
                raise BadQuery(_expected(name, value, _WORDS[name]))
            elif name in many:
                many[name].append(value)
            elif name == "column":
                if value not in CELL_COLUMNS and not value.startswith(METADATA):
                    raise BadQuery(_expected(name, value, [*CELL_COLUMNS, f"{METADATA}KEY"]))
                columns.append(value)
            elif name.startswith(METADATA):  # the name can be empty, as any key of JSON
                metadata.append((name.removeprefix(METADATA), value))
            elif _range(name):
                ranges[name] = _number(name, value)
            elif name == "after":
                found["after"] = _count(name, value)
            elif name == "sort":
                sort = value.removeprefix("-")
                if sort not in SORTS:
                    raise BadQuery(_expected(name, value, SORTS))
                found |= {"sort": sort, "descending": value.startswith("-")}
            else:
                _known(name, also)
                found[{"in": "in_messages"}.get(name, name)] = value if name not in ("in", "flaky") else True
        found |= {name: tuple(dict.fromkeys(values)) for name, values in many.items()}
        found["trial"] = tuple(_count("trial", value) for value in many["trial"])
        found["columns"] = tuple(dict.fromkeys(columns))
        return cls(**found, metadata=tuple(metadata), ranges=ranges)  # type: ignore[arg-type]


_KEYS = ("q", "in", "evaluator", "verdict", "flaky", "sort", "group", "column", "after", *_MANY)


def _known(name: str, also: Sequence[str]) -> None:
    if name not in _KEYS and name not in also and not _range(name) and not name.startswith(METADATA):
        ranges = [f"{one}_{end}" for one in _RANGES for end in ("min", "max")]
        known = [*_KEYS, *also, *ranges, f"{METADATA}KEY"]
        raise BadQuery(f"unknown key {name!r}{did_you_mean(name, known)} (there are: {', '.join(sorted(known))})")


def _range(name: str) -> bool:
    what, _, end = name.rpartition("_")
    return what in _RANGES and end in ("min", "max")


def _number(name: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise BadQuery(f"{name!r} is {value!r}, expected a number")
    return number


def _count(name: str, value: str) -> int:
    if not (value.isascii() and value.isdigit() and len(value) <= 12):
        raise BadQuery(f"{name!r} is {value!r}, expected a whole number from 0")
    return int(value)


def _expected(name: str, value: str, known: Sequence[str]) -> str:
    return f"{name!r} is {value!r}, expected one of: {', '.join(known)}"
