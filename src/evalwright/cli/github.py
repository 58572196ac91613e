"""What GitHub Actions shows of a run: annotations, the job summary, step outputs."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from evalwright.cli.report_context import opened_context
from evalwright.cli.screen import print_damage, print_err, screen_masker
from evalwright.files.durable import AppendFile
from evalwright.files.paths import seen_from_here
from evalwright.model.damage import unreadable_records
from evalwright.model.summary import RunSummary
from evalwright.reports.context import ReportContext
from evalwright.reports.github import GitHubAnnotations
from evalwright.reports.markdown import Markdown
from evalwright.reports.sentences import sentence_of, worse_cases
from evalwright.run.case_places import CasePlaces
from evalwright.run.locations import Place
from evalwright.run.outcomes import Outcome, folded_summary
from evalwright.run.stored_run import open_run

__all__ = ["append_data", "show_on_github"]

_SUMMARY, _OUTPUT = "GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT"
_MOST_BYTES = 1_000_000
"""GitHub shows no step summary above one MiB, not even a part of it."""


def show_on_github(
    run: Path | Place, exit_code: int | None = None, *, compare: Path | None = None, link: str = ""
) -> int:
    """Write annotations to standard error, and the summary and outputs into the files that the runner names, if it
    does.

    Returns 3 if records cannot be read, else 0.

    `exit_code` is the one with which the run ended; None: the one that its verdicts give. Raises InputError for an
    earlier run that cannot be compared, StorageError for a file that cannot be written.
    """
    reader, plan = open_run(run)
    with closing(reader), opened_context(run, compare, link) as context:
        summary = folded_summary(reader, plan)
        reader.plan = plan
        context = replace(context, places=CasePlaces(plan))
        print_err(GitHubAnnotations().render(reader, summary, context).splitlines())
        damaged = print_damage(reader)
        mask = screen_masker().mask_text
        if not os.environ.get(_SUMMARY) and not os.environ.get(_OUTPUT):
            print_err(
                [f"warning: neither ${_SUMMARY} nor ${_OUTPUT} is set: no job summary and no outputs are written"]
            )
        if path := os.environ.get(_SUMMARY):
            _append_summary(Path(path), mask(Markdown().render(reader, summary, context)))
        if path := os.environ.get(_OUTPUT):
            ended = Outcome(Path(reader.location), plan, summary, unread=unreadable_records(reader)).exit_code
            values = _outputs(Path(reader.location), summary, ended if exit_code is None else exit_code, context)
            _append(Path(path), "".join(_assigned(name, mask(value)) for name, value in values.items()))
        return damaged


def _append_summary(path: Path, text: str) -> None:
    there = path.stat().st_size if path.exists() else 0
    if there + len(text.encode("utf-8", "backslashreplace")) + 1 > _MOST_BYTES:
        print_err([f"warning: the job summary is full: nothing is added to {path}"])
        return
    _append(path, f"{text}\n")


def _append(path: Path, text: str) -> None:
    # Records may hold half of a surrogate pair, for which UTF-8 has no bytes.
    append_data(path, text.encode("utf-8", "backslashreplace"))


def append_data(path: Path, data: bytes) -> None:
    """Append to a file that other programs write, too. Raises StorageError."""
    file = AppendFile(path)
    try:
        file.append(data)
        file.sync()
    finally:
        file.close()


def _outputs(run: Path, summary: RunSummary, exit_code: int, context: ReportContext) -> Mapping[str, str]:
    def cells(*statuses: str) -> int:
        return sum(variant.cells.get(status, 0) for variant in summary.variants for status in statuses)

    comparison = None if context.before is None else context.before.comparison
    rates = [variant.pass_rate for variant in summary.variants if variant.pass_rate_n and variant.pass_rate is not None]
    return {
        "run": str(seen_from_here(run)),
        "passed": str(cells("pass")),
        "failed": str(cells(*summary.failing)),
        "errors": str(cells("error")),
        # The lowest of several variants: a workflow compares all of them with one threshold.
        "pass_rate": f"{min(rates):.6g}" if rates else "",
        "worse": "" if comparison is None else str(worse_cases(comparison)),
        "decision": sentence_of(summary, comparison),
        "exit_code": str(exit_code),
    }


def _assigned(name: str, value: str) -> str:
    """An output of any number of lines: its end marker is random, so that no data can end it and set another output."""
    end = f"evalwright-{uuid.uuid4()}"
    return f"{name}<<{end}\n{value}\n{end}\n"
