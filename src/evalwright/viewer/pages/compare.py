"""Two runs, or two variants, side by side: the decision, then the cases that changed, the worst first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from evalwright.reports import numbers
from evalwright.reports.decision import forest_of
from evalwright.reports.decision_words import change_of, claim, errors_line
from evalwright.reports.pictures.decision import decision_image
from evalwright.viewer.filters import Filter
from evalwright.viewer.pages import Page, PageNotFound
from evalwright.viewer.pages.known_values import check_values
from evalwright.viewer.pages.runs import runs_before
from evalwright.viewer.pairing import CHANGES, PairedRuns, Pairings
from evalwright.viewer.query import page_start, single_values, unknown_key, unknown_value, whole_number
from evalwright.viewer.schema import SCORED_STATUSES, STATUSES
from evalwright.viewer.shelf import OpenRun, Shelf

__all__ = [
    "ListedPairs",
    "Sides",
    "chosen_sides",
    "compare_context",
    "compare_page",
    "comparing_page",
    "query_pairs",
    "same_variants",
]

_PAGE = 100
_OF_SIDES = ("a", "b", "va", "vb")
_NARROWING = ("q", "status", "evaluator", "verdict", "tag", "error", "reason", "case", "flaky")
_RANGED = ("latency", "cost", "tokens", "score")


class Sides(NamedTuple):
    """The two sides of a comparison."""

    a: OpenRun
    b: OpenRun
    variant_a: str
    variant_b: str

    def query(self, **more: str | Sequence[str]) -> dict[str, str | Sequence[str]]:
        """For addresses; names variants only if they are not the first of their run."""
        query: dict[str, str | Sequence[str]] = {"a": self.a.id, "b": self.b.id}
        if self.variant_a != self.variant_b or self.variant_a != _first(self.a):
            query |= {"va": self.variant_a, "vb": self.variant_b}
        return {**query, **more}


def _first(run: OpenRun) -> str:
    return run.plan.variants[0].name if run.plan.variants else ""


class ListedPairs(NamedTuple):
    """Which changed cases the page lists, and from which on."""

    change: tuple[str, ...] = ()
    unchanged: bool = False
    narrowed: Filter = Filter()
    """Cases with a matching cell on either side."""
    after: int = 0

    @property
    def changes(self) -> list[str]:
        return list(self.change) or [name for name in CHANGES if name != "unchanged" or self.unchanged]

    def query(self) -> dict[str, list[str]]:
        """For addresses, without the page."""
        query: dict[str, list[str]] = {"change": [*self.change]} if self.change else {}
        if self.unchanged:
            query["unchanged"] = ["1"]
        for name, value in self.narrowed.pairs(place=False):
            query.setdefault(name, []).append(value)
        return query


def query_pairs(pairs: Iterable[tuple[str, str]], also: Sequence[str] = ()) -> tuple[dict[str, str], ListedPairs]:
    """The keys that have one value, and what is listed. `also` are keys of the page. Raises BadQuery."""
    single, narrowing, change = [], [], []
    known = (*_OF_SIDES, "unchanged", "after", *also)
    for name, value in pairs:
        if name in _NARROWING or name.startswith("meta.") or name.rpartition("_")[0] in _RANGED:
            narrowing.append((name, value))
        elif name != "change":
            single.append((name, value))
        elif value:
            change.append(value)
        if name == "change" and value and value not in CHANGES:
            raise unknown_value("change", value, CHANGES)
    for name, _ in single:
        if name not in known:
            raise unknown_key(name, (*known, "change", *_NARROWING))
    values = single_values(single, known)
    if values.get("unchanged", "1") != "1":
        raise unknown_value("unchanged", values["unchanged"], ("1",))
    after = whole_number("after", values.get("after", "0"))
    return values, ListedPairs(tuple(dict.fromkeys(change)), "unchanged" in values, Filter.of(narrowing), after)


def chosen_sides(shelf: Shelf, given: dict[str, str]) -> Sides | None:
    """The runs and variants of an address; None if one is still to be chosen. Raises PageNotFound."""
    for side in ("a", "b"):
        if given.get(side) and shelf.source(given[side]) is None:
            raise PageNotFound(f"There is no run {given[side][:200]!r}.", "/")
    if not given.get("a") or not given.get("b"):
        return None
    a, b = shelf.open(given["a"]), shelf.open(given["b"])
    names_a, names_b = ([variant.name for variant in run.plan.variants] for run in (a, b))
    shared = next((same_variant.variant_a for same_variant in same_variants(a, b)), None)
    if a.id == b.id and len(names_a) > 1:
        chosen = given.get("va") or names_a[0], given.get("vb") or names_a[1]
    else:
        chosen = given.get("va") or shared or _first(a), given.get("vb") or given.get("va") or shared or _first(b)
    for name, names, run in zip(chosen, (names_a, names_b), (a, b), strict=True):
        if name not in names:
            raise PageNotFound(f"The run {run.id} has no variant {name[:200]!r} (there are: {', '.join(names)}).", "/")
    return Sides(a, b, *chosen)


def same_variants(a: OpenRun, b: OpenRun) -> list[Sides]:
    """The comparison of each variant that both runs have."""
    names = {variant.name for variant in b.plan.variants}
    return [Sides(a, b, variant.name, variant.name) for variant in a.plan.variants if variant.name in names]


class VariantChange(NamedTuple):
    """How the pass rate of a variant that both runs have changed, over the cases that both judged."""

    sides: Sides
    points: str
    """Empty if no case can be paired."""


def _variant_changes(a: OpenRun, b: OpenRun, differences: Mapping[str, float | None]) -> list[VariantChange]:
    sides_and_difference = [(shared, differences.get(shared.variant_a)) for shared in same_variants(a, b)]
    return [VariantChange(shared, "" if gap is None else numbers.points(gap)) for shared, gap in sides_and_difference]


def _choice(shelf: Shelf, choice: dict[str, str]) -> dict[str, Any]:
    """The runs to choose from; without an A it is the run of the same eval before B."""
    runs = list(shelf.sources())[:500]
    b = choice.get("b") or (runs[0] if runs else "")
    before = runs_before(shelf.sources()).get(b)
    return {"runs": runs, "chosen": {"a": choice.get("a") or (before.id if before else b), "b": b}}


def compare_page(shelf: Shelf, pairings: Pairings, pairs: Iterable[tuple[str, str]]) -> Page:
    """Raises BadQuery, PageNotFound."""
    choice, listed = query_pairs(pairs)
    sides = chosen_sides(shelf, choice)
    if sides is None:
        return Page("choose_runs.html", "Compare · evalwright", _choice(shelf, choice))
    check_values(sides[:2], listed.narrowed)
    paired = pairings.of(*sides)
    if paired is None:
        return comparing_page(sides)
    title = f"Compare · {sides.a.id} · {sides.b.id} · evalwright"
    return Page("compare.html", title, compare_context(sides, paired, listed))


def comparing_page(found: Sides) -> Page:
    """Shown at once, as two large runs take seconds; the page continues by itself."""
    return Page("comparing.html", "Comparing … · evalwright", {"sides": found})


def compare_context(found: Sides, paired: PairedRuns, listed: ListedPairs) -> dict[str, Any]:
    """Raises BadQuery for a page behind the last one."""
    counts = paired.counts()
    number = paired.count(listed.changes, listed.narrowed)
    after = page_start(listed.after, number)
    rows = paired.pairs(listed.changes, listed.narrowed, after, _PAGE)
    decision = paired.decision
    variants = {side: [variant.name for variant in run.plan.variants] for side, run in (("a", found.a), ("b", found.b))}
    return {
        "sides": found,
        "variant_changes": [] if found.a.id == found.b.id else _variant_changes(found.a, found.b, paired.differences),
        "variants": variants if any(len(names) > 1 for names in variants.values()) else {},
        "counts": [(name, counts.get(name, 0)) for name in CHANGES],
        "decision": decision,
        "claim": "" if decision is None else claim(decision),
        "picture": "" if decision is None else decision_image([decision]),
        "intervals": [] if decision is None else forest_of(decision),
        "change_text": "" if decision is None or not decision.n else change_of(decision),
        "errors": "" if decision is None else errors_line(decision),
        "problem": paired.problem,
        "warnings": paired.warnings,
        "rows": rows,
        "count": number,
        "total": sum(counts.values()),
        "listed": listed,
        "choices": {name: _choices(found, name) for name in ("evaluator", "tag", "error")},
        "statuses": SCORED_STATUSES if found.b.scored else STATUSES,
        "slices": [] if decision is None else [part for part in decision.slices if part.key == "tag"],
        "reasons": [] if decision is None else decision.clusters,
        "points": numbers.points,
        "next": after + _PAGE if after + _PAGE < number else 0,
        "previous": max(0, after - _PAGE) if after else None,
    }


def _choices(sides: Sides, name: str) -> list[str]:
    """The values that cells of either run have."""
    tables = [run.table for run in (sides.a, sides.b)]
    return list(dict.fromkeys(value for table in tables if table is not None for value in table.values(name)))
