"""One judged cell: a case, a variant and a trial, with what was recorded and what the evaluators found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from evalwright.model.result import CaseVerdict, EvaluationResult, Status
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace
from evalwright.scoring.reasons import error_text

__all__ = ["Cell"]


class Cell:
    """One evaluated cell: a case, a variant and a trial."""

    __slots__ = ("_verdict", "case", "results", "trace")

    def __init__(self, case: Case, trace: Trace, results: Iterable[EvaluationResult], verdict: CaseVerdict) -> None:
        self._verdict = verdict
        self.case: Case = case
        """The case as it was run."""
        self.trace: Trace = trace
        """All that was recorded: messages, tool calls, metrics, spans."""
        self.results: Mapping[str, EvaluationResult] = {row.evaluator: row for row in results}
        """By evaluator: `passed`, `score`, `reason`, `detail`, `error`."""

    @property
    def case_id(self) -> str:
        """A name that is unique in the run: the case's id, followed by `#2` and so on if several cases share it."""
        return self.trace.case_key

    @property
    def variant(self) -> str:
        """The name of the variant, as in `Run.variants`."""
        return self.trace.variant_name

    @property
    def trial(self) -> int:
        """Which repeat of the case it is, from 0."""
        return self.trace.trial

    @property
    def status(self) -> Status:
        """The verdict; "error" means that there is none because something broke."""
        return self._verdict.status

    @property
    def score(self) -> float | None:
        """The mean of the evaluators' scores; None if there are none, or no verdict."""
        return self._verdict.score

    @property
    def input(self) -> Any:
        """What the system was given."""
        return self.trace.input

    @property
    def output(self) -> str | None:
        """The text of the answer; None if there was none (`trace.output.structured` has a structured one)."""
        return self.trace.output.final_answer

    @property
    def error(self) -> str | None:
        """What went wrong when the system was called or, if that succeeded, when its answer was judged; None if nothing
        did."""
        if self.trace.error is not None:
            return self.trace.error.message
        if self.status != "error":
            return None
        errors = [
            f"{name}: {error_text(row.error, of_result=True)}"
            for name, row in self.results.items()
            if row.error is not None
        ]
        return "; ".join(errors) or "; ".join(self._verdict.reasons) or None

    @property
    def reasons(self) -> list[str]:
        """Why the cell did not pass, one line for each evaluator that failed it; empty if it passed."""
        return self._verdict.reasons

    @property
    def latency(self) -> float | None:
        """Seconds that the call took; None for a recording without times."""
        return None if self.trace.latency_ms is None else self.trace.latency_ms / 1000

    @property
    def cost_usd(self) -> float | None:
        """What the call cost, US dollars; None if the system did not report it."""
        return self.trace.metrics.cost_usd

    def __repr__(self) -> str:
        trial = f", trial={self.trial}" if self.trial else ""
        return f"<Cell {self.case_id!r} {self.variant!r}{trial}: {self.status}>"
