"""`python -m evalwright.pixie FILE ...`: a script, or `-m MODULE ...`, that imports `pixie` gets our surface."""

from __future__ import annotations

from evalwright.formats.pixie.shim import serve
from evalwright.run.scripts import run_with

run_with(serve, "evalwright.pixie")
