"""What a pytest session prints about its run at the end."""

from __future__ import annotations

import os
import shlex
from shutil import get_terminal_size

from evalwright.files.masker import Masker
from evalwright.files.paths import seen_from_here
from evalwright.model.result import NOT_PASSED
from evalwright.reports.terminal import run_lines
from evalwright.reports.text import Paint, harmless
from evalwright.run.outcomes import Outcome

__all__ = ["summary_lines"]


def summary_lines(outcome: Outcome, colours: bool) -> list[str]:
    """The numbers of a run, and the command that shows its cells: those that did not pass, if there are any."""
    run, paint = str(seen_from_here(outcome.run_dir)), Paint(colours, get_terminal_size().columns)
    mask = Masker.of({}, os.environ).mask_text
    lines = [mask(line) for line in run_lines(outcome.plan, outcome.summary, paint)]
    passed = not any(variant.cells.get(status) for variant in outcome.summary.variants for status in NOT_PASSED)
    command = f"evalwright inspect {harmless(shlex.quote(run))}{'' if passed else ' --failed'}"
    return [*lines, *outcome.notes, "", f"{paint('Next:', 'dim')} {command}"]
