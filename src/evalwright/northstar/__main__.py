"""`python -m evalwright.northstar FILE ...`: a script, or `-m MODULE ...`, gets ours for `northstar.evals`."""

from __future__ import annotations

from evalwright.formats.northstar import FORMAT
from evalwright.run.scripts import run_with

run_with(FORMAT, "evalwright.northstar")
