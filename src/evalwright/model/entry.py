"""A row of the registers of evaluators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

__all__ = ["EvaluatorEntry", "entry"]


class EvaluatorEntry(NamedTuple):
    """One evaluator: where it is, and what a reader of the list needs to choose it. Loads nothing."""

    ref: str | Callable[..., Any]
    """`"module:attribute"` of the class, or the class itself."""
    sentence: str
    """When it passes, or what its score is."""
    format: str = ""
    """The title of the format whose vocabulary it is; "" for that of `eval.yaml`."""
    see: Mapping[str, str] = {}
    """Similar evaluators and where they differ, such as `{"cost": "≤ the limit"}`."""
    example: Mapping[str, Any] = {}
    """A configuration that is valid as it stands."""


def entry(
    ref: str | Callable[..., Any],
    sentence: str,
    *,
    format: str = "",
    see: Mapping[str, str] | None = None,
    example: Mapping[str, Any] | None = None,
) -> EvaluatorEntry:
    return EvaluatorEntry(ref, sentence, format, see or {}, example or {})
