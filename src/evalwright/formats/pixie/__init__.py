"""pixie: datasets whose entries drive an instrumented application."""

from evalwright.model.format import Format, Option

__all__ = ["FORMAT"]

_SURFACE = "evalwright.formats.pixie.surface."
_SCORERS = {
    name: f"evalwright.formats.pixie.scorers:{name}"
    for name in ("ExactMatch", "JSONDiff", "Levenshtein", "ListContains", "NumericDiff", "ValidJSON")
}
"""The scorers without models of `autoevals`, for files that name them where that is not installed."""


def _scorers(*names: str) -> dict[str, str]:
    return {name: _SCORERS[name] for name in names}


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
    shims={
        "pixie": "evalwright.pixie",
        "pixie.config": _SURFACE + "config",
        "pixie.dataset": _SURFACE + "dataset_store",
        "pixie.dataset.store": _SURFACE + "dataset_store",
        "pixie.eval": _SURFACE + "evals",
        "pixie.eval.evaluable": _SURFACE + "evaluable",
        "pixie.eval.evaluation": _SURFACE + "evaluation",
        "pixie.eval.rate_limiter": _SURFACE + "rates",
        "pixie.evals": _SURFACE + "evals",
        "pixie.harness": _SURFACE + "runnable",
        "pixie.harness.runnable": _SURFACE + "runnable",
        "pixie.instrumentation": _SURFACE + "instrumentation",
        "pixie.storage": "evalwright.pixie",
        "pixie.storage.evaluable": "evalwright.pixie",
        "autoevals": _SCORERS,
        "autoevals.json": _scorers("JSONDiff", "ValidJSON"),
        "autoevals.list": _scorers("ListContains"),
        "autoevals.number": _scorers("NumericDiff"),
        "autoevals.string": _scorers("Levenshtein"),
        "autoevals.value": _scorers("ExactMatch"),
    },
    replaces=("pixie",),  # two registries of `wrap` would never meet
)
