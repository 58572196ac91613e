"""Assertions in files of their own: `include: NAME` in a list of assertions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evalwright.errors import InputError
from evalwright.files import yaml
from evalwright.files.boundary import OutsideError
from evalwright.files.key_paths import as_written
from evalwright.formats.agentv.message_files import Files
from evalwright.formats.agentv.notes import Notes
from evalwright.formats.agentv.shorthands import Environment

__all__ = ["with_templates"]

_DEEPEST = 3
"""How deep files may include others, as in AgentV 4."""


def with_templates(
    raw: list[Any], place: str, files: Files, put: Environment | None, report: Notes, above: tuple[Path, ...] = ()
) -> Iterator[tuple[Any, str]]:
    """Each assertion with its place; those of an included file take the place of the `include`.

    A name means `.agentv/templates/NAME.yaml`, anything else is a path. Variables are put into what is included, if
    they are into the suite. `above` are the files that lead here.
    """
    for i, item in enumerate(raw):
        at = f"{place}[{i}]"
        if not isinstance(item, dict) or "include" not in item or "type" in item:
            yield item, at
            continue
        if more := [str(key) for key in item if key != "include"]:
            report(at, f"include: expected no other key beside it, found {', '.join(more)}")
            continue
        path = _included_file(item["include"], f"{at}.include", files, report, above)
        if path is None:
            continue
        listed = _assertions(path, f"{at}.include", report)
        if listed is not None:
            filled = listed if put is None else put.put_into(listed)
            yield from with_templates(filled, f"{at}.assertions", files, put, report, (*above, path))


def _included_file(name: Any, place: str, files: Files, report: Notes, above: tuple[Path, ...]) -> Path | None:
    """The file that is meant; None, after a message, for one that cannot be used."""
    if not isinstance(name, str) or not name:
        report(place, f"include: expected a name or a path, found {as_written(name)}")
        return None
    plain = not name.startswith(".") and "/" not in name and "\\" not in name
    candidates = [f".agentv/templates/{name}{suffix}" for suffix in (".yaml", ".yml")] if plain else [name]
    beside = [] if plain or not above else [str(above[-1].parent / name)]
    try:
        path = next((path for candidate in beside + candidates if (path := files.find(candidate)) is not None), None)
    except OutsideError as error:
        report(place, str(error))
        return None
    if path is None:
        tried = ", ".join(str(path) for candidate in candidates for path in files.tried(candidate))
        report(place, f"include: there is no file of assertions {name!r} (tried: {tried})")
        return None
    if path in above:
        report(place, f"include: {path} includes itself")
        return None
    if len(above) == _DEEPEST:
        report(place, f"include: files are included at most {_DEEPEST} deep")
        return None
    return path


def _assertions(path: Path, place: str, report: Notes) -> list[Any] | None:
    try:
        document = yaml.load(path, "yaml12").value
    except InputError as error:
        report(place, str(error.listed[0]))
        return None
    listed = document.get("assertions") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        report(place, f"{path}: expected a mapping with a list 'assertions'")
        return None
    return listed
