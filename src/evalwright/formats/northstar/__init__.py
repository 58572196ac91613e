"""NorthStar: datasets of recorded conversations, evaluated by plans of graders.

The rules are those of northstar-ai 0.1.0; docs/northstar.md lists what differs.
"""

from evalwright.model.format import Format, Judging, Option

__all__ = ["FORMAT"]

_SCHEMA = "evalwright.formats.northstar.schema"

FORMAT = Format(
    name="northstar",
    title="NorthStar",
    summary="Recorded conversations, judged by a plan of graders.",
    docs="docs/northstar.md",
    suffixes=(".json", ".jsonl"),
    detects="evalwright.formats.northstar.detection:detects",
    load="evalwright.formats.northstar.suite:load",
    schemas={
        "northstar": (_SCHEMA + ":cases_schema", "NorthStar: a dataset in JSON"),
        "northstar-case": (_SCHEMA + ":case_schema", "NorthStar: one line of a dataset"),
        "northstar-graders": (
            _SCHEMA + ":configuration_schema",
            "NorthStar: the file of --graders",
        ),
    },
    options=(
        Option(("--plan",), metavar="NAME", help="deterministic (default), quality, agentic or trace."),
        Option(("--graders",), "path", metavar="FILE", help="Run configuration that lists the graders."),
        Option(("--judge-model",), metavar="MODEL", help="Default model for judges."),
        Option(("--strict",), "flag", help="Reject repeated ids and probable mistakes."),
    ),
    judging=Judging(on_errored_trace="evaluate"),
    write="evalwright.formats.northstar.writer:write_northstar",
    totals="evalwright.formats.northstar.totals:NorthstarTotals",
    shims={
        "northstar": "evalwright.northstar.package",
        "northstar.evals": "evalwright.northstar",
        "northstar.evals.graders": "evalwright.northstar.graders",
        "northstar.evals.models": "evalwright.northstar",
        "northstar.evals.normalization": "evalwright.northstar",
    },
    replaces=("northstar.evals",),
)
