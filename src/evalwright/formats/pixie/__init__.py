"""pixie: datasets whose entries drive an instrumented application."""

from evalwright.model.format import Format, Option

__all__ = ["FORMAT"]

FORMAT = Format(
    name="pixie",
    title="pixie",
    summary="Datasets whose entries drive an instrumented application.",
    docs="docs/pixie.md",
    suffixes=(".json",),
    detects="evalwright.formats.pixie.detection:detects",
    load="evalwright.formats.pixie.suite:load",
    options=(Option(("--trust-pickled-types",), "flag", help="Restore objects of the project's own classes."),),
    reads_folders=True,
    targets={"pixie_app": "evalwright.formats.pixie.target:PixieApp"},
    evaluators={
        "pixie": "evalwright.formats.pixie.evaluator:PixieEvaluator",
        "wrap_check": "evalwright.formats.pixie.evaluator:WrapCheck",
    },
    totals="evalwright.formats.pixie.totals:PixieTotals",
)
