"""The runs that the words of a command line name: paths, and globs of folders and of runs in databases."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from fnmatch import fnmatchcase
from glob import glob, has_magic
from pathlib import Path
from typing import Any

from evalwright.errors import AllMistakes, InputError
from evalwright.run.locations import NOTE, Place, find_run, is_on_a_server, run_places
from evalwright.stores.local_files import is_run

__all__ = ["named_runs", "runs_matching"]

_SQLITE = b"SQLite format 3\0"


def runs_matching(text: str, **store: Any) -> list[Path]:
    """The path of a run, or the paths of all runs that a glob matches: folders, `FILE.sqlite/*`, `postgres:SCHEMA/*`.

    `store` is passed to `find_run`. Raises InputError for a glob that matches no run, and for a folder that is none but
    has some in it.
    """
    if not has_magic(text) or os.path.lexists(text):
        if Path(text).is_dir() and not _leads_to_run(Path(text)) and (below := _runs_below(text)):
            raise InputError(f"{Path(text)} is not a run folder{below}")
        return [Path(text)]
    above, _, pattern = text.rpartition("/")
    if is_on_a_server(above) or Path(above).is_file():
        matching = [path for path in run_places(Path(above), **store) if fnmatchcase(path.name, pattern)]
    else:
        matching = _runs_at(text)
    if not matching:
        raise InputError(f"{text} matches no run{_runs_below(text)}")
    return matching


def named_runs(texts: Iterable[str], **store: Any) -> list[Place]:
    """Where the runs are that each text names or matches; `store` is passed to `find_run`. Raises InputError for all
    texts that lead to none."""
    places, mistakes = list[Place](), AllMistakes()
    for text in texts:
        with mistakes:
            places += [find_run(path, **store) for path in runs_matching(text, **store)]
    mistakes.refuse()
    return places


def _runs_at(pattern: str) -> list[Path]:
    return [path for path in map(Path, sorted(glob(pattern))) if _leads_to_run(path)]  # noqa: PTH207


def _runs_below(text: str) -> str:
    """A hint at the runs that were probably meant: `--out DIR/$TASK` puts them a folder deeper than `--out DIR`."""
    patterns = (os.path.join(text, more) for more in ("*", "*/*"))  # noqa: PTH118
    return next((f", but '{pattern}' matches some" for pattern in patterns if _runs_at(pattern)), "")


def _leads_to_run(path: Path) -> bool:
    """Whether a path matched by a glob is a run; logs and other folders may be beside runs."""
    if path.is_dir():
        return is_run(path) or (path / NOTE).is_file()
    if not os.path.isfile(path):  # a link may lead nowhere, and a pipe would keep us waiting
        return False
    with suppress(OSError), path.open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE
    return False
