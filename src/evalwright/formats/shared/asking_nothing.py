"""Configurations of evaluators that check nothing: allowed, as in the originals, but every answer passes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["asking_nothing"]

_ANY_CALLS = ("in_order", "subset")
"""Modes of `tool_calls_match` that allow calls besides the expected ones."""
_OTHER_CALLS = ("any_order", "in_order", "superset")
"""The same for `tool_trajectory`."""


def asking_nothing(kind: Any, config: Any) -> Iterator[tuple[str, str]]:
    """Keys of an evaluator's configuration, with what is wrong with each."""
    if not isinstance(config, Mapping):
        return
    if kind == "schema_match" and "schema" in config and config["schema"] in ({}, True):
        yield "schema", "every value satisfies this schema: say what the value must be"
    elif kind == "tool_calls_match" and config.get("expected") == [] and config.get("mode", "subset") in _ANY_CALLS:
        yield "expected", "every trace has these calls, none: name calls, or set mode: exact if there must be none"
    elif kind == "tool_trajectory" and config.get("mode", "any_order") in _OTHER_CALLS and _names_no_calls(config):
        yield (
            "minimums" if "minimums" in config else "expected",
            "no call is expected, and every trace passes: name calls in expected or minimums",
        )
    elif kind == "llm_judge":
        yield from _thresholds_off_the_scale(config)


def _thresholds_off_the_scale(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Thresholds of a rubric's score, for instance of one from 0 to 1 where the judge scores from 1 to 5."""
    scale = config.get("scale")
    ends = scale if isinstance(scale, Mapping) else {}
    low, high = ends.get("min", 1), ends.get("max", 5)
    for key in ("pass_threshold", "rubric_pass_threshold"):
        threshold = config.get(key)
        if not all(isinstance(number, (int, float)) for number in (threshold, low, high)):
            continue
        if not low < threshold <= high:
            which = "every score" if threshold <= low else "no score"
            yield key, f"{which} from {low:g} to {high:g} reaches it: set it within the scale, or set the scale"


def _names_no_calls(config: Mapping[str, Any]) -> bool:
    return not config.get("expected") and not config.get("minimums")
