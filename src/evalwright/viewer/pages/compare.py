"""Two runs, or two variants, side by side: the decision, then the cases that changed, the worst first."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from evalwright.model.result import JUDGED
from evalwright.model.trace import ToolCall, Trace
from evalwright.reports import numbers
from evalwright.reports.decision import forest_of
from evalwright.reports.decision_words import change_of, claim, errors_line
from evalwright.reports.pictures.decision import decision_image
from evalwright.viewer.filters import Filter
from evalwright.viewer.links import Links
from evalwright.viewer.pages import NotThere, Page
from evalwright.viewer.pages.blocks import Blocks, Shown
from evalwright.viewer.pages.evaluator_results import EvaluatorResult, evaluator_results
from evalwright.viewer.pages.known_values import check_values
from evalwright.viewer.pages.runs import runs_before
from evalwright.viewer.pairing import CHANGES, ComparedPair, PairedRuns, Pairings, PairSide
from evalwright.viewer.query import BadQuery, page_start, single_values, unknown_key, unknown_value, whole_number
from evalwright.viewer.records import StoredCell
from evalwright.viewer.schema import STATUSES
from evalwright.viewer.shelf import OpenRun, Shelf
from evalwright.viewer.table import CellRow
from evalwright.viewer.texts import pretty
from evalwright.viewer.worddiff import changes, sides

__all__ = [
    "ListedPairs",
    "Sides",
    "chosen_sides",
    "compare_context",
    "compare_page",
    "compared_cell_context",
    "compared_cell_page",
    "same_variants",
]

_PAGE = 100
_OF_SIDES = ("a", "b", "va", "vb")
_NARROWING = ("q", "status", "evaluator", "verdict", "tag", "error", "reason", "case", "flaky")
_RANGED = ("latency", "cost", "tokens", "score")
_LONGEST = 2 << 20
"""Characters of an answer that are compared."""


class Sides(NamedTuple):
    """The two sides of a comparison."""

    a: OpenRun
    b: OpenRun
    variant_a: str
    variant_b: str

    def query(self, **more: str | Sequence[str]) -> dict[str, str | Sequence[str]]:
        """For addresses; names variants only if they are not the first of their run."""
        found: dict[str, str | Sequence[str]] = {"a": self.a.id, "b": self.b.id}
        if self.variant_a != self.variant_b or self.variant_a != _first(self.a):
            found |= {"va": self.variant_a, "vb": self.variant_b}
        return {**found, **more}


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
        found: dict[str, list[str]] = {"change": [*self.change]} if self.change else {}
        if self.unchanged:
            found["unchanged"] = ["1"]
        for name, value in self.narrowed.pairs(place=False):
            found.setdefault(name, []).append(value)
        return found


_EVERY = ListedPairs()


def _asked(pairs: Iterable[tuple[str, str]], also: Sequence[str] = ()) -> tuple[dict[str, str], ListedPairs]:
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
    given = single_values(single, known)
    if given.get("unchanged", "1") != "1":
        raise unknown_value("unchanged", given["unchanged"], ("1",))
    after = whole_number("after", given.get("after", "0"))
    return given, ListedPairs(tuple(dict.fromkeys(change)), "unchanged" in given, Filter.of(narrowing), after)


def chosen_sides(shelf: Shelf, given: dict[str, str]) -> Sides | None:
    """The runs and variants of an address; None if one is still to be chosen. Raises NotThere."""
    for side in ("a", "b"):
        if given.get(side) and shelf.source(given[side]) is None:
            raise NotThere(f"There is no run {given[side][:200]!r}.", "/")
    if not given.get("a") or not given.get("b"):
        return None
    a, b = shelf.open(given["a"]), shelf.open(given["b"])
    names_a, names_b = ([variant.name for variant in run.plan.variants] for run in (a, b))
    shared = next((one.variant_a for one in same_variants(a, b)), None)
    if a.id == b.id and len(names_a) > 1:
        chosen = given.get("va") or names_a[0], given.get("vb") or names_a[1]
    else:
        chosen = given.get("va") or shared or _first(a), given.get("vb") or given.get("va") or shared or _first(b)
    for name, names, run in zip(chosen, (names_a, names_b), (a, b), strict=True):
        if name not in names:
            raise NotThere(f"The run {run.id} has no variant {name[:200]!r} (there are: {', '.join(names)}).", "/")
    return Sides(a, b, *chosen)


def same_variants(a: OpenRun, b: OpenRun) -> list[Sides]:
    """The comparison of each variant that both runs have."""
    names = {variant.name for variant in b.plan.variants}
    return [Sides(a, b, one.name, one.name) for one in a.plan.variants if one.name in names]


class VariantChange(NamedTuple):
    """How the pass rate of a variant that both runs have changed, over the cases that both judged."""

    sides: Sides
    points: str
    """Empty if no case can be paired."""


def _variant_changes(a: OpenRun, b: OpenRun, differences: Mapping[str, float | None]) -> list[VariantChange]:
    found = [(shared, differences.get(shared.variant_a)) for shared in same_variants(a, b)]
    return [VariantChange(shared, "" if gap is None else numbers.points(gap)) for shared, gap in found]


def _choice(shelf: Shelf, given: dict[str, str]) -> dict[str, Any]:
    """The runs to choose from; without an A it is the run of the same eval before B."""
    runs = list(shelf.sources())[:500]
    b = given.get("b") or (runs[0] if runs else "")
    before = runs_before(shelf.sources()).get(b)
    return {"runs": runs, "chosen": {"a": given.get("a") or (before.id if before else b), "b": b}}


def compare_page(shelf: Shelf, pairings: Pairings, pairs: Iterable[tuple[str, str]], links: Links) -> Page:
    """Raises BadQuery, NotThere."""
    given, listed = _asked(pairs)
    found = chosen_sides(shelf, given)
    if found is None:
        return Page("choose_runs.html", "Compare · evalwright", _choice(shelf, given))
    check_values(found[:2], listed.narrowed)
    paired = pairings.of(*found)
    if paired is None:
        return _comparing(found)
    title = f"Compare · {found.a.id} · {found.b.id} · evalwright"
    return Page("compare.html", title, compare_context(found, paired, listed))


def _comparing(found: Sides) -> Page:
    """Shown at once, as two large runs take seconds; the page continues by itself."""
    return Page("comparing.html", "Comparing … · evalwright", {"sides": found})


def compare_context(found: Sides, paired: PairedRuns, listed: ListedPairs) -> dict[str, Any]:
    """Raises BadQuery for a page behind the last one."""
    counts = paired.counts()
    number = paired.count(listed.changes, listed.narrowed)
    after = page_start(listed.after, number)
    rows = paired.pairs(listed.changes, listed.narrowed, after, _PAGE)
    decision = paired.decision
    variants = {side: [one.name for one in run.plan.variants] for side, run in (("a", found.a), ("b", found.b))}
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
        "statuses": STATUSES,
        "slices": [] if decision is None else [one for one in decision.slices if one.key == "tag"],
        "reasons": [] if decision is None else decision.clusters,
        "points": numbers.points,
        "next": after + _PAGE if after + _PAGE < number else 0,
        "previous": max(0, after - _PAGE) if after else None,
    }


def _choices(found: Sides, name: str) -> list[str]:
    """The values that cells of either run have."""
    tables = [run.table for run in (found.a, found.b)]
    return list(dict.fromkeys(value for table in tables if table is not None for value in table.values(name)))


class ComparedSide(NamedTuple):
    """One side of one case."""

    name: str
    run: OpenRun
    variant: str
    pair: PairSide | None
    shown: CellRow | None
    """The cell whose answer and verdicts are shown."""
    records: StoredCell | None
    trials: list[CellRow]
    """All trials if there are several."""
    results: list[EvaluatorResult]
    answer: Shown | None
    error: str
    tools: list[str]


def compared_cell_page(
    shelf: Shelf, pairings: Pairings, key: str, pairs: Iterable[tuple[str, str]], links: Links
) -> Page:
    """Raises BadQuery, NotThere."""
    given, listed = _asked(pairs, ("view",))
    if given.get("view", "side") != "side":
        raise unknown_value("view", given["view"], ("side",))
    found = chosen_sides(shelf, given)
    if found is None:
        raise BadQuery("a comparison needs two runs: a=RUN&b=RUN")
    check_values(found[:2], listed.narrowed)
    paired = pairings.of(*found)
    if paired is None:
        return _comparing(found)
    pair = paired.of_key(key)
    if pair is None:
        raise NotThere(f"Neither run has a cell {key[:40]!r}.", "/")
    context = compared_cell_context(found, paired, pair, links, listed)
    context["view"] = given.get("view", "")
    return Page("compared_cell.html", f"{pair.case_key} · compare · evalwright", context)


def compared_cell_context(
    found: Sides, paired: PairedRuns, pair: ComparedPair, links: Links, listed: ListedPairs = _EVERY
) -> dict[str, Any]:
    """`listed` are the cases among which the next changed one is."""
    both = [
        _side("A", found.a, found.variant_a, pair.a, pair.change == "worse", links),
        _side("B", found.b, found.variant_b, pair.b, pair.change == "better", links),
    ]
    stored = [side.records for side in both]
    texts = [_answer(records)[:_LONGEST] for records in stored]
    difference = changes(*texts) if all(stored) else []
    inputs = [None if one is None else one.trace.get("input") for one in stored]
    statuses = [{result.name: result.status for result in side.results} for side in both]
    changed = [
        (name, statuses[0].get(name, "none"), statuses[1].get(name, "none"))
        for name in dict.fromkeys([*statuses[0], *statuses[1]])
        if statuses[0].get(name) != statuses[1].get(name)
    ]
    return {
        "sides": found,
        "pair": pair,
        "both": both,
        "difference": difference,
        "columns": sides(difference),
        "same_answer": bool(all(stored)) and texts[0] == texts[1],
        "input_differs": all(stored) and inputs[0] != inputs[1],
        "changed": changed,
        "tools": changes(*("\n".join([*side.tools, ""]) if side.tools else "" for side in both)),
        "next": paired.next_changed(pair, listed.changes, listed.narrowed),
        "listed": listed,
        "view": "",
    }


def _trials(run: OpenRun, side: PairSide | None) -> list[CellRow]:
    """The cells of a side, in the order of their trials."""
    first = None if side is None or run.table is None else run.table.by_key(side.key)
    if first is None or run.table is None:
        return []
    return run.table.of_case(first.case_key, first.variant)


def _telling(trials: list[CellRow], passed: bool) -> CellRow | None:
    """The first judged trial that passed, or with `passed` false did not; the first of all if there is none."""
    judged = (one for one in trials if one.status in JUDGED and (one.status == "pass") is passed)
    return next(judged, trials[0] if trials else None)


def _answer(records: StoredCell | None) -> str:
    output = {} if records is None else records.trace.get("output") or {}
    if output.get("final_answer") is not None:
        return str(output["final_answer"])
    return "" if output.get("structured") is None else pretty(output["structured"])


def _side(name: str, run: OpenRun, variant: str, pair: PairSide | None, passed: bool, links: Links) -> ComparedSide:
    """With a trial that passed or one that did not, whichever shows the change."""
    trials = _trials(run, pair)
    shown = _telling(trials, passed)
    if shown is None:
        return ComparedSide(name, run, variant, pair, None, None, [], [], None, "", [])
    records, key = run.records(shown), shown.key
    blocks = Blocks(lambda part: links.whole(run.id, key, part))  # type: ignore[attr-defined]
    error = records.trace.get("error") or {}
    calls = _calls(msgspec.convert(records.trace, Trace)) if records.trace else []
    return ComparedSide(
        name,
        run,
        variant,
        pair,
        shown,
        records,
        trials if len(trials) > 1 else [],
        evaluator_results(records.results, run.plan, blocks),
        blocks.of(_answer(records), "trace/output/final_answer"),
        f"{error.get('type')}: {error.get('message')}" if error else "",
        [f"{call.name}({_arguments(call.arguments)})" for call in calls],
    )


def _calls(trace: Trace) -> list[ToolCall]:
    return [call for message in trace.messages if (call := message.tool_call) is not None] or trace.tool_calls


def _arguments(arguments: dict[str, Any]) -> str:
    return ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items())
