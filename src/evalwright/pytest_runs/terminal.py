"""What a pytest session prints about its run at the end."""

from __future__ import annotations

import os
import shlex
from shutil import get_terminal_size

from evalwright.files.masker import Masker
from evalwright.files.paths import seen_from_here
from evalwright.reports.terminal import run_lines
from evalwright.reports.text import Paint, harmless
from evalwright.run.outcomes import Outcome

__all__ = ["summary_lines"]


def summary_lines(outcome: Outcome, colours: bool) -> list[str]:
    """The numbers of a run, and where it is stored."""
    run = str(seen_from_here(outcome.run_dir))
    mask = Masker.of({}, os.environ).mask_text
    lines = [
        mask(line) for line in run_lines(outcome.plan, outcome.summary, Paint(colours, get_terminal_size().columns))
    ]
    return [*lines, *outcome.notes, "", f"evalwright inspect {harmless(shlex.quote(run))}"]
