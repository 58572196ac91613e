"""How cells are filtered, sorted and grouped: read from an address and written back into one."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urlencode

from evalwright.viewer.labelled import LABEL_CHOICES
from evalwright.viewer.query import BadQuery, single_value, unknown_key, unknown_value, whole_number
from evalwright.viewer.schema import STATUSES

__all__ = ["CELL_COLUMNS", "GROUPS", "METADATA", "SORTS", "Filter", "QueryPairs"]

QueryPairs = Sequence[tuple[str, str]]
"""The query of an address, in its order."""

SORTS = ("suite", "status", "latency", "cost", "tokens", "score", "duration")
GROUPS = ("none", "case", "status", "variant", "evaluator", "tag", "reason")
CELL_COLUMNS = (
    "input",
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
_WORDS = {
    "in": ("messages",),
    "verdict": ("pass", "fail"),
    "flaky": ("1",),
    "label": LABEL_CHOICES,
    "group": GROUPS,
    "status": STATUSES,
}
_LONGEST = 2_000


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
    label: str = ""
    """One of `LABEL_CHOICES`; with `evaluator`, of the labels about that one."""
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
            lexer = shlex.shlex(self.q, posix=True)
            lexer.whitespace_split, lexer.quotes, lexer.escape, lexer.commenters = True, '"', "", ""
            words = list(lexer)
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
        pairs = [("q", self.q), ("in", "messages" if self.in_messages else "")]
        pairs += [(name, str(value)) for name in _MANY for value in getattr(self, name)]
        pairs += [("evaluator", self.evaluator), ("verdict", self.verdict)]
        pairs += [(f"{METADATA}{name}", value) for name, value in self.metadata]
        pairs += [(name, repr(value).removesuffix(".0")) for name, value in self.ranges.items()]
        pairs += [("flaky", "1" if self.flaky else ""), ("label", self.label)]
        if place:
            sort = "" if self.sort == "suite" and not self.descending else f"{'-' * self.descending}{self.sort}"
            pairs += [("sort", sort), ("group", "" if self.group == "none" else self.group)]
            pairs += [("column", name) for name in self.columns]
            pairs += [("after", str(self.after) if self.after else "")]
        return [(name, value) for name, value in pairs if value]

    def query(self, **changes: object) -> str:
        """The query of the address with some changes; the first page unless `after` is given."""
        changed = replace(self, **{"after": 0, **changes})  # type: ignore[arg-type]
        pairs = changed.pairs()
        return f"?{urlencode(pairs)}" if pairs else ""

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]], also: Sequence[str] = ()) -> Filter:
        """Read a query. `also` are keys that the page understands itself. Raises BadQuery."""
        single: dict[str, str] = {}
        many: dict[str, list[str]] = {name: [] for name in (*_MANY, "column")}
        metadata = []
        for name, value in pairs:
            if len(value) > _LONGEST:
                raise BadQuery(f"{name!r} is longer than {_LONGEST:,} characters")
            _check_known(name, also)
            if value == "":
                continue
            if name in _WORDS and value not in _WORDS[name]:
                raise unknown_value(name, value, _WORDS[name])
            if name == "column" and value not in CELL_COLUMNS and not value.startswith(METADATA):
                raise unknown_value(name, value, [*CELL_COLUMNS, f"{METADATA}KEY"])
            if name in many:
                many[name].append(value)
            elif name.startswith(METADATA):  # the name can be empty, as any key of JSON
                metadata.append((name.removeprefix(METADATA), value))
            else:
                single_value(single, name, value)
        if "verdict" in single and "evaluator" not in single:
            raise BadQuery("'verdict' is given without 'evaluator', whose verdict it is")
        if "after" in single and single.get("group", "none") != "none":
            raise BadQuery("'after' is given with 'group': groups have no further pages")
        sort = single.get("sort", "suite")
        if sort.removeprefix("-") not in SORTS:
            raise unknown_value("sort", sort, SORTS)
        return cls(
            q=single.get("q", ""),
            in_messages="in" in single,
            evaluator=single.get("evaluator", ""),
            verdict=single.get("verdict", ""),
            trial=tuple(dict.fromkeys(whole_number("trial", value) for value in many.pop("trial"))),
            columns=tuple(dict.fromkeys(many.pop("column"))),
            metadata=tuple(dict.fromkeys(metadata)),
            ranges={name: _number(name, value) for name, value in single.items() if _range(name)},
            flaky="flaky" in single,
            label=single.get("label", ""),
            sort=sort.removeprefix("-"),
            descending=sort.startswith("-"),
            group=single.get("group", "none"),
            after=whole_number("after", single.get("after", "0")),
            **{name: tuple(dict.fromkeys(values)) for name, values in many.items()},
        )


_KEYS = ("q", "in", "evaluator", "verdict", "flaky", "label", "sort", "group", "column", "after", *_MANY)


def _check_known(name: str, also: Sequence[str]) -> None:
    if name not in _KEYS and name not in also and not _range(name) and not name.startswith(METADATA):
        ranges = [f"{name}_{end}" for name in _RANGES for end in ("min", "max")]
        raise unknown_key(name, sorted([*_KEYS, *also, *ranges, f"{METADATA}KEY"]))


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
