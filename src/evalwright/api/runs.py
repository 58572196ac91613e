"""A stored run, seen from Python."""

from __future__ import annotations

import os
import shlex
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from evalwright.api.cells import Cell
from evalwright.api.frames import Kind, Library, frame_of
from evalwright.api.notebook import html_of
from evalwright.api.problems import refused
from evalwright.api.summaries import Summary
from evalwright.errors import EvalwrightError, InputError, did_you_mean
from evalwright.files.durable import write_output
from evalwright.model.damage import unreadable_records
from evalwright.model.result import FAILED, NOT_PASSED, Status
from evalwright.model.snapshot import Case
from evalwright.registry import load, names
from evalwright.run.locations import find_run
from evalwright.run.outcomes import Outcome, folded_summary

if TYPE_CHECKING:
    from evalwright.model.plan import Plan
    from evalwright.model.protocols import RunReader
    from evalwright.model.suite import Suite
    from evalwright.model.summary import RunSummary
    from evalwright.run.locations import Place

__all__ = ["Run", "open_run", "run_of"]

_LISTED = 10


class Run:
    """A run, which may still be in progress in another process. Iterating gives cells by case, variant and
    trial."""

    def __init__(
        self,
        place: Place,
        stopped: str | None = None,
        objects: Mapping[str, Any] | None = None,
        suite: Suite | None = None,
    ) -> None:
        """Do not call this: `evaluate` and `open_run` return runs."""
        self._place, self._stopped, self._objects = place, stopped, dict(objects or {})
        self._suite = suite  # has the secrets that no record has
        reader, self._plan = self._open_records()
        reader.close()

    def _open_records(self) -> tuple[RunReader, Plan]:
        from evalwright.run.stored_run import plan_of_run

        reader = self._place.store.read(self._place.run_id)
        return reader, plan_of_run(reader)

    @property
    def path(self) -> Path | None:
        """The run's folder, or the path by which the command line finds the run; None for a run in memory."""
        address = self._place.address
        return None if str(address).startswith("memory:") else address

    @property
    def name(self) -> str:
        """The name of the run."""
        return self._plan.name

    @property
    def variants(self) -> Sequence[str]:
        """The names of its variants."""
        return [variant.name for variant in self._plan.variants]

    @property
    def summary(self) -> Summary:
        """The run in numbers, from its records as they are now."""
        return Summary(self._record(), self.name)

    @property
    def stopped(self) -> str | None:
        """Why it ended before its last cell; None if it did not."""
        missing = self._record().cells_missing
        if not missing:
            return None
        return self._stopped or f"{missing:,} cells were not run: it was interrupted, or is in progress elsewhere"

    @property
    def passed(self) -> bool:
        """Whether the command line would exit with 0: the gate passed or, without one, every cell passed or was
        skipped."""
        return Outcome(self._place.address, self._plan, self._record()).exit_code == 0

    def _record(self) -> RunSummary:
        """The stored summary if it counts every cell; else the records are counted again."""
        reader, plan = self._open_records()
        with closing(reader):
            stored = reader.summary() if reader.plan is not None else None
            if stored is not None and not stored.cells_missing:
                return stored
            return folded_summary(reader, plan)

    def __len__(self) -> int:
        return self._record().cells_total

    def __iter__(self) -> Iterator[Cell]:
        return self.cells()

    def cells(
        self,
        *,
        status: Status | Sequence[Status] | None = None,
        variant: str | None = None,
        case: str | None = None,
        tag: str | None = None,
    ) -> Iterator[Cell]:
        """The cells by case, variant and trial, read one at a time: they need not fit into memory.

        Records that cannot be read are named in warnings.

        Args:
            status: Only cells with this verdict, or with one of these.
            variant: Only cells of this variant.
            case: Only cells of the case with this id.
            tag: Only cells of cases with this tag.

        Returns:
            An iterator of cells.

        Raises:
            InputError: `status` is not a verdict, or the run has no such variant.
        """
        if variant is not None and variant not in self.variants:
            near = did_you_mean(variant, self.variants)
            known = ", ".join(self.variants)
            raise InputError(refused("variant", f"no variant {variant!r}{near} (there are: {known})"))
        wanted = (status,) if isinstance(status, str) else status
        for key in wanted or ():
            if key not in get_args(Status):
                near = did_you_mean(key, get_args(Status))
                raise InputError(
                    refused("status", f"unknown verdict {key!r}{near} (known: {', '.join(get_args(Status))})")
                )
        return (
            cell
            for cell in self._ordered_cells()
            if (wanted is None or cell.status in wanted)
            and variant in (None, cell.variant)
            and case in (None, cell.case.id, cell.case_id)
            and (tag is None or tag in cell.case.tags)
        )

    def _ordered_cells(self) -> Iterator[Cell]:
        from evalwright.scoring.verdict import cell_verdict, names_needed
        from evalwright.stores.ordered import OrderedCells

        reader, plan = self._open_records()
        with closing(reader), OrderedCells(reader) as cells:
            needed = names_needed(reader, plan)
            cases = enumerate(reader.cases())
            position, case = -1, None
            ordered = cells.all([variant.name for variant in plan.variants])
            first = [*islice(ordered, 1)]  # all records have been read by then
            for note in unreadable_records(reader):
                warnings.warn(f"{self._label}: {note}", stacklevel=3)
            for trace, results, verdict in chain(first, ordered):
                while trace.case_index is not None and position < trace.case_index:
                    position, case = next(cases, (trace.case_index, None))
                # Runs of other programs have no list of their cases, and ours may have lost it.
                if case is None or position != trace.case_index:
                    case = Case(trace.case_id, trace.input)
                status = verdict or cell_verdict(plan.pass_criteria, needed, trace, results)
                yield Cell(case, trace, results, status)

    def failures(self) -> list[Cell]:
        """The cells whose verdict is fail or borderline."""
        return list(self.cells(status=FAILED))

    def errors(self) -> list[Cell]:
        """The cells without a verdict, because the system or an evaluator broke."""
        return list(self.cells(status="error"))

    def cell(self, case: str, variant: str | None = None, trial: int = 0) -> Cell:
        """One cell.

        Args:
            case: The case's id.
            variant: The variant's name; None for the only one, or the first.
            trial: Which repeat, from 0.

        Returns:
            The cell.

        Raises:
            KeyError: there is none; the message says which id is nearest.
        """
        wanted = self.variants[0] if variant is None and self.variants else variant
        case_ids: dict[str, None] = {}
        for cell in self._ordered_cells():
            case_ids[cell.case_id] = None
            if case in (cell.case.id, cell.case_id) and (cell.variant, cell.trial) == (wanted, trial):
                return cell
        if case not in case_ids:
            raise KeyError(f"no case {case!r}{did_you_mean(case, case_ids)}")
        if wanted not in self.variants:
            near = did_you_mean(str(wanted), self.variants)
            raise KeyError(f"no variant {wanted!r}{near} (there are: {', '.join(self.variants)})")
        raise KeyError(f"no trial {trial} of {case!r} with {wanted!r}; trials count from 0")

    def to_frame(self, kind: Kind = "cells", *, backend: Library | None = None) -> Any:
        """The run as a DataFrame.

        Args:
            kind: "cells", a row for each cell: `case, variant, trial, status, score, input, output, expected, error,
                latency_s` (seconds)`, cost_usd, tokens_in, tokens_out, tags, group`, then for each evaluator
                `NAME.passed`, `NAME.score` and `NAME.reason`, and `metadata.KEY`. "results", a row for each result of
                an evaluator. "tool_calls", a row for each call of a tool.
            backend: "pandas" or "polars"; None: the one that is installed, pandas if both are.

        Returns:
            A pandas or polars DataFrame.

        Raises:
            InputError: neither is installed; the message names the extra.
        """
        return frame_of(self, kind, backend)

    def report(self, format: str = "markdown", out: str | os.PathLike[str] | None = None) -> str:
        """A report of the run.

        Args:
            format: One of `evalwright list reports`: markdown, html, json, junit, …
            out: A file to write the report to, too; None: no file.

        Returns:
            The report as text.

        Raises:
            InputError: there is no such report.
            StorageError: the file cannot be written.
        """
        if format not in names("reports"):
            formats = names("reports")
            message = f"unknown report {format!r}{did_you_mean(format, formats)} (known: {', '.join(formats)})"
            raise InputError(refused("format", message))
        summary = self._record()
        reader, plan = self._open_records()
        with closing(reader):
            reader.plan = plan
            report = load("reports", format)()
            if hasattr(report, "check"):
                report.check(summary, str(self.path or self.name))
            text: str = report.render(reader, summary)
        if out is not None:
            write_output(Path(out), [text.encode("utf-8", "backslashreplace")])
        return text

    def raise_for_status(self) -> Run:
        """Raise unless the run passed, for tests and scripts.

        Returns:
            The run itself.

        Raises:
            AssertionError: it did not pass; up to ten cells are listed with their reasons.
        """
        __tracebackhide__ = True
        if self.passed:
            return self
        lines = [f"{self.name}: {str(self.summary).splitlines()[0]}"]
        several = max(map(self._plan.trials_of, self._plan.variants), default=1) > 1
        unsound = self.cells(status=NOT_PASSED)
        for cell, _ in zip(unsound, range(_LISTED), strict=False):
            trial = f" · trial {cell.trial + 1}" if cell.trial or several else ""
            why = cell.error or "; ".join(cell.reasons)
            lines.append(f"  {cell.status}  {cell.case_id} · {cell.variant}{trial}: {why[:300]}")
        counts = self.summary.cells
        if (more := sum(counts[status] for status in NOT_PASSED) - _LISTED) > 0:
            lines.append(f"  … and {more:,} more")
        if self.stopped:
            lines.append(f"  stopped: {self.stopped}")
        if self.path is not None:
            lines.append(f"  evalwright inspect {shlex.quote(str(self.path))} --failed")
        raise AssertionError("\n".join(lines))

    @property
    def _label(self) -> str:
        return str(self.path or self.name)

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process opens the stored run; the functions that it was evaluated with stay in this one."""
        if self.path is None:
            raise TypeError("a run in memory cannot be pickled: evaluate with `out`, a folder")
        return open_run, (self.path,)

    def __repr__(self) -> str:
        try:
            line = str(self.summary).splitlines()[0]
        except EvalwrightError as error:  # a debugger shows runs whose folder is gone, too
            line = str(error).splitlines()[0]
        return f"<Run {self._label!r}: {line}>"

    def _repr_html_(self) -> str:
        return html_of(self.name, self.summary, self.cells(status=NOT_PASSED))


def open_run(path: str | os.PathLike[str]) -> Run:
    """A stored run.

    Args:
        path: Its folder, `FILE.sqlite/RUN_ID`, or `postgres:SCHEMA/RUN_ID`.

    Returns:
        The run, which may still be in progress elsewhere.

    Raises:
        InputError: there is no run, or it cannot be read.
    """
    if not isinstance(path, str | os.PathLike):
        raise InputError(refused("path", f"expected the folder of a run, found {path!r}"))
    return Run(find_run(Path(path)))


def run_of(run: Run | str | os.PathLike[str]) -> Run:
    """The run itself, or the stored one in that folder. Raises InputError."""
    return run if isinstance(run, Run) else open_run(run)
