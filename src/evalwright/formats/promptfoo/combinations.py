"""The variables of a test, multiplied out: a case for each combination of the values in its lists."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping
from typing import Any

from evalwright.formats.promptfoo.origin import Origin
from evalwright.formats.promptfoo.sources import Sources, in_file, split_function

__all__ = ["combinations"]


def combinations(
    variables: Mapping[str, Any], sources: Sources, origin: Origin, *, expands: bool
) -> Iterator[dict[str, Any]]:
    """One set of variables for each combination of the values in lists of strings and in file patterns, the last
    variable fastest; if they do not expand, the variables as they are. Files that do not exist are reported."""
    if not expands:
        for name, value in variables.items():
            sources.code(value, origin.at(name))
        yield dict(variables)
        return
    choices = [_choices(value, sources, origin.at(name)) for name, value in variables.items()]
    for values in itertools.product(*choices):
        yield dict(zip(variables, values, strict=True))


def _choices(value: Any, sources: Sources, origin: Origin) -> list[Any]:
    if isinstance(value, list) and value and isinstance(value[0], str):
        return [file for item in value for file in _files(item, sources, origin)]
    return _files(value, sources, origin)


def _files(value: Any, sources: Sources, origin: Origin) -> list[Any]:
    if not in_file(value) or "{{" in value:
        return [value]
    path, _ = split_function(value)
    paths = list(sources.paths(path, origin))
    if not paths or os.path.isfile(sources.folder / path):
        return [value]
    return [f"file://{os.path.relpath(path, sources.folder)}" for path in paths]
