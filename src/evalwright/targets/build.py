"""From a variant to the target that answers for it."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from evalwright.model.plan import Variant
from evalwright.model.protocols import Target
from evalwright.registry import load

__all__ = ["build_target", "importable_from"]


def build_target(variant: Variant, import_paths: Sequence[str]) -> Target:
    """The target of `variant`, its configuration checked and its code imported, but nothing called yet.

    Raises InputError whose keys are relative to the variant (`target`, `init_kwargs`).
    """
    importable_from(import_paths)
    target: Target = load("targets", variant.adapter)(variant)
    return target


def importable_from(import_paths: Sequence[str]) -> None:
    """Put folders at the front of the import path, the first one first, without repeating any."""
    for folder in reversed(import_paths):
        if folder in sys.path:
            sys.path.remove(folder)
        sys.path.insert(0, folder)
