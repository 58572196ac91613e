"""`python -m evalwright.pixie FILE ...`: a script, or `-m MODULE ...`, that imports `pixie` gets our surface."""

from __future__ import annotations

from evalwright.formats.pixie import FORMAT
from evalwright.run.scripts import run_with

run_with(FORMAT, "evalwright.pixie")
