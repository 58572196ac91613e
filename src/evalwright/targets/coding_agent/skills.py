"""Skills that are put into the workspace for one call and removed afterwards: they are not work of the agent."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from evalwright.errors import TargetError

__all__ = ["installed", "left_out", "skill_name"]

_LEFT_OUT = ("evals", ".git")
"""Parts of a skill's folder that are not copied: the answers must not lie beside the task."""
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


@asynccontextmanager
async def installed(skills: Sequence[tuple[str, Path]], workspace: Path, place: str) -> AsyncIterator[None]:
    """Copies of the skills, by name, below `place` in a workspace, for the duration of a block. Raises TargetError.

    What the agent puts beside them stays.
    """
    folders: list[Path] = []
    copying = asyncio.get_running_loop().run_in_executor(None, _install_all, skills, workspace / place, folders)
    try:
        try:
            await asyncio.shield(copying)
        except OSError as error:
            raise TargetError(f"the skill cannot be copied: {error.strerror or error}", "workspace_error") from None
        yield
    finally:
        while not copying.done():  # its thread goes on, however often the call is cancelled
            with suppress(asyncio.CancelledError):
                await asyncio.wait([copying])
        _remove(folders)
        _prune(workspace, place)


def _install_all(skills: Sequence[tuple[str, Path]], place: Path, folders: list[Path]) -> None:
    for name, skill in skills:
        _install(skill, place / _safe(name), folders)


def _remove(folders: Sequence[Path]) -> None:
    for path in reversed(folders):
        with suppress(OSError):
            if path.is_dir() and not path.is_symlink():
                path.rmdir()
            else:
                path.unlink()


def _safe(name: str) -> str:
    """A name that is safe as the name of a single folder."""
    return re.sub(r"[/\0]", "-", name).strip(".") or "skill"


def _install(skill: Path, target: Path, folders: list[Path]) -> None:
    target.mkdir(parents=True)
    folders.append(target)
    for inner, source, _ in _parts(skill):
        copy = target / inner
        if source is None:
            continue
        folders.append(copy)
        if source.is_dir():
            copy.mkdir()
        else:
            shutil.copy(source, copy)


def left_out(skill: Path) -> list[str]:
    """The links of a skill that its copy lacks, each with its target and the reason. Raises OSError."""
    links = [(inner, why) for inner, source, why in _parts(skill) if source is None]
    return [f"{inner} -> {(skill / inner).readlink()} ({why})" for inner, why in links]


_Part = tuple[Path, Path | None, str]
"""A path below a skill, the folder or file that is copied to it, and, if there is none, the reason."""


def _parts(skill: Path) -> Iterator[_Part]:
    """The parts of a skill's copy, folders before their contents; links are replaced by what they lead to."""
    root = skill.resolve()
    return _parts_below(root, Path(), root, [root])


def _parts_below(root: Path, below: Path, folder: Path, within: Sequence[Path]) -> Iterator[_Part]:
    """`folder` is copied to the path `below`; `within` is that folder and those around it, with links resolved."""
    with os.scandir(folder) as entries:
        by_name = sorted(entries, key=lambda entry: entry.name)
    for entry in by_name:
        inner, source = below / entry.name, Path(entry.path)
        if entry.is_symlink():
            source = Path(os.path.realpath(source))
            if why := _why_not(root, source, within):
                yield inner, None, why
                continue
        elif _is_hidden(root, source):
            continue
        yield inner, source, ""
        if source.is_dir():
            yield from _parts_below(root, inner, source, [*within, source])


def _why_not(root: Path, target: Path, within: Sequence[Path]) -> str:
    """Why the target of a link is not copied; empty if it is."""
    if not target.is_relative_to(root):
        return "leads out of the skill"
    if not (target.is_dir() or target.is_file()):
        return "leads to nothing"
    if target in within:
        return "leads to a folder that it is in"
    hidden = any(
        _is_hidden(root, part) for part in (target, *target.parents) if part.is_relative_to(root) and part != root
    )
    return "leads to what agents must not see" if hidden else ""


def _is_hidden(root: Path, path: Path) -> bool:
    return (path.parent == root and path.name in _LEFT_OUT) or (path.is_dir() and _has_runs(path))


def _has_runs(folder: Path) -> bool:
    """Whether evalwright keeps runs there, which contain answers and expectations."""
    return (folder / "plan.json").is_file() or any(folder.glob("*/plan.json"))


def _prune(workspace: Path, place: str) -> None:
    """Remove the folders of `place` that are now empty."""
    folder = workspace / place
    while folder != workspace:
        with suppress(OSError):
            folder.rmdir()
        folder = folder.parent
