"""Eval formats: one module each, from a user's files to a suite."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalwright.errors import InputError, Problem

if TYPE_CHECKING:
    from evalwright.model.suite import Suite

__all__ = ["fitting", "load_suite"]

_FOR_ALL = ("target", "trials")
"""Options that every format takes."""


def load_suite(
    path: Path,
    dialect: str | None = None,
    variables: Mapping[str, str] | None = None,
    *,
    to_run: bool = True,
    options: Mapping[str, Any] | None = None,
) -> Suite:
    """The suite in a file, in the given dialect or the one that its keys show.

    `variables` go before the environment where the file says `${NAME}`. Without `to_run`, for judging stored
    traces, its systems are not built and its dataset may be missing. `options` are those of the suite's format.
    Raises InputError with every problem.
    """
    from evalwright import registry
    from evalwright.files.collector import collector_paused

    takes_folders = dialect is not None and getattr(registry.load("dialects", dialect), "reads_folders", False)
    is_file = os.path.isfile(path)  # noqa: PTH113 - Path.is_file raises for a name too long
    if not is_file and not (takes_folders and os.path.isdir(path)):  # noqa: PTH112
        what = "is a folder, expected a file" if os.path.isdir(path) else "does not exist"  # noqa: PTH112
        raise InputError(Problem(str(path), what))
    with collector_paused():
        name = dialect or _detected(path)
        reader = registry.load("dialects", name)()
        given = _understood(name, getattr(reader, "options", ()), options or {})
        suite: Suite = reader.load(path, variables or {}, to_run=to_run, **given)
    return suite


def _understood(dialect: str, known: Collection[str], options: Mapping[str, Any]) -> dict[str, Any]:
    """Those that were given. Whether one of `_FOR_ALL` is read with the suite is the format's."""
    given = {name: value for name, value in options.items() if value not in (None, False, ())}
    foreign = [name for name in given if name not in known and name not in _FOR_ALL]
    if foreign:
        named = ", ".join("--" + name.replace("_", "-") for name in foreign)
        raise InputError(f"{named}: not an option of the format {dialect}")
    return {name: value for name, value in given.items() if name in known}


def fitting(path: Path) -> list[str]:
    """The dialects that a file's keys show."""
    from evalwright import registry
    from evalwright.formats.detection import DETECTORS

    head = _head(path)

    def fits(name: str) -> bool:
        detects = DETECTORS.get(name) or registry.load("dialects", name)().detects
        return bool(detects(path, head))

    return list(filter(fits, registry.names("dialects")))


def _detected(path: Path) -> str:
    from evalwright import registry

    found = fitting(path)
    if len(found) == 1:
        return found[0]
    if not found and path.suffix == ".json":
        _must_be_json(path)
    if not found and path.suffix == ".yaml":
        _must_be_no_sidecar(path)
    said = f"fits several formats ({', '.join(found)})" if found else "fits no known format"
    raise InputError(Problem(str(path), f"{said}: name one with --dialect, of {', '.join(registry.names('dialects'))}"))


def _must_be_json(path: Path) -> None:
    import json

    try:
        json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(Problem(str(path), f"broken JSON: {error}", getattr(error, "lineno", None))) from error


def _must_be_no_sidecar(path: Path) -> None:
    from evalwright.formats.agentv.file import lines_beside

    if (lines := lines_beside(path)) is not None:
        raise InputError(Problem(str(path), f"belongs to the cases in {lines.name}: name that file instead"))


def _head(path: Path) -> Mapping[str, Any]:
    """The top-level mapping of a YAML or JSON file, empty for anything else."""
    from evalwright.files import yaml

    if path.suffix not in (".yaml", ".yml", ".json"):
        return {}
    try:
        value = yaml.load(path, "native").value if path.suffix == ".json" else yaml.top_level(path)
    except InputError:
        # a file with mistakes is still the file that its name says: its dialect tells them
        return {"eval": {}} if path.suffix in (".yaml", ".yml") else {}
    if value is None:
        return {"eval": {}}
    return value if isinstance(value, dict) else {}
