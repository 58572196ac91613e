"""Makes `import northstar.evals` give our surface, for those who ask for it (specification northstar, 7)."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType

__all__ = ["serve"]


def serve() -> None:
    """Bind `northstar.evals`. What else an installed package `northstar` has, its SDK for example, stays as it is."""
    evals = sys.modules["northstar.evals"] = importlib.import_module("evalwright.northstar")
    setattr(_package(), "evals", evals)  # noqa: B010 - a module has no such attribute of its own


def _package() -> ModuleType:
    if importlib.util.find_spec("northstar") is not None:
        return importlib.import_module("northstar")
    package = sys.modules["northstar"] = ModuleType("northstar", "Served by evalwright: northstar is not installed.")
    package.__path__ = []
    return package
