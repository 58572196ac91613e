"""A run as annotations of GitHub Actions: workflow commands, one a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from evalwright.errors import counted
from evalwright.model.protocols import RunReader
from evalwright.model.result import CaseVerdict
from evalwright.model.summary import RunSummary
from evalwright.reports.context import ALONE, ReportContext
from evalwright.reports.failures import newest_verdicts
from evalwright.reports.gates import run_failures
from evalwright.reports.order import First, Place, order_of
from evalwright.reports.text import harmless, one_line, short_line
from evalwright.scoring.reasons import error_text

__all__ = ["GitHubAnnotations"]

_MOST = 9
"""GitHub shows ten annotations of a kind per step, so the tenth says how many more there are, whatever they are of."""
_LONGEST = 1_000


class GitHubAnnotations:
    """Annotations for GitHub: errors for the gate and cells that failed, warnings for those without a verdict.

    The gate and what was not run come first, then regressions. Each is at the line of its case, if the data file gives
    it. The trials of a case share one, as there are so few. Warnings of the run are notices.
    """

    reads: ClassVar[frozenset[str]] = frozenset({"compare", "link", "places"})

    def render(self, reader: RunReader, summary: RunSummary, context: ReportContext = ALONE) -> str:
        worse = _worse(context)
        place = order_of(summary.variants)

        def order(verdict: CaseVerdict) -> Place:
            case, variant, trial = place(verdict)
            # Regressions come from the change; what failed before is no news.
            return (case - 1e9 if (verdict.case_key, verdict.variant_name) in worse else case), variant, trial

        trials = {} if reader.plan is None else reader.plan.trials_by_variant
        most = _MOST * max(trials.values(), default=1)
        failed: First[CaseVerdict] = First(most, order)
        errored: First[CaseVerdict] = First(most, place)
        counts = {"error": 0, "warning": 0}
        for verdict in newest_verdicts(reader, (*summary.failing, "error")):
            if verdict.status in summary.failing:
                failed.add(verdict)
                counts["error"] += 1
            else:
                errored.add(verdict)
                counts["warning"] += 1
        of_run = _annotations_of_run(reader, summary)
        groups = {"error": _trials_together(failed), "warning": _trials_together(errored)}
        lines: list[str] = []
        for kind in ("error", "warning"):
            lines += of_run[kind]
            lines += _lines(kind, groups[kind][: _MOST - len(of_run[kind])], counts[kind], trials, worse, context)
        return "".join(f"{line}\n" for line in [*lines, *_notices(summary.warnings)])


def _annotations_of_run(reader: RunReader, summary: RunSummary) -> dict[str, list[str]]:
    """By kind, what is to say about the run as a whole."""
    lines: dict[str, list[str]] = {"error": [], "warning": []}
    for failure in run_failures(reader, summary, _LONGEST):
        kind = "error" if failure.status == "fail" else "warning"
        lines[kind].append(f"::{kind} title={failure.subject}::{_data(failure.text)}")
    return lines


def _notices(warnings: Sequence[str]) -> Iterator[str]:
    for text in warnings[:_MOST]:
        yield f"::notice title=evalwright::{_data(one_line(text, _LONGEST))}"
    if (rest := len(warnings) - _MOST) > 0:
        yield f"::notice title=evalwright::and {counted(rest, 'more warning')}"


def _worse(context: ReportContext) -> set[tuple[str, str]]:
    if context.before is None:
        return set()
    return {
        (case, variant.variant) for variant in context.before.comparison.variants for case in variant.delta.regressions
    }


def _trials_together(verdicts: First[CaseVerdict]) -> list[list[CaseVerdict]]:
    """The trials of each case and variant, in order, of as many as are shown."""
    groups: dict[tuple[str, str], list[CaseVerdict]] = {}
    for verdict in verdicts.sorted():
        groups.setdefault((verdict.case_key, verdict.variant_name), []).append(verdict)
    return list(groups.values())[:_MOST]


def _lines(
    kind: str,
    groups: list[list[CaseVerdict]],
    total: int,
    trials: Mapping[str, int],
    worse: set[tuple[str, str]],
    context: ReportContext,
) -> Iterator[str]:
    for verdict, *others in groups:
        name = f"{short_line(verdict.case_key, 80)} · {short_line(verdict.variant_name, 40)}"
        if (planned := trials.get(verdict.variant_name, 1)) > 1:
            name += f" ({1 + len(others)} of {planned} trials)"
        regression = "regression: " if (verdict.case_key, verdict.variant_name) in worse else ""
        where = context.places.get(verdict.case_key)
        place = f"file={_property(where.file)},line={where.line}," if where is not None else ""
        why = error_text(verdict.error) if verdict.error is not None else "\n".join(verdict.reasons) or verdict.status
        page = context.address(verdict.run_id, verdict, verdict.variant_name, verdict.trial)
        text = harmless(why)[:_LONGEST] + (f"\n{page}" if page else "")
        yield f"::{kind} {place}title={_property(regression + name)}::{_data(text)}"
    if (rest := total - sum(map(len, groups))) > 0:
        left = counted(rest, "more cell")
        yield f"::{kind} title=evalwright::and {left} {'failed' if kind == 'error' else 'without a verdict'}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
