"""Why cells did not pass, in groups: reasons that differ only in numbers, quoted text and ids are one reason."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from evalwright.model.protocols import RunReader
from evalwright.model.result import NOT_PASSED, CaseVerdict
from evalwright.model.summary import RunSummary
from evalwright.model.trace import TraceError
from evalwright.reports.failures import error_text, newest_verdicts
from evalwright.reports.order import Place, order_of
from evalwright.scoring.quoted import QUOTED, beginning

__all__ = ["GroupedCase", "Reason", "ReasonGroup", "ReasonGroups", "group_reasons", "reasons_of", "shape_of"]

_MOST_GROUPS = 10_000
_KEPT_CASES = 64
_SHOWN_CASES = 3

_ID = re.compile(r"\b(?:0x[0-9a-f]+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?=[a-f]*\d)[0-9a-f]{8,})\b", re.I)
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_LIST = re.compile(r"'…'(?:, '…')+")
_CALL = re.compile(r"(?<=\w)\([^()]*…[^()]*\)")
_PLACE = re.compile(r"^(.*) in (\S+:\d+)$", re.DOTALL)
"""The end of an exception's message: where in the user's code it was raised."""


class Reason(NamedTuple):
    """One reason of one cell."""

    text: str
    shape: str
    """What it shares with the same reason of other cells: the key of its group, and of the viewer's filter `reason`."""


def reasons_of(verdict: CaseVerdict) -> list[Reason]:
    """The reasons of a cell that did not pass, each shape once; of a broken system its error alone."""
    if verdict.error is not None:  # results for an answer that never came explain nothing
        return [_of_error(verdict.error, verdict.case_id)]
    found: dict[str, Reason] = {}
    for line in filter(None, verdict.reasons):
        shape = shape_of(line, verdict.case_id)
        found.setdefault(shape, Reason(line, shape))
    return [*found.values()] or [Reason("no reason was given", "no reason was given")]


def shape_of(reason: str, case_id: str = "") -> str:
    """A reason with `…` for numbers, ids and quoted text; the name of the evaluator before the colon stays."""
    reason = beginning(reason)
    source, colon, rest = reason.partition(": ")
    if not colon or len(source) > 60 or QUOTED.search(source):
        source, colon, rest = "", "", reason
    return source + colon + _shape(rest, case_id)


def _shape(text: str, case_id: str) -> str:
    text = QUOTED.sub("'…'", text)
    if len(case_id) > 2 and case_id in text:
        text = re.sub(rf"(?<!\w){re.escape(case_id)}(?!\w)", "…", text)
    text = _NUMBER.sub("…", _ID.sub("…", text))
    return _CALL.sub("(…)", _LIST.sub("'…'", text))


def _of_error(error: TraceError, case_id: str) -> Reason:
    found = _PLACE.match(error.message) if error.stack else None
    if found is None:
        return Reason(error_text(error), f"{error.type}: {_shape(beginning(error.message), case_id)}")
    message, place = found.groups()
    frame = f"{place}{_function(error.stack or '', place)}"
    return Reason(f"{frame}: {message}", f"{frame}: {_shape(beginning(message), case_id)}")


def _function(stack: str, place: str) -> str:
    """The function of the user's frame: ` in answer`; empty where the stack does not say it."""
    file, _, line = place.rpartition(":")
    found = re.findall(rf'{re.escape(file)}", line {line}, in ([^\n]+)', stack)
    return f" in {found[-1]}" if found else ""


class GroupedCase(NamedTuple):
    """One case of a group, on one variant."""

    place: Place
    case_key: str
    variant: str
    status: str


@dataclass(slots=True)
class ReasonGroup:
    """The cells that share a reason. Only its first cases are kept, in the order of the suite."""

    shape: str
    text: str | None
    """The reason itself if it is the same in all cells."""
    first: tuple[Place, int]
    """The place of its first case, and its position among the reasons of that case."""
    count: int = 0
    _cases: dict[GroupedCase, int] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return self.shape if self.text is None else self.text

    @property
    def cases(self) -> list[tuple[GroupedCase, int]]:
        """The first cases and the number of their trials that have this reason."""
        known = sorted(self._cases.items())
        # "and 1 more" takes the room of a name and says less
        return known if len(known) == _SHOWN_CASES + 1 else known[:_SHOWN_CASES]

    def add(self, text: str, place: Place, number: int, verdict: CaseVerdict) -> None:
        self.count += 1
        if text != self.text:
            self.text = None
        self.first = min(self.first, (place, number))
        # Without the trial: trials of a case are one entry.
        case = GroupedCase((*place[:2], 0), verdict.case_key, verdict.variant_name, verdict.status)
        self._cases[case] = self._cases.get(case, 0) + 1
        if len(self._cases) > _KEPT_CASES:  # what is left out here comes after those that are shown, whatever follows
            self._cases = dict(sorted(self._cases.items())[: 2 * _SHOWN_CASES])


@dataclass(slots=True)
class ReasonGroups:
    """Groups of reasons. A cell with two reasons is in two of them."""

    cells: int = 0
    more: int = 0
    """Reasons that are in no group because there are already ten thousand groups."""
    _groups: dict[str, ReasonGroup] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._groups)

    def __iter__(self) -> Iterator[ReasonGroup]:
        """The most frequent first; ties in the order of the suite."""
        return iter(sorted(self._groups.values(), key=lambda group: (-group.count, group.first, group.shape)))

    def add(self, verdict: CaseVerdict, place: Place) -> None:
        self.cells += 1
        for number, reason in enumerate(reasons_of(verdict)):
            group = self._groups.get(reason.shape)
            if group is None:
                if len(self._groups) >= _MOST_GROUPS:
                    self.more += 1
                    continue
                group = self._groups[reason.shape] = ReasonGroup(reason.shape, reason.text, (place, number))
            group.add(reason.text, place, number, verdict)


def group_reasons(reader: RunReader, summary: RunSummary) -> tuple[ReasonGroups, ReasonGroups]:
    """The reasons of the cells that failed or are borderline, and of those without a verdict, in one pass.

    Nothing is read where the summary says that every cell passed.
    """
    failed, errored = ReasonGroups(), ReasonGroups()
    groups = {"fail": failed, "borderline": failed, "error": errored}
    if not any(variant.cells.get(status) for variant in summary.variants for status in groups):
        return failed, errored
    _fill(groups, newest_verdicts(reader, NOT_PASSED), summary)
    return failed, errored


def _fill(groups: dict[str, ReasonGroups], verdicts: Iterable[CaseVerdict], summary: RunSummary) -> None:
    place = order_of(summary.variants)
    for verdict in verdicts:
        if (found := groups.get(verdict.status)) is not None:
            found.add(verdict, place(verdict))
