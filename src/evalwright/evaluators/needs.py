"""What an evaluator wants of its caller, taken over by one that is put round it."""

from __future__ import annotations

from evalwright.model.protocols import Evaluator

__all__ = ["inherit"]

_NEEDS = ("uses_case", "uses_artifact", "uses_results", "calls_models", "timeout_seconds", "asks")


def inherit(outer: Evaluator, inner: Evaluator) -> None:
    """Give `outer` the attributes by which `inner` says what it wants (`model.protocols.Evaluator`)."""
    for name in _NEEDS:
        if hasattr(inner, name):
            setattr(outer, name, getattr(inner, name))
