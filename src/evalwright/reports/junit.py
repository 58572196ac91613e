"""A run as JUnit XML, for continuous integration: a test case for each cell, with the reasons of failures."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import islice
from typing import ClassVar
from xml.etree import ElementTree

from evalwright.errors import InputError
from evalwright.model.cell import Attempt, OfCase, attempt_key
from evalwright.model.cell_index import CellIndex, DamagedIndex, StaleIndex
from evalwright.model.protocols import RunReader
from evalwright.model.result import CaseVerdict, Status
from evalwright.model.summary import GateOutcome, RunSummary
from evalwright.reports import numbers
from evalwright.reports.context import ALONE, ReportContext
from evalwright.reports.failures import finished_index, newest_verdicts
from evalwright.reports.gates import gate_conditions, gate_decisions, is_cut_short
from evalwright.reports.order import order_of
from evalwright.reports.text import Paint, harmless
from evalwright.scoring.reasons import error_text

__all__ = ["JUnit"]

_UNWRITABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML document can contain (XML 1.0, 2.2), escaped or not."""
_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\t": "&#09;", "\n": "&#10;", "\r": "&#13;"}
)
"""Of attributes, as ElementTree writes them."""
_SPECIAL = re.compile("[^ !#-%'-;=?-~]")
"""All but ASCII letters, digits and signs that need no escaping in an attribute."""
_PIECE = 500
"""How many cells are written at once."""


class _Time(OfCase, gc=False):
    variant_name: str
    trial: int = 0
    attempt: Attempt = 1
    latency_ms: int | None = None


class JUnit:
    """One test suite with a test case for each finished cell: `classname` is the variant, `name` the case.

    File and line are those of the case, if its data file gives them; run and address of the bundle are properties.

    They are in the order of the dataset. Borderline cells are failures; `time` is the system's, in seconds. In a suite
    that has only scores no cell fails, and those below 1 have their reasons as output.
    """

    reads: ClassVar[frozenset[str]] = frozenset({"link", "places"})

    def render(self, reader: RunReader, summary: RunSummary, context: ReportContext = ALONE) -> str:
        return "".join(self.pieces(reader, summary, context))

    def pieces(self, reader: RunReader, summary: RunSummary, context: ReportContext = ALONE) -> Iterator[str]:
        """The same text in pieces: for an indexed run no more than that is held in memory."""
        kinds = _kinds(summary)
        counts, latency_ms, cells = _counted_cells(reader, summary, kinds)
        before, after = ElementTree.Element("before"), ElementTree.Element("after")
        _add_properties(before, {"run": summary.run_id, "link": context.link})
        if summary.gate is not None:
            counts["tests"] += 1
            if kind := _add_gate(after, summary.gate):
                counts[kind] += 1
        if is_cut_short(reader, summary):
            counts["tests"] += 1
            counts["error"] += 1
            _add_missing(after, summary)
        if summary.warnings:
            ElementTree.SubElement(after, "system-err").text = "\n".join(map(_text, summary.warnings))
        name = _text(reader.plan.name if reader.plan is not None else summary.run_id)
        suite = ElementTree.Element("testsuite", name=name, timestamp=f"{summary.started_at:%Y-%m-%dT%H:%M:%S}")
        for kind, plural in (("tests", "tests"), ("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            suite.set(plural, str(counts[kind]))
        suite.set("time", f"{latency_ms / 1000:.3f}")
        head = ElementTree.tostring(suite, encoding="unicode").removesuffix(" />")
        yield f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n  {head}>\n'
        texts = (_test_case(verdict, latency, context, kinds) for verdict, latency in cells)
        yield from map(_written_element, before)
        while piece := "".join(islice(texts, _PIECE)):
            yield piece
        yield from map(_written_element, after)
        yield "  </testsuite>\n</testsuites>\n"


def _written_element(element: ElementTree.Element) -> str:
    """The text of one entry of the suite."""
    ElementTree.indent(element, level=2)
    return "    " + ElementTree.tostring(element, encoding="unicode").rstrip() + "\n"


def _kinds(summary: RunSummary) -> _Kinds:
    return {"error": "error", "skip": "skipped", **dict.fromkeys(summary.failing, "failure")}


def _test_case(verdict: CaseVerdict, latency_ms: int | None, context: ReportContext, kinds: _Kinds) -> str:
    seconds = f"{(latency_ms or 0) / 1000:.3f}"
    where = context.places.get(verdict.case_key)
    if verdict.status == "pass":  # the most frequent kind: five times as fast as building elements
        variant, name = _attribute(verdict.variant_name), _attribute(_name(verdict))
        place = "" if where is None else f' file="{_attribute(where.file)}" line="{where.line}"'
        return f'    <testcase classname="{variant}" name="{name}" time="{seconds}"{place} />\n'
    case = ElementTree.Element(
        "testcase", classname=_text(verdict.variant_name), name=_text(_name(verdict)), time=seconds
    )
    if where is not None:
        case.set("file", _text(where.file))
        case.set("line", str(where.line))
    if (kind := kinds.get(verdict.status)) is not None:
        _add_outcome(case, kind, verdict)
    elif verdict.reasons:
        ElementTree.SubElement(case, "system-out").text = "\n".join(map(_text, verdict.reasons))
    return _written_element(case)


_Kinds = Mapping[Status, str]
"""The element that says what became of a cell; a status without one needs none."""
_Cell = tuple[CaseVerdict, int | None]
"""The newest verdict of a cell, with the time that its system took; only the status if it passed."""


def _counted_cells(
    reader: RunReader, summary: RunSummary, kinds: _Kinds
) -> tuple[Counter[str], float, Iterator[_Cell]]:
    """The number of cells of each kind, the milliseconds that they took, and the cells."""
    counts: Counter[str] = Counter()
    if (index := finished_index(reader)) is not None:
        for count in index.counts():
            counts[kinds.get(count.status, "") if count.status else ""] += count.n
        counts["tests"] = len(index)
        return counts, index.sums().latency_ms.total, _looked_up(index, reader, summary, kinds)
    return _scanned_cells(reader, summary, kinds)


def _scanned_cells(
    reader: RunReader, summary: RunSummary, kinds: _Kinds
) -> tuple[Counter[str], float, Iterator[_Cell]]:
    counts: Counter[str] = Counter()
    times = {attempt_key(trace): trace.latency_ms for trace in reader.traces(_Time)}
    cells: list[_Cell] = []
    for verdict in sorted(newest_verdicts(reader), key=order_of(summary.variants)):
        cells.append((verdict, times.get(attempt_key(verdict))))
        counts[kinds.get(verdict.status, "")] += 1
    counts["tests"] = len(cells)
    return counts, sum(latency or 0 for _, latency in cells), iter(cells)


def _looked_up(index: CellIndex, reader: RunReader, summary: RunSummary, kinds: _Kinds) -> Iterator[_Cell]:
    count = 0
    with closing(index):
        try:
            for entry in index.cells():
                if entry.status == "pass":
                    of = CaseVerdict(entry.case_id, entry.variant, "pass", "", entry.trial, occurrence=entry.occurrence)
                    yield of, entry.latency_ms
                elif (verdict := index.verdict(entry)) is not None:
                    yield verdict, entry.latency_ms
                count += 1
            return
        except DamagedIndex:
            pass  # the scan gives the same cells in the same order
        except StaleIndex as error:
            raise InputError(f"{reader.location} was changed while it was read") from error
    yield from islice(_scanned_cells(reader, summary, kinds)[2], count, None)


def _add_gate(suite: ElementTree.Element, gate: GateOutcome) -> str:
    """The run as a whole, as a test case: a failure, or skipped if it is undecided."""
    case = ElementTree.SubElement(suite, "testcase", classname="run", name="gate", time="0.000")
    kind = "skipped" if gate.undecided else "" if gate.passed else "failure"
    if kind:
        message = _text(f"{numbers.outcome(gate)[0]}: {gate.reason}" if gate.reason else numbers.outcome(gate)[0])
        lines = [*gate_conditions(gate), *gate_decisions(gate, Paint())]
        outcome = ElementTree.SubElement(case, kind, message=message)
        if kind == "failure":
            outcome.set("type", "fail")
        outcome.text = _text("\n".join(lines))
    return kind


def _add_missing(suite: ElementTree.Element, summary: RunSummary) -> None:
    """Cells that were not run, as a test case: without it, what was run might all have passed."""
    case = ElementTree.SubElement(suite, "testcase", classname="run", name="cells", time="0.000")
    ElementTree.SubElement(case, "error", message=numbers.missing_cells(summary), type="error")


def _add_properties(suite: ElementTree.Element, values: dict[str, str]) -> None:
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in values.items():
        if value:
            ElementTree.SubElement(properties, "property", name=name, value=_text(value))


def _name(verdict: CaseVerdict) -> str:
    return verdict.case_key + (f" [trial {verdict.trial + 1}]" if verdict.trial else "")


def _add_outcome(case: ElementTree.Element, kind: str, verdict: CaseVerdict) -> None:
    reasons = [_text(reason) for reason in verdict.reasons]
    if verdict.error is not None:
        reasons.insert(0, _text(error_text(verdict.error)))
    score = "" if verdict.score is None else f", score {verdict.score:.3f}"
    outcome = ElementTree.SubElement(case, kind, message=reasons[0] if reasons else f"{verdict.status}{score}")
    if kind != "skipped":
        outcome.set("type", verdict.status)
    outcome.text = "\n".join(reasons)


def _text(text: str) -> str:
    """As on a terminal: services show names and reasons, which must not reorder what stands beside them."""
    return _UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", harmless(text))


def _attribute(text: str) -> str:
    return _text(text).translate(_ESCAPES) if _SPECIAL.search(text) else text
