"""A bundle on disk: a folder or a zip file, which a later bundle replaces as a whole, and nothing else ever."""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from evalwright.errors import InputError, Problem, counted

__all__ = ["MARKER", "write_bundle"]

MARKER = ".evalwright-bundle"
"""A folder with this file is ours to replace, if it holds nothing but what the file lists."""
_TITLE = "evalwright bundle 2"
_OF_DESKTOPS = frozenset({".DS_Store", "Thumbs.db", "desktop.ini"})
"""Files that desktops leave in a folder that was looked at."""
_MOMENT = (1980, 1, 1, 0, 0, 0)
"""The date of every file in a zip, so that the same run gives the same bytes."""


def write_bundle(files: Iterable[tuple[str, bytes]], out: Path) -> None:
    """Write files, each with its path in the bundle, to a new folder or zip file, which then takes the place of `out`.

    Raises OSError, and InputError for a folder or file that is something else, or holds anything else.
    """
    out = Path(os.path.realpath(out))  # not the link that leads there
    if out.suffix == ".zip":
        _write_zip(files, out)
        return
    _must_be_ours(out)
    draft, before = (out.with_name(f".{out.name}.evalwright-{kind}") for kind in ("new", "old"))
    _put_back(before, out)  # a process may have died between the two renames below
    for left in (draft, before):
        shutil.rmtree(left, ignore_errors=True)
    try:
        draft.mkdir(parents=True)
        for path, content in _with_marker(files):
            place = draft / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        if out.exists():
            out.rename(before)  # at once, because half a bundle is none any more, and would not be replaced
        draft.rename(out)
    finally:
        _put_back(before, out)
        for left in (draft, before):
            shutil.rmtree(left, ignore_errors=True)


def _with_marker(files: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
    """The files of a bundle, and the list of them, by which other files in its folder are recognised."""
    names = []
    for path, content in files:
        names.append(path)
        yield path, content
    yield MARKER, "".join(f"{line}\n" for line in (_TITLE, *sorted(names))).encode("utf-8", "surrogateescape")


def _must_be_ours(out: Path) -> None:
    """Raises InputError unless it is a bundle and nothing else, an empty folder, or not there."""
    if not os.path.lexists(out):
        return
    try:
        title, *names = (out / MARKER).read_bytes().decode("utf-8", "surrogateescape").split("\n")
    except (OSError, ValueError):
        title, names = "", []
    if title != _TITLE and (not out.is_dir() or any(out.iterdir())):
        raise InputError(Problem(str(out), "already exists and is not a bundle: choose another folder"))
    others = sorted(_files_below(out).difference(names, [MARKER]))
    if others:
        more = f" and {counted(len(others) - 1, 'other file')}" if others[1:] else ""
        raise InputError(Problem(str(out), f"holds {others[0]!r}{more}, not of the bundle: choose another folder"))


def _files_below(folder: Path) -> set[str]:
    """Paths of files and links below a folder, without those of desktops."""
    names = set[str]()
    for place, folders, files in os.walk(folder):
        links = [name for name in folders if os.path.islink(f"{place}/{name}")]  # noqa: PTH114
        kept = (name for name in (*files, *links) if name not in _OF_DESKTOPS)
        names.update(os.path.relpath(f"{place}/{name}", folder) for name in kept)
    return names


def _put_back(before: Path, out: Path) -> None:
    """Give a bundle its name again if there is no other one."""
    if before.exists() and not out.exists():
        before.rename(out)


def _write_zip(files: Iterable[tuple[str, bytes]], out: Path) -> None:
    if out.exists() and not _is_packed_bundle(out):
        raise InputError(Problem(str(out), "already exists and is not a bundle: choose another file"))
    draft = out.with_name(f".{out.name}.new")
    out.parent.mkdir(parents=True, exist_ok=True)
    try:
        with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as packed:
            for path, content in _with_marker(files):
                packed.writestr(zipfile.ZipInfo(path, _MOMENT), content, zipfile.ZIP_DEFLATED)
        draft.replace(out)
    finally:
        draft.unlink(missing_ok=True)


def _is_packed_bundle(file: Path) -> bool:
    try:
        with zipfile.ZipFile(file) as packed:
            return MARKER in packed.namelist()
    except (OSError, ValueError, zipfile.BadZipFile):
        return False
