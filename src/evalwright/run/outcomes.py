"""The outcome of a run: its counts, what is decided about it as a whole, and the exit code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from evalwright.evaluators.build import is_judge
from evalwright.model.cell_index import index_of
from evalwright.model.damage import missing_results, unreadable_records
from evalwright.model.plan import Plan
from evalwright.model.protocols import RunReader, RunWriter
from evalwright.model.summary import RunSummary
from evalwright.registry import load
from evalwright.run.cells import RunState
from evalwright.run.locations import Place, labels_file
from evalwright.scoring.tally import Tally
from evalwright.session import returning

if TYPE_CHECKING:
    from evalwright.run.steps.mirror import MirrorsOfPlan

__all__ = ["Outcome", "conclude", "folded_summary", "is_decided", "summed_up", "variant_of"]

_HEALING = (
    "unreadable records do not count: `re-evaluate` replaces results and verdicts; the cell of a damaged "
    "trace is run again by `resume`, after which that line can be deleted"
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a session left behind."""

    run_dir: Path
    plan: Plan
    summary: RunSummary
    interrupted: bool = False
    notes: list[str] = field(default_factory=list)
    """What the user should know besides the numbers, such as a torn tail that was cut."""
    place: Place | None = None
    """Where the run is, for code that reads it at once: its path alone may not lead there."""

    @property
    def address(self) -> Path | Place:
        return self.place or self.run_dir

    unreadable: int = 0
    """Cells whose traces cannot be read, so that they could not be re-evaluated."""

    of_original: bool = False
    """Whether the original program wrote the run, whose re-evaluation ends with 0 whatever the verdicts."""

    unread: Sequence[str] = ()
    """Records that cannot be read: with them, the run might not have passed."""

    @property
    def exit_code(self) -> int:
        """0 passed, 1 did not pass, 3 cells have no verdict or records cannot be read, 130 interrupted.

        If there is a gate, it decides whether the run passed; otherwise it passes if every cell passed or was
        skipped. Either way it has not passed while a cell has no verdict. A shard ends with 0 once it is finished,
        whatever its verdicts and errors: the merged run decides about them.
        """
        if self.interrupted:
            return 130
        return self._judged_code() or (3 if self.unread else 0)

    def _judged_code(self) -> int:
        # a scheduler repeats whatever does not end with 0, but failures must not be repeated
        if self.plan.shard is not None:
            return 3 if self.summary.cells_missing else 0
        gate = self.summary.gate
        if self.plan.until_decided is not None and gate is not None:
            # the decision counts errors as the worst possible outcomes, and nothing else was needed
            return 0 if gate.passed else 3 if gate.undecided else 1
        if gate is not None and not gate.passed and not gate.undecided:
            return 1
        undecided = gate is not None and gate.undecided and not gate.tolerated
        counts: dict[str, int] = {}
        for variant in self.summary.variants:
            for status, number in variant.cells.items():
                counts[status] = counts.get(status, 0) + number
        if counts.get("error") or self.summary.cells_missing or undecided:
            return 3
        return 1 if gate is None and (counts.get("fail") or counts.get("borderline")) else 0


def summed_up(
    tally: Tally, reader: RunReader, plan: Plan, finished_at: datetime, shown: RunSummary | None = None
) -> RunSummary:
    """The numbers of a run that was counted; its records are read again only if something is to be decided.

    `shown` is the stored summary of a run that is only looked at again.
    """
    summary = tally.summary(plan, finished_at)
    if plan.shard is None and is_decided(plan):
        from evalwright.run.decisions import add_decisions

        add_decisions(summary, reader, plan, shown)
    return summary


def folded_summary(reader: RunReader, plan: Plan) -> RunSummary:
    """The summary from the run's records as they are now; unreadable records are among its warnings.

    The stored summary's warnings are kept: no record says that a system was no longer called, for instance.
    """
    from evalwright.run.calibration import mark_judges
    from evalwright.scoring.contradictions import doubtful_verdicts
    from evalwright.scoring.fold import fold

    stored = reader.summary()
    finished = stored.finished_at if stored else plan.started_at
    summary = summed_up(fold(reader, plan), reader, plan, finished, stored)
    mark_judges(reader, plan, summary)
    if (index := index_of(reader)) is not None:
        index.close()  # a run has an index only if every line can be read
    else:
        for _ in reader.verdicts(_Row):
            pass
    contradicted = None
    if not unreadable_records(reader):
        contradicted, unexplained = doubtful_verdicts(reader, plan)
        reader.damage += [missing_results(unexplained)] if unexplained else []
    doubts = [*(f"cannot be read: {note}" for note in unreadable_records(reader)), *filter(None, [contradicted])]
    summary.warnings = [*dict.fromkeys([*summary.warnings, *(stored.warnings if stored else ()), *doubts])]
    return summary


class _Row(msgspec.Struct, gc=False):
    pass


def is_decided(plan: Plan) -> bool:
    """Whether a run as a whole is decided by more than its counts."""
    claims = plan.gate is not None and plan.gate["kind"] == "claims"
    return claims or plan.run.baseline_variant is not None or plan.until_decided is not None


def conclude(
    place: Place,
    writer: RunWriter,
    plan: Plan,
    tally: Tally,
    interrupted: bool,
    *notes: str,
    mirrors: MirrorsOfPlan | None = None,
    state: RunState | None = None,
    earlier: Sequence[RunSummary | None] = (),
) -> Outcome:
    """Store the summary, notify the mirrors, and return the outcome of the session.

    `earlier` are the summaries of the sessions that wrote the records, if this one neither called a system nor judged.
    """
    summary = summed_up(tally, writer, plan, datetime.now(UTC))
    if plan.shard is not None:
        from evalwright.run.shards import counts_to_merge

        summary.to_merge = counts_to_merge(plan, summary, writer.summary(), state)
    before = [summary for summary in earlier or (writer.summary(),) if summary is not None]
    of_calls = [warning for summary in before for warning in summary.call_warnings or ()]
    ended = _end_notes(state, summary) if state is not None else []
    if state is not None:
        # What a session finds in its own calls of a system takes the place of what earlier ones found in theirs.
        of_calls = [call for call in of_calls if variant_of(call, plan) not in state.answers] + state.doubts
    if of_calls:
        summary.call_warnings = [*dict.fromkeys(of_calls)]
    warnings = [warning for summary in earlier if summary is not None for warning in summary.warnings]
    summary.warnings = [*dict.fromkeys([*summary.warnings, *warnings, *of_calls, *ended])]
    if any(map(is_judge, plan.evaluators)) or labels_file(writer).is_file():
        from evalwright.run.calibration import keep_calibration

        keep_calibration(writer, plan, summary)
    if plan.until_decided is not None:
        from evalwright.run.sequence import keep_decision

        keep_decision(writer, plan)
    if mirrors is not None:
        with returning():
            mirrors.finish(summary)
    writer.save_summary(summary)
    if plan.shard is not None:
        from evalwright.run.shards import close_shard

        notes = (*notes, *close_shard(writer, plan, summary))
    for export in plan.exports if plan.shard is None else ():
        load("exports", export.type)(export.config).write(writer, plan, summary, writer.mask)
    lost = unreadable_records(writer) if writer.damage else []
    unsent = [f"mirror {error['sink']}, {error['op']}: {error['error']}" for error in summary.sink_errors]
    all_notes = [*notes, *ended, *unsent, *writer.damage, *([_HEALING] if lost else [])]
    return Outcome(place.address, plan, summary, interrupted, all_notes, place, unread=lost)


def variant_of(warning: str, plan: Plan) -> str | None:
    """The variant whose name a warning begins with; the longest one, as a name may contain a colon, too."""
    names = (variant.name for variant in plan.variants if warning.startswith(f"{variant.name}: "))
    return max(names, key=len, default=None)


def _end_notes(state: RunState, summary: RunSummary) -> list[str]:
    """Why systems were no longer called, and what went wrong when they were closed."""
    # Cells that were to be run again and were not reached are not missing: they have their earlier records.
    left = summary.cells_missing or state.done < state.total
    stopped = dict.fromkeys([*state.stuck.values(), state.halted]) if left else ()
    trouble = "" if state.lease is None else state.lease.trouble
    return [*filter(None, (*stopped, trouble)), *dict.fromkeys(state.doubts)]
