"""Skills that are put into the workspace of one call, and taken out of it afterwards: they are no work of the agent."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["installed", "skill_name"]

_LEFT_OUT = ("evals", ".git")
"""What of a skill's folder is not copied: the answers must not lie beside the task."""
_NAME = re.compile(r"^name:[ \t]*[\"']?([^\"'\n#]+?)[\"']?[ \t]*(?:#.*)?$", re.M)
_FRONT = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*\r?$", re.S | re.M)


def skill_name(folder: Path) -> str:
    """The `name` in the front matter of its SKILL.md, else the folder's."""
    with suppress(OSError):
        front = _FRONT.match((folder / "SKILL.md").read_text(encoding="utf-8-sig", errors="replace"))
        named = _NAME.search(front[1].replace("\r", "")) if front else None
        if named:
            return named[1].strip()
    return folder.resolve().name


@contextmanager
def installed(skills: Sequence[tuple[str, Path]], workspace: Path, place: str) -> Iterator[None]:
    """Copies of the skills, by their names, below `place` in a workspace, for the time of a block. Raises OSError.

    What the agent puts beside them stays.
    """
    made: list[Path] = []
    try:
        for name, skill in skills:
            _install(skill, workspace / place / _safe(name), made)
        yield
    finally:
        for path in reversed(made):
            with suppress(OSError):
                if path.is_dir() and not path.is_symlink():
                    path.rmdir()
                else:
                    path.unlink()
        _prune(workspace, place)


def _safe(name: str) -> str:
    """A name as that of one folder."""
    return re.sub(r"[/\0]", "-", name).strip(".") or "skill"


def _install(skill: Path, target: Path, made: list[Path]) -> None:
    target.mkdir(parents=True)
    made.append(target)
    for folder, inner, files in os.walk(skill):
        below = Path(folder).relative_to(skill)
        if below == Path():
            inner[:] = [name for name in inner if name not in _LEFT_OUT]
        inner[:] = [name for name in inner if not _has_runs(Path(folder, name))]
        for name in inner:
            (target / below / name).mkdir()
            made.append(target / below / name)
        for name in files:
            made.append(target / below / name)
            shutil.copy(Path(folder, name), target / below / name)


def _has_runs(folder: Path) -> bool:
    """Whether evalwright keeps runs there, which hold answers and what was expected."""
    return (folder / "plan.json").is_file() or any(folder.glob("*/plan.json"))


def _prune(workspace: Path, place: str) -> None:
    """Remove the folders of `place` that are empty now."""
    folder = workspace / place
    while folder != workspace:
        with suppress(OSError):
            folder.rmdir()
        folder = folder.parent
