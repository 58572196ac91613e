"""Paths written in files, and names that are safe for folders."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evalwright.errors import InputError, Problem

__all__ = [
    "also_here",
    "import_folders",
    "is_there",
    "named_in",
    "near_file",
    "numbered",
    "path_in",
    "safe_id",
    "seen_from_here",
    "unreadable",
]


def named_in(file: Path, name: str) -> Path:
    """The path `name` inside `file`: relative to the file's folder if it exists there, else to the working
    directory. That of a file that exists is absolute if `file` is."""
    path, beside = _both(file, name)
    if os.path.exists(beside) and not _is_same_file(path, beside):
        return beside
    return path.absolute() if name and file.is_absolute() and os.path.exists(path) else path


def is_there(path: Path) -> bool:
    """As `Path.exists`, which from Python 3.14 on raises no OSError for a name too long for any file, or a folder that
    may not be searched."""
    try:
        return bool(path.stat())
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            raise
        return False


def path_in(config: Mapping[str, Any], what: str) -> Path:
    """The path of `what` in a configuration. Raises InputError if it is none that a file system takes."""
    path = config.get("path")
    if not isinstance(path, str) or "\0" in path:
        raise InputError(Problem("", f"expected the path of a {what}", None, "path"))
    return Path(path)


def also_here(file: Path, name: str) -> str:
    """A note that the working directory has another file with the name that `named_in` found; "" if it has none."""
    path, beside = _both(file, name)
    if not (os.path.exists(beside) and os.path.exists(path)) or _is_same_file(path, beside):
        return ""
    return f"{name!r} is {beside}, in the folder of the suite; the one in the working directory is not used: {path}"


_NEAR = 0.75
"""Half of the letters of two short names match by chance."""


def near_file(path: Path) -> str:
    """`; did you mean "x"?` for a missing file: the nearest name in its folder, or what else may be wrong."""
    from difflib import get_close_matches  # only after a mistake: every command loads this module

    if os.path.lexists(path):
        return "; it is not a regular file" if os.path.exists(path) else "; it is a broken link"
    if "\\" in path.name:
        return "; write / between folders, which all systems understand"
    try:
        names = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        return f"; there is no folder {str(path.parent)!r}"
    stems = {Path(name).stem: name for name in sorted(names, key=lambda name: Path(name).suffix == path.suffix)}
    near = get_close_matches(path.stem, stems, n=1, cutoff=_NEAR)
    return f'; did you mean "{stems[near[0]]}"?' if near else ""


def unreadable(path: Path, error: Exception) -> str:
    """`cannot be read: ...`; for a missing file `does not exist`, with the nearest name."""
    if isinstance(error, FileNotFoundError):
        return f"does not exist{near_file(path)}"
    return f"cannot be read: {(error.strerror if isinstance(error, OSError) else None) or error}"


def import_folders(suite: Path) -> list[str]:
    """Where the modules that a suite's file names are searched for: in its folder, then in the working directory."""
    return list(dict.fromkeys([str(suite.resolve().parent), str(Path.cwd())]))


def _both(file: Path, name: str) -> tuple[Path, Path]:
    path = Path(os.path.expanduser(name))
    return path, file.parent / path if name else path


def _is_same_file(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:
        return False


def seen_from_here(path: Path) -> Path:
    """The path relative to the working directory, if it is below that; unchanged if that is gone."""
    try:
        here = Path.cwd()
    except FileNotFoundError:
        return path
    return path.relative_to(here) if path.is_relative_to(here) else path


_UNSAFE = re.compile(r"[^\w.-]+")
_UNSAFE_IN_ASCII = re.compile(r"[^\w.-]+", re.ASCII)
_LONGEST = 120
"""Bytes of an id at most: file systems allow 255 in a name, and `-2` or a suffix may follow."""


def safe_id(run_id: str) -> str:
    """The id as a folder name: letters, digits, `.`, `_` and `-`, without `.` or `-` at the start; at most 120 bytes.

    Letters are those of any script, or of ASCII alone where the file system's encoding has no others.
    """
    name = run_id if run_id.isascii() else _with_letters(run_id)
    safe = _UNSAFE_IN_ASCII.sub("-", name) if name.isascii() else name
    return safe.lstrip(".-").encode()[:_LONGEST].decode(errors="ignore").rstrip("-") or "run"


def _with_letters(run_id: str) -> str:
    import unicodedata  # few names need it

    def instead(match: re.Match[str]) -> str:
        is_mark = all(unicodedata.category(character).startswith("M") for character in match[0])
        return match[0] if is_mark else "-"  # a mark is a part of the letter before it

    name = _UNSAFE.sub(instead, unicodedata.normalize("NFC", run_id))
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        return _UNSAFE_IN_ASCII.sub("-", run_id)
    return name


def numbered(run_id: str) -> Iterator[str]:
    """The id itself, then the id with `-2`, `-3` and so on."""
    yield run_id
    number = 2
    while True:
        yield f"{run_id}-{number}"
        number += 1
