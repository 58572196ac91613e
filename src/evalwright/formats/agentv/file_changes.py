"""What a system changed in its workspace, as judges see it: a unified diff."""

from __future__ import annotations

import filecmp
import os
from collections.abc import Iterator
from pathlib import Path

from evalwright.workspaces.diffs import text_to_show, unified

__all__ = ["changes_between"]

_MOST = 2**20
"""Maximum length of a whole diff, in characters."""
_LEFT_OUT = (".git",)


def changes_between(before: Path, after: Path) -> str:
    """The diff of two folders: files that differ, ordered by path; `.git` and links are left out."""
    old, new = set(_files(before)), set(_files(after))
    parts: list[str] = []
    room = _MOST
    for path in sorted(old | new):
        if path in old and path in new and filecmp.cmp(before / path, after / path, shallow=False):
            continue
        shown = _change(path, before / path if path in old else None, after / path if path in new else None)
        room -= len(shown)
        if room < 0:
            parts.append(f"... the diff is longer than {_MOST:,} characters, and ends here\n")
            break
        parts.append(shown)
    return "".join(parts)


def _files(folder: Path) -> Iterator[str]:
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _LEFT_OUT]
        for name in names:
            path = Path(place, name)
            if path.is_file() and not path.is_symlink():
                yield path.relative_to(folder).as_posix()


def _change(path: str, old: Path | None, new: Path | None) -> str:
    """The change of a file as git shows it."""
    texts = [None if file is None else text_to_show(file) for file in (old, new)]
    head = f"diff --git a/{path} b/{path}\n"
    head += "new file\n" if old is None else "deleted file\n" if new is None else ""
    if any(file is not None and text is None for file, text in zip((old, new), texts, strict=True)):
        return f"{head}Binary files differ\n"
    lines = unified(path, texts[0] or "", texts[1] or "")
    if old is None:
        lines = lines.replace(f"--- a/{path}\n", "--- /dev/null\n", 1)
    if new is None:
        lines = lines.replace(f"+++ b/{path}\n", "+++ /dev/null\n", 1)
    return head + lines
