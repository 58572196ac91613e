"""Arguments of the functions that compare and plan runs, with the type that each must have."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evalwright.api.problems import refused
from evalwright.api.runs import Run
from evalwright.errors import Problem
from evalwright.model.suite import Suite

__all__ = ["kind_problems"]


def kind_problems(**arguments: Any) -> Iterator[Problem]:
    """Problems of arguments of the wrong type, under the names that the functions comparing runs give them."""
    for name, value in arguments.items():
        expected = _EXPECTED[name]
        if not _fits(name, value):
            yield refused(name, f"expected {expected}, found {value!r}")


_RUN = "a run or its folder"
_EXPECTED = {
    "before": _RUN,
    "after": _RUN,
    "runs": "at most two runs or their folders",
    "suite": "a suite, its file, or a number of cases",
    "variant": "the name of a variant, or a mapping from its name before to its name after",
    "slices": "keys like 'tag' or 'metadata.lang'",
    "by": "a metadata key",
    "group": "a metadata key, or 'none'",
    "labels": "a file of labels",
    "better": "True or False",
    "allow_changed": "True or False",
}


def _fits(name: str, value: Any) -> bool:
    path = (str, os.PathLike)
    if name in ("before", "after"):
        return isinstance(value, (Run, *path))
    if name == "runs":
        several = [value] if isinstance(value, (Run, *path)) else () if value is None else value
        return isinstance(several, Sequence) and len(several) <= 2 and all(isinstance(v, (Run, *path)) for v in several)
    if name == "suite":
        return isinstance(value, (Suite, int, *path)) and not isinstance(value, bool)
    if name == "slices":
        return isinstance(value, Sequence) and all(isinstance(key, str) for key in value)
    if name in ("better", "allow_changed"):
        return isinstance(value, bool)
    if value is None:
        return True
    if name == "variant" and isinstance(value, Mapping):
        return all(isinstance(text, str) for pair in value.items() for text in pair)
    return isinstance(value, path if name == "labels" else str)
