"""From a user's file to a suite: finds its format, and reads it in that format."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from evalwright.errors import InputError, Problem
from evalwright.files.paths import near_file
from evalwright.model.format import Format
from evalwright.registry import NATIVE, format_of, formats, names, resolve
from evalwright.session import hide, looking

if TYPE_CHECKING:
    from evalwright.model.suite import Suite

__all__ = ["OPTIONS_OF_ALL", "fitting", "format_at", "load_suite", "suite_beside"]

OPTIONS_OF_ALL = ("allow_empty", "target", "trials")
"""Options that every format takes."""
_TABLES = (".csv", ".tsv", ".jsonl", ".parquet", ".xlsx")
_ROWS = "rows are cases if a suite names them: `dataset: {path: ..., map: ...}`"


def load_suite(
    path: Path,
    dialect: str | None = None,
    variables: Mapping[str, str] | None = None,
    *,
    to_run: bool = True,
    options: Mapping[str, Any] | None = None,
) -> Suite:
    """The suite in a file, in the given format or the one detected from its keys.

    `variables` take precedence over the environment for `${NAME}` in the file. Without `to_run`, for judging stored
    traces, its systems are not built and its dataset may be missing. `options` are those of the suite's format. Raises
    InputError with every problem.
    """
    from evalwright.files.bulk import collector_paused

    with collector_paused(), looking():
        suite_format = format_at(path, dialect)
        settings = _understood(suite_format, options or {})
        if dialect is not None and dialect == suite_format.original:
            settings["original"] = True
        try:
            suite: Suite = resolve(suite_format.load)(path, variables or {}, to_run=to_run, **settings)
        except InputError as error:
            problems = _with_lines(error.problems)
            if dialect is not None and (other := _format_of_its_keys(path, suite_format)) is not None:
                message = (
                    f"is read as {suite_format.name}, and has the keys of {other.title}: pass --format {other.name}"
                )
                problems = [*(problems or error.listed), Problem(str(path), message)]
            if problems == list(error.problems):
                raise
            raise InputError(problems, error.headline) from error
    if suite.warnings:
        suite.warnings = _with_lines(suite.warnings)
    hide(suite.secrets)
    if dialect == NATIVE:
        suite.empty = "run"  # a rule of the original, for users who name it
    return suite


def _with_lines(problems: Iterable[Problem]) -> list[Problem]:
    """Problems with their lines, also if their format reads JSON without keeping any."""
    from evalwright.files.strict_json import with_json_lines

    return [*with_json_lines(problems)]


def _format_of_its_keys(path: Path, current: Format) -> Format | None:
    """The only format whose keys a file has, if it has none of the given one's."""
    head = _head(path)
    fit = fitting(path, head) if head else []
    return fit[0] if len(fit) == 1 and fit[0] is not current and _has_keys(fit[0], head) else None


def _understood(suite_format: Format, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given. Whether one of `OPTIONS_OF_ALL` is read with the suite depends on the format."""
    known = {option.keyword for option in suite_format.options}
    settings = {
        name: value for name, value in options.items() if value is not None and value is not False and value != ()
    }
    foreign = [name for name in settings if name not in known and name not in OPTIONS_OF_ALL]
    if foreign:
        named = ", ".join("--" + name.replace("_", "-") for name in foreign)
        raise InputError(f"{named}: not an option of the format {suite_format.name}")
    return {name: value for name, value in settings.items() if name in known}


_MOST_KEYS = 10
_ALIKE = 0.75
"""The share of its letters that a misspelt key has in common with the right one, at least."""
_UNREAD: Mapping[str, Any] = MappingProxyType({})
"""For YAML with mistakes, or without content. Its name may reveal the format; otherwise the native format, the most
common one, reports what is wrong."""


def fitting(path: Path, head: Mapping[str, Any] | None = None) -> list[Format]:
    """The formats that match a file's suffix and keys; `head` is its top-level mapping, if already known."""
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        return []  # a pipe keeps its reader waiting for ever
    if head is None:
        head = _head(path)
    suffix = path.suffix.lower()
    candidates = (
        suite_format for suite_format in formats() if not suite_format.suffixes or suffix in suite_format.suffixes
    )
    fitting_formats = [suite_format for suite_format in candidates if _fits(suite_format, path, head)]
    return [format_of(NATIVE)] if head is _UNREAD and not fitting_formats else fitting_formats


def _fits(suite_format: Format, path: Path, head: Mapping[str, Any]) -> bool:
    if not head.keys().isdisjoint(suite_format.excluded_by):
        return False
    if path.name in suite_format.names or _has_keys(suite_format, head):
        return True
    return suite_format.detects is not None and bool(resolve(suite_format.detects)(path, head))


def _has_keys(suite_format: Format, head: Mapping[str, Any]) -> bool:
    return any(keys <= head.keys() for keys in suite_format.keys)


def format_at(path: Path, dialect: str | None = None) -> Format:
    """The format in which a path is read: the given one, or the only one that matches. Raises InputError."""
    chosen = None if dialect is None else format_of(dialect)
    is_file = os.path.isfile(path)
    if not is_file and not (chosen is not None and chosen.reads_folders and os.path.isdir(path)):
        raise InputError(Problem(str(path), _instead_of_a_file(path)))
    return chosen or _detected_format(path)


def _instead_of_a_file(path: Path) -> str:
    if os.path.isdir(path):
        return "is a folder, expected a file"
    return "is not a regular file" if os.path.exists(path) else f"does not exist{near_file(path)}"


def _detected_format(path: Path) -> Format:
    head = _head(path)
    fitting_formats = fitting(path, head)
    if len(fitting_formats) == 1 and _has_keys(fitting_formats[0], head):
        return fitting_formats[0]
    # before formats that need only one word: files of other programs also have `tests`
    from evalwright.formats.shared.foreign import foreign_format

    foreign = foreign_format(path, head)
    if foreign and foreign.lower() not in names("formats"):
        message = (
            f"is a file of {foreign}, which evalwright does not read; `evalwright list formats` has those that it reads"
        )
        raise InputError(Problem(str(path), message))
    if len(fitting_formats) == 1:
        return fitting_formats[0]
    if not fitting_formats and path.suffix == ".json":
        _must_be_json(path)
    if not fitting_formats and path.suffix == ".jsonl":
        _must_begin_with_json(path)
    if not fitting_formats and (suite := suite_beside(path)) is not None:
        raise InputError(Problem(str(path), f"belongs to the cases in {suite.name}: name that file instead"))
    if not fitting_formats and (recorded := _import_format(path)) is not None:
        command = f"evalwright import {shlex.quote(str(path))}"
        raise InputError(Problem(str(path), f"is no suite, but can be imported as one ({recorded}): {command}"))
    message = (
        f"fits several formats ({', '.join(suite_format.name for suite_format in fitting_formats)})"
        if fitting_formats
        else _unrecognised_message(path, head)
    )
    raise InputError(Problem(str(path), f"{message}; pass --format ({', '.join(names('formats'))})"))


def _import_format(path: Path) -> str | None:
    """The format of recordings, results or cases of other tools from which `import` would make a suite."""
    from evalwright.importers.detection import detected
    from evalwright.importers.file_heads import head_of

    try:
        name = detected(head_of(path))
    except InputError:
        return None
    return None if name == "openai-messages" else name  # which may be records of NorthStar with a misspelt key


def _unrecognised_message(path: Path, head: Mapping[str, Any]) -> str:
    """The message for an unrecognised file, with what may be meant: a key, or a suite instead of its dataset or
    code."""
    if head and head.keys() != {"cases"}:
        every = [(keys, suite_format.name) for suite_format in formats() for keys in suite_format.keys]
        likely = [(keys, name) for keys, name in every if not keys.isdisjoint(head)] or every
        marks = ", ".join(f"{' and '.join(sorted(keys))} ({name})" for keys, name in likely)
        found = ", ".join(_hints([*map(str, head)][:_MOST_KEYS], frozenset().union(*(keys for keys, _ in likely))))
        return f"format not recognised: it has {found}; suites have {marks}"
    if path.suffix in (".yaml", ".yml", ".json") and not head:
        rows = f"; {_ROWS}" if path.suffix == ".json" else ""
        return f"format not recognised: it has no keys of a suite, and no records with id, messages and expected{rows}"
    beside = [file.name for file in sorted(path.parent.glob("*.y*ml")) if file != path and fitting(file)]
    suite = "`evalwright init` makes a suite to start from"
    if beside:
        suite = f"name the suite: {' or '.join(beside[:3])}"
    elif path.suffix == ".jsonl" and not head:
        suite = "`evalwright import` makes one of recorded conversations"
    if not beside and path.suffix in _TABLES:
        suite += f"; {_ROWS}"
    what = "a dataset" if head else "a module" if path.suffix == ".py" else "this"
    return f"format not recognised: {what} is not a suite; {suite}"


def _hints(keys: list[str], marks: frozenset[str]) -> list[str]:
    """The keys of a file that are nearly spelt like keys that identify a format, each with those keys."""
    from difflib import get_close_matches

    absent = sorted(marks.difference(keys))
    near = {key: get_close_matches(key.lower(), absent, 1, _ALIKE) for key in keys if key not in marks}
    return [f'{key} (did you mean "{near_keys[0]}"?)' if (near_keys := near.get(key)) else key for key in keys]


def suite_beside(path: Path) -> Path | None:
    """The suite that a file merely completes."""
    places = (
        resolve(suite_format.sidecar_of)(path) for suite_format in formats() if suite_format.sidecar_of is not None
    )
    return next((place for place in places if place is not None), None)


def _must_begin_with_json(path: Path) -> None:
    """Raise InputError if the first line of JSON Lines, by which their format is recognised, cannot be read."""
    from evalwright.files.jsonl import advice_on, decoded, lines_of

    for number, line in lines_of(path):
        try:
            decoded(line)
        except ValueError as error:
            raise InputError(Problem(str(path), f"broken JSON: {error}{advice_on(line)}", number)) from error
        return


def _must_be_json(path: Path) -> None:
    import json

    from evalwright.files.key_paths import bracketed
    from evalwright.files.strict_json import repeated_json_keys

    try:
        data = path.read_bytes()
        json.loads(data)
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(Problem(str(path), f"broken JSON: {error}", getattr(error, "lineno", None))) from error
    repeated = [
        Problem(str(path), f"the key {place[-1]!r} occurs more than once in one object", line, bracketed(place))
        for place, line in repeated_json_keys(data)
    ]
    if repeated:  # read as YAML, whose rules are stricter, it has no keys at all
        raise InputError(repeated)


def _head(path: Path) -> Mapping[str, Any]:
    """The top-level mapping of a YAML or JSON file; empty for anything else."""
    from evalwright.files import yaml

    if path.suffix not in (".yaml", ".yml", ".json"):
        return {}
    try:
        value = _json_value(path) if path.suffix == ".json" else yaml.top_level(path)
    except InputError:
        return _UNREAD if path.suffix in (".yaml", ".yml") else {}
    if value is None:
        return _UNREAD
    return value if isinstance(value, dict) else {}


def _json_value(path: Path) -> Any:
    """The value of a JSON file, nothing if a key is repeated. Raises InputError.

    Only what is no JSON is read as YAML, of which JSON is a part: that takes ten times the time and the memory.
    """
    import json

    from evalwright.files import yaml
    from evalwright.files.jsonl import repeated_keys

    try:
        data = path.read_bytes()
        return {} if repeated_keys(data) else json.loads(data)
    except (OSError, ValueError, RecursionError):
        return yaml.load(path).value
