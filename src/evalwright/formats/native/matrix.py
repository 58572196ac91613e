"""`matrix:` of a system: one system for each combination of its values, so that nothing is written twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from math import prod
from pathlib import PurePath
from typing import Any, NamedTuple

from evalwright.files.key_paths import Place

__all__ = ["UnfoldedSystems", "named_file", "unfolded"]

ReportMistake = Callable[[Place, str], None]

_MOST = 1_000
"""The most systems of one matrix: more are a mistake, and all would be built before it was noticed."""
_LONGEST_NAME = 40
"""The most characters that a value may add to its system's name; a longer one is numbered."""
_FILE = "file://"


class _Value(NamedTuple):
    """One value of one key, what it adds to the system's name, and where it is written."""

    key: str
    value: Any
    name: str
    place: Place


class UnfoldedSystems(NamedTuple):
    """Systems; each knows where it was written and which of its keys came from a matrix."""

    systems: list[Any]
    origins: list[tuple[int, dict[str, Place]]]

    def authored(self, place: Place) -> Place:
        """The place in the file for a place in the systems."""
        if len(place) < 2 or place[0] != "systems" or not isinstance(place[1], int) or place[1] >= len(self.origins):
            return place
        written, values = self.origins[place[1]]
        here: Place = ("systems", written)
        if len(place) > 2 and place[2] in values:
            return (*here, *values[str(place[2])], *place[3:])
        return (*here, *place[2:])


def unfolded(systems: list[Any], report: ReportMistake) -> UnfoldedSystems:
    """The systems with each matrix unfolded: `clerk` becomes `clerk/gpt-4o-mini/short` and so on."""
    found = UnfoldedSystems([], [])
    for position, system in enumerate(systems):
        axes = _axes(system, ("systems", position), report) if isinstance(system, dict) else None
        if axes is None:
            found.systems.append(system)
            found.origins.append((position, {}))
            continue
        rest = {key: value for key, value in system.items() if key != "matrix"}
        for combination in product(*axes):
            name = "/".join([str(system.get("name", "")), *(axis_value.name for axis_value in combination)])
            found.systems.append(
                {**rest, "name": name, **{axis_value.key: axis_value.value for axis_value in combination}}
            )
            found.origins.append((position, {axis_value.key: axis_value.place for axis_value in combination}))
    return found


def named_file(value: Any) -> str | None:
    """The file to read a text from (`file://NAME` or `{path: NAME}`); None for the text itself."""
    if isinstance(value, str) and value.startswith(_FILE):
        return value.removeprefix(_FILE)
    if isinstance(value, dict) and value.keys() == {"path"} and isinstance(value["path"], str):
        return str(value["path"])
    return None


def _axes(system: dict[Any, Any], place: Place, report: ReportMistake) -> list[list[_Value]] | None:
    """The values by key; None without a matrix, or for one with mistakes, which are reported."""
    if "matrix" not in system:
        return None
    matrix = system.pop("matrix")
    if not isinstance(matrix, dict) or not matrix:
        report(
            (*place, "matrix"), "expected keys of the system, each with a list of values, or a mapping of names to them"
        )
        return None
    problems = [(key, why) for key, values in matrix.items() if (why := _mistake(system, key, values))]
    for key, why in problems:
        report((*place, "matrix", key), why)
    if problems:
        system.update(_for_a_look(system, matrix))
        return None
    axes = [list(_values(key, values)) for key, values in matrix.items()]
    if (many := prod(map(len, axes))) > _MOST:
        report((*place, "matrix"), f"expected at most {_MOST:,} systems, found {many:,}")
        return None
    return axes


def _for_a_look(system: dict[Any, Any], matrix: dict[Any, Any]) -> dict[Any, Any]:
    """One value for each key, so that a system whose matrix has mistakes does not seem to lack its keys."""
    systems = {}
    for key, given in matrix.items():
        values = list(given.values() if isinstance(given, dict) else given if isinstance(given, list) else [given])
        if key not in system and values:
            systems[key] = values[0]
    return systems


def _mistake(system: dict[Any, Any], key: Any, values: Any) -> str:
    if key in ("name", "matrix") or not isinstance(key, str):
        return f"{key!r} cannot be varied: expected a key of the system, such as model or system_prompt"
    if key in system:
        return f"{key!r} is a key of the system as well: one of the two has no effect"
    if not isinstance(values, (list, dict)) or not values:
        return "expected a list of values, or a mapping of names to them"
    if isinstance(values, dict) and not all(isinstance(name, str) and name for name in values):
        return "expected names that are texts"
    names = Counter(value.name for value in _values(key, values))
    if twice := [name for name, number in names.items() if number > 1]:
        return f"two values are called {twice[0]!r}: remove one, or name them, as in {{first: ..., second: ...}}"
    return ""


def _values(key: str, values: list[Any] | dict[str, Any]) -> Iterator[_Value]:
    named = values.items() if isinstance(values, dict) else ((None, value) for value in values)
    for position, (name, value) in enumerate(named):
        step = position if name is None else name
        yield _Value(key, value, name or _name(key, value, position), ("matrix", key, step))


def _name(key: str, value: Any, position: int) -> str:
    if (file := named_file(value)) is not None:
        return PurePath(file).stem
    short = isinstance(value, (str, int, float)) and 0 < len(str(value)) <= _LONGEST_NAME
    return str(value) if short and "\n" not in str(value) else f"{key} {position + 1}"
