"""What a session of pytest says of its run at the end."""

from __future__ import annotations

import os
import shlex

from evalwright.files.masking import Masker
from evalwright.reports.terminal import run_lines
from evalwright.reports.text import Paint, harmless
from evalwright.run.options import Outcome

__all__ = ["lines_of"]


def lines_of(outcome: Outcome, colours: bool) -> list[str]:
    """The numbers of a run and where it is."""
    try:
        run = str(outcome.run_dir.relative_to(os.getcwd()))  # noqa: PTH109
    except ValueError:
        run = str(outcome.run_dir)
    mask = Masker.of({}, os.environ).mask_text
    lines = [mask(line) for line in run_lines(outcome.plan, outcome.summary, Paint(colours))]
    return [*lines, *outcome.notes, "", f"evalwright inspect {harmless(shlex.quote(run))}"]
