"""Whether each trace of a file is of another cell, judged by how its line begins and ends, without decoding it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from evalwright.files.bulk import Repeats

__all__ = ["first_attempts"]

# The form in which our encoder writes nearly every trace. The end cannot be inside a value, as in `lines.CURRENT`: it
# contains no brace but the last one.
_CELL = re.compile(rb'\{"case_id":"[^"\\]*","variant_name":"[^"\\]*"(?=,"started_at":)')
_TRIAL = re.compile(rb',"trial":\d+(?=,"attempt":1,"case_index":(?:\d+|null),"spans":\[\],"schema_version":"1\.0"\}\n)')
_LONGEST_END = 120


def first_attempts(lines: Iterable[bytes]) -> int | None:
    """The number of traces, if each is the first attempt at a cell of its own; None if only decoding them can tell."""
    cells = Repeats()
    for line in lines:
        cell, trial = _CELL.match(line), _TRIAL.search(line, len(line) - _LONGEST_END)
        if cell is None or trial is None:
            return None
        cells.add((cell[0], trial[0]))
    return None if cells.hashes() else len(cells)
