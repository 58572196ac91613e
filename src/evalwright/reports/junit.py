"""A run as JUnit XML, for continuous integration: a test case for each cell, with the reasons of failures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from typing import ClassVar
from xml.etree import ElementTree

from evalwright.model.cell import OfCase
from evalwright.model.protocols import RunReader
from evalwright.model.result import CaseVerdict
from evalwright.model.summary import GateOutcome, RunSummary
from evalwright.reports import numbers
from evalwright.reports.context import CaseLine, ReportContext
from evalwright.reports.failures import error_text, finished_index, newest_verdicts
from evalwright.reports.gates import gate_decisions
from evalwright.reports.order import order_of
from evalwright.reports.text import Paint

__all__ = ["JUnit"]

_ALONE = ReportContext()
_UNWRITABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What no XML document can hold (XML 1.0, 2.2), escaped or not."""
_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\t": "&#09;", "\n": "&#10;", "\r": "&#13;"}
)
"""Of attributes, as ElementTree writes them."""
_KINDS = {"fail": "failure", "borderline": "failure", "error": "error", "skip": "skipped"}


class _Time(OfCase, gc=False):
    variant_name: str
    trial: int = 0
    attempt: int = 1
    latency_ms: int | None = None


class JUnit:
    """One test suite with a test case for each finished cell: `classname` is the variant, `name` the case.

    File and line are those of the case, where its data file tells; run and address of the bundle are properties.

    They are in the order of the dataset. Borderline cells are failures; `time` is the system's, in seconds.
    """

    reads: ClassVar[frozenset[str]] = frozenset({"link", "places"})

    def render(self, reader: RunReader, summary: RunSummary, context: ReportContext = _ALONE) -> str:
        name = _text(reader.plan.name if reader.plan is not None else summary.run_id)
        suite = ElementTree.Element("testsuite", name=name, timestamp=f"{summary.started_at:%Y-%m-%dT%H:%M:%S}")
        texts: list[str] = []
        counts = dict.fromkeys(("tests", "failure", "error", "skipped"), 0)
        total = 0.0
        _add_properties(suite, {"run": summary.run_id, "link": context.link})
        first = len(suite)
        for verdict, latency_ms in _cells(reader, summary):
            seconds = (latency_ms or 0) / 1000
            if verdict.status == "pass":
                texts.append(_passed(verdict, seconds, context.places.get(verdict.case_key)))
                counts["tests"] += 1
                total += seconds
                continue
            case = ElementTree.Element("testcase", classname=_text(verdict.variant_name), name=_name(verdict))
            case.set("time", f"{seconds:.3f}")
            if (where := context.places.get(verdict.case_key)) is not None:
                case.set("file", _text(where.file))
                case.set("line", str(where.line))
            kind = _KINDS.get(verdict.status)
            if kind is not None:
                _add_outcome(case, kind, verdict)
                counts[kind] += 1
            counts["tests"] += 1
            total += seconds
            texts.append(_written(case))
        if summary.gate is not None:
            counts["tests"] += 1
            if kind := _add_gate(suite, summary.gate):
                counts[kind] += 1
        if summary.warnings:
            ElementTree.SubElement(suite, "system-err").text = "\n".join(map(_text, summary.warnings))
        for kind, plural in (("tests", "tests"), ("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            suite.set(plural, str(counts[kind]))
        suite.set("time", f"{total:.3f}")
        texts = [*map(_written, suite[:first]), *texts, *map(_written, suite[first:])]
        head = ElementTree.tostring(ElementTree.Element("testsuite", suite.attrib), encoding="unicode")
        if texts:
            head = "\n".join([f"{head.removesuffix(' />')}>", *texts, "  </testsuite>"])
        return f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n  {head}\n</testsuites>\n'


def _written(element: ElementTree.Element) -> str:
    """The text of one entry of the suite: of a million, the texts take a tenth of the memory of the elements."""
    ElementTree.indent(element, level=2)
    return "    " + ElementTree.tostring(element, encoding="unicode").rstrip()


def _passed(verdict: CaseVerdict, seconds: float, where: CaseLine | None) -> str:
    """As `_written`, of what most cells are: five times as quick."""
    variant, name = (_text(text).translate(_ESCAPES) for text in (verdict.variant_name, _name(verdict)))
    place = "" if where is None else f' file="{_text(where.file).translate(_ESCAPES)}" line="{where.line}"'
    return f'    <testcase classname="{variant}" name="{name}" time="{seconds:.3f}"{place} />'


def _cells(reader: RunReader, summary: RunSummary) -> Iterator[tuple[CaseVerdict, int | None]]:
    """The newest verdict of each cell, with the time that its system took; of one that passed only its status."""
    if (index := finished_index(reader)) is not None:
        with closing(index):
            for entry in index.cells():
                if entry.status == "pass":
                    of = CaseVerdict(entry.case_id, entry.variant, "pass", "", entry.trial, occurrence=entry.occurrence)
                    yield of, entry.latency_ms
                elif (verdict := index.verdict(entry)) is not None:
                    yield verdict, entry.latency_ms
            return
    times = {(t.case_key, t.variant_name, t.trial, t.attempt): t.latency_ms for t in reader.traces(_Time)}
    for verdict in sorted(newest_verdicts(reader), key=order_of(variant.name for variant in summary.variants)):
        yield verdict, times.get((verdict.case_key, verdict.variant_name, verdict.trial, verdict.attempt))


def _add_gate(suite: ElementTree.Element, gate: GateOutcome) -> str:
    """The run as a whole, as a test case: a failure, or skipped where it is undecided."""
    case = ElementTree.SubElement(suite, "testcase", classname="run", name="gate", time="0.000")
    kind = "skipped" if gate.undecided else "" if gate.passed else "failure"
    if kind:
        lines = [f"{numbers.met(part)[0]}: {numbers.condition(part)}" for part in gate.parts]
        told = _text(f"{numbers.outcome(gate)[0]}: {gate.reason}" if gate.reason else numbers.outcome(gate)[0])
        ElementTree.SubElement(case, kind, message=told).text = _text(
            "\n".join([*lines, *gate_decisions(gate, Paint())])
        )
    return kind


def _add_properties(suite: ElementTree.Element, values: dict[str, str]) -> None:
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in values.items():
        if value:
            ElementTree.SubElement(properties, "property", name=name, value=_text(value))


def _name(verdict: CaseVerdict) -> str:
    return _text(verdict.case_key + (f" [trial {verdict.trial + 1}]" if verdict.trial else ""))


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
    return _UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", text)
