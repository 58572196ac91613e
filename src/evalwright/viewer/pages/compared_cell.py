"""One case on both sides of a comparison: which words of the answer changed, tool calls, and what evaluators said."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec

from evalwright.model.result import JUDGED
from evalwright.model.trace import ToolCall, Trace
from evalwright.viewer.links import Links
from evalwright.viewer.pages import Page, PageNotFound
from evalwright.viewer.pages.blocks import ROOM, Blocks, ShownText
from evalwright.viewer.pages.cell import input_parts
from evalwright.viewer.pages.compare import ListedPairs, Sides, chosen_sides, comparing_page, query_pairs
from evalwright.viewer.pages.evaluator_results import EvaluatorResult, evaluator_results
from evalwright.viewer.pages.known_values import check_values
from evalwright.viewer.pairing import ComparedPair, PairedRuns, Pairings, PairSide
from evalwright.viewer.query import BadQuery, unknown_value
from evalwright.viewer.records import StoredCell
from evalwright.viewer.shelf import OpenRun, Shelf
from evalwright.viewer.table import CellRow
from evalwright.viewer.worddiff import Change, abridged, changed_calls, changes, sides

__all__ = ["compared_cell_page", "page_of_pair"]

_LONGEST = 2 << 20
"""Characters of an answer that are compared."""
_HALVED = 4
"""Times that the room of a page is halved."""


class _Cell(NamedTuple):
    """One side of the case: with several trials, the one that shows the change."""

    name: str
    run: OpenRun
    variant: str
    pair: PairSide | None
    row: CellRow | None
    records: StoredCell | None
    trials: list[CellRow]
    """All trials if there are several."""

    @property
    def answer(self) -> str:
        return "" if self.records is None else self.records.answer

    @property
    def calls(self) -> list[str]:
        """The tool calls, each a line."""
        if self.records is None or not self.records.trace:
            return []
        trace = msgspec.convert(self.records.trace, Trace)
        return [f"{call.name}({_arguments(call.arguments)})\n" for call in _calls(trace)]


class ComparedSide(NamedTuple):
    """One side as it is shown."""

    name: str
    run: OpenRun
    variant: str
    pair: PairSide | None
    shown: CellRow | None
    """The cell whose answer and verdicts are shown."""
    trials: list[CellRow]
    results: list[EvaluatorResult]
    input: list[tuple[str, ShownText]]
    answer: ShownText | None
    error: str


def compared_cell_page(
    shelf: Shelf, pairings: Pairings, key: str, pairs: Iterable[tuple[str, str]], links: Links
) -> Page:
    """Raises BadQuery, PageNotFound."""
    choice, listed = query_pairs(pairs, ("view",))
    view = choice.get("view", "")
    if view not in ("", "side"):
        raise unknown_value("view", view, ("side",))
    both_sides = chosen_sides(shelf, choice)
    if both_sides is None:
        raise BadQuery("a comparison needs two runs: a=RUN&b=RUN")
    check_values(both_sides[:2], listed.narrowed)
    paired = pairings.of(*both_sides)
    if paired is None:
        return comparing_page(both_sides)
    pair = paired.of_key(key)
    if pair is None:
        raise PageNotFound(f"Neither run has a cell {key[:40]!r}.", "/")
    return page_of_pair(both_sides, paired, pair, links, listed, view)


_EVERY = ListedPairs()


def page_of_pair(
    found: Sides, paired: PairedRuns, pair: ComparedPair, links: Links, listed: ListedPairs = _EVERY, view: str = ""
) -> Page:
    """The page of a case; the next changed one is among those that are listed."""
    cells = [
        _cell("A", found.a, found.variant_a, pair.a, pair.change == "worse"),
        _cell("B", found.b, found.variant_b, pair.b, pair.change == "better"),
    ]
    stored = [cell.records for cell in cells]
    texts = [cell.answer[:_LONGEST] for cell in cells]
    inputs = [None if cell is None else cell.trace.get("input") for cell in stored]
    context = {
        "sides": found,
        "pair": pair,
        "same_answer": all(stored) and texts[0] == texts[1],
        "input_differs": all(stored) and inputs[0] != inputs[1],
        "next": paired.next_changed(pair, listed.changes, listed.narrowed),
        "listed": listed,
        "view": view,
    }
    difference = changes(*texts) if all(stored) else []
    return _page(context, cells, difference, changed_calls(*(cell.calls for cell in cells)), links, ROOM)


def _page(
    common: dict[str, Any],
    cells: Sequence[_Cell],
    difference: Sequence[Change],
    tools: Sequence[Change],
    links: Links,
    room: int,
) -> Page:
    """`room`: characters of all texts together, roughly."""
    both = [_side(cell, links, room // 4) for cell in cells]
    statuses = [{result.name: result.status for result in side.results} for side in both]
    changed = [
        (name, statuses[0].get(name, "none"), statuses[1].get(name, "none"))
        for name in dict.fromkeys([*statuses[0], *statuses[1]])
        if statuses[0].get(name) != statuses[1].get(name)
    ]
    shown = abridged(difference, room // 3)
    context = common | {
        "both": both,
        "changed": changed,
        "difference": shown,
        "columns": sides(shown),
        "tools": abridged(tools, room // 6),
    }
    smaller = partial(_page, common, cells, difference, tools, links, room // 2) if room > ROOM >> _HALVED else None
    return Page("compared_cell.html", f"{common['pair'].case_key} · compare · evalwright", context, smaller)


def _cell(name: str, run: OpenRun, variant: str, pair: PairSide | None, passed: bool) -> _Cell:
    """With a trial that passed or one that did not, whichever shows the change."""
    trials = _trials(run, pair)
    row = _representative_row(trials, passed)
    records = None if row is None else run.records(row)
    return _Cell(name, run, variant, pair, row, records, trials if len(trials) > 1 else [])


def _trials(run: OpenRun, side: PairSide | None) -> list[CellRow]:
    """The cells of a side, in the order of their trials."""
    first = None if side is None or run.table is None else run.table.by_key(side.key)
    if first is None or run.table is None:
        return []
    return run.table.of_case(first.case_key, first.variant)


def _representative_row(trials: list[CellRow], passed: bool) -> CellRow | None:
    """The first judged trial that passed, or with `passed` false did not; the first of all if there is none."""
    judged = (trial for trial in trials if trial.status in JUDGED and (trial.status == "pass") is passed)
    return next(judged, trials[0] if trials else None)


def _side(cell: _Cell, links: Links, room: int) -> ComparedSide:
    records, row = cell.records, cell.row
    if records is None or row is None:
        return ComparedSide(cell.name, cell.run, cell.variant, cell.pair, None, [], [], [], None, "")
    blocks = Blocks(lambda part: links.whole(cell.run.id, row.key, part), room)  # type: ignore[attr-defined]
    output, error = records.trace.get("output") or {}, records.trace.get("error") or {}
    part = "structured" if output.get("final_answer") is None else "final_answer"
    return ComparedSide(
        cell.name,
        cell.run,
        cell.variant,
        cell.pair,
        row,
        cell.trials,
        evaluator_results(records.results, cell.run.plan, blocks),
        input_parts(records.trace.get("input"), blocks),
        blocks.of(records.answer, f"trace/output/{part}"),
        f"{error.get('type')}: {error.get('message')}" if error else "",
    )


def _calls(trace: Trace) -> list[ToolCall]:
    return [call for message in trace.messages if (call := message.tool_call) is not None] or trace.tool_calls


def _arguments(arguments: dict[str, Any]) -> str:
    return ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items())
