"""Why cells did not pass, in groups: reasons that differ only in numbers, quoted text and ids are one reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from evalwright.model.protocols import RunReader
from evalwright.model.result import NOT_PASSED, CaseVerdict
from evalwright.model.summary import RunSummary
from evalwright.reports.failures import newest_verdicts
from evalwright.reports.order import Place, order_of
from evalwright.scoring.reasons import CommonReason, reasons_of

__all__ = ["GroupedCase", "ReasonGroup", "ReasonGroups", "group_reasons"]

_MOST_GROUPS = 10_000
_KEPT_CASES = 64
_SHOWN_CASES = 3


class GroupedCase(NamedTuple):
    """One case of a group, on one variant."""

    place: Place
    case_key: str
    variant: str
    status: str


@dataclass(slots=True)
class ReasonGroup:
    """The cells that share a reason. Only its first cases are kept, in the order of the suite."""

    reason: CommonReason
    first: tuple[Place, int]
    """The place of its first case, and its position among the reasons of that case."""
    count: int = 0
    repeated: bool = False
    """Whether it has further trials of cases, so that it may have more cells than cases."""
    _cases: dict[GroupedCase, int] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return str(self.reason)

    @property
    def cases(self) -> list[tuple[GroupedCase, int]]:
        """The first cases and the number of their trials that have this reason."""
        in_order = sorted(self._cases.items())
        # "and 1 more" takes the room of a name and says less
        return in_order if len(in_order) == _SHOWN_CASES + 1 else in_order[:_SHOWN_CASES]

    @property
    def rest(self) -> str:
        """How many cells there are beside those of the first cases: ` and 6 more`; empty if there are none."""
        left = self.count - sum(count for _, count in self.cases)
        return f" and {left:,} more{' cells' if self.repeated else ''}" if left else ""

    def add(self, text: str, place: Place, number: int, verdict: CaseVerdict) -> None:
        self.count += 1
        self.repeated = self.repeated or verdict.trial > 0
        self.reason.add(text)
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
        return iter(sorted(self._groups.values(), key=lambda group: (-group.count, group.first, group.reason.shape)))

    def add(self, verdict: CaseVerdict, place: Place) -> None:
        self.cells += 1
        for number, (shape, text) in enumerate(reasons_of(verdict).items()):
            group = self._groups.get(shape)
            if group is None:
                if len(self._groups) >= _MOST_GROUPS:
                    self.more += 1
                    continue
                group = self._groups[shape] = ReasonGroup(CommonReason(shape, text), (place, number))
            group.add(text, place, number, verdict)


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
        if (group := groups.get(verdict.status)) is not None:
            group.add(verdict, place(verdict))
