"""Makes `import pixie` give our surface to users' code, also where the package itself is installed."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType

__all__ = ["serve"]

_MODULES = {
    "pixie": "evalwright.pixie",
    "pixie.config": "evalwright.formats.pixie.surface.config",
    "pixie.dataset": "evalwright.formats.pixie.surface.dataset_store",
    "pixie.dataset.store": "evalwright.formats.pixie.surface.dataset_store",
    "pixie.eval": "evalwright.formats.pixie.surface.evals",
    "pixie.eval.evaluable": "evalwright.formats.pixie.surface.evaluable",
    "pixie.eval.evaluation": "evalwright.formats.pixie.surface.evaluation",
    "pixie.eval.rate_limiter": "evalwright.formats.pixie.surface.rates",
    "pixie.evals": "evalwright.formats.pixie.surface.evals",
    "pixie.harness": "evalwright.formats.pixie.surface.runnable",
    "pixie.harness.runnable": "evalwright.formats.pixie.surface.runnable",
    "pixie.instrumentation": "evalwright.formats.pixie.surface.instrumentation",
    "pixie.storage": "evalwright.pixie",
    "pixie.storage.evaluable": "evalwright.pixie",
}

_SCORERS = {
    "json": ("JSONDiff", "ValidJSON"),
    "list": ("ListContains",),
    "number": ("NumericDiff",),
    "string": ("Levenshtein",),
    "value": ("ExactMatch",),
}


def serve() -> None:
    """Bind the names under which users' files reach the surface. Two registries of `wrap` would never meet."""
    for name, ours in _MODULES.items():
        sys.modules[name] = module = importlib.import_module(ours)
        above, _, last = name.rpartition(".")
        if above:
            setattr(sys.modules[above], last, module)
    if "autoevals" not in sys.modules and importlib.util.find_spec("autoevals") is None:
        _serve_scorers()


def _serve_scorers() -> None:
    """The scorers without models of `autoevals`, for users' files that name them where that is not installed."""
    from evalwright.formats.pixie import scorers

    package = sys.modules["autoevals"] = ModuleType("autoevals", "Served by evalwright: autoevals is not installed.")
    package.__path__ = []
    for name, kinds in _SCORERS.items():
        module = sys.modules[f"autoevals.{name}"] = ModuleType(f"autoevals.{name}")
        setattr(package, name, module)
        for kind in kinds:
            setattr(module, kind, getattr(scorers, kind))
            setattr(package, kind, getattr(scorers, kind))
