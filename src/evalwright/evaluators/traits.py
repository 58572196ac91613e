"""What an evaluator wants of its caller, taken over by one that is put round it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalwright.model.protocols import Evaluator
from evalwright.registry import load

__all__ = ["calls_models", "inherit"]

_NEEDS = ("uses_case", "uses_artifact", "uses_results", "calls_models", "timeout_seconds", "asks")


def inherit(outer: Evaluator, inner: Evaluator) -> None:
    """Give `outer` the attributes by which `inner` says what it wants (`model.protocols.Evaluator`)."""
    for name in _NEEDS:
        if hasattr(inner, name):
            setattr(outer, name, getattr(inner, name))


def calls_models(type_name: str, config: Mapping[str, Any]) -> bool:
    """Whether judging by this evaluator waits for models. Raises InputError for an unknown type."""
    says = getattr(load("evaluators", type_name), "calls_models", False)
    return bool(says(config) if callable(says) else says)
