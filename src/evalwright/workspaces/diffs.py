"""The changes between two copies of a folder."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from pathlib import Path

from evalwright.model.artifact import Changes, FilesystemDiff
from evalwright.workspaces.trees import Tree

__all__ = ["TOLD_IN_FULL", "covered", "difference", "removals", "text_to_show", "unified"]

_TEXT = 256 * 2**10
"""Maximum size of a file whose changes are shown line by line, in bytes."""
_HEAD = 4 * 2**10
"""A NUL among the first bytes, up to this number, means that a file is not text."""
_MOST_SHOWN = 16 * 2**20
"""Characters of all diffs of a cell."""
_MOST_MATCHES = 10**6
"""Pairs of equal lines up to which two files are compared line by line; beyond that, difflib could take minutes."""
_NO_LINE_END = "\n\\ No newline at end of file\n"

TOLD_IN_FULL = "/diff.txt"
"""The key in `left_out` which says that not all diffs were kept; no file's path begins with a slash."""


def difference(before: Tree, after: Tree, old: Path, new: Path) -> Changes:
    """The changes from one tree to another, with diffs of the texts in their copies `old` and `new`.

    Files that were left out on one side are in no list.
    """
    a, b = before.manifest.files, after.manifest.files
    left_out = {**before.left_out, **after.left_out}
    removed = sorted(path for path in a.keys() - b.keys() if not covered(path, after.left_out))
    added = sorted(path for path in b.keys() - a.keys() if not covered(path, before.left_out))
    modified = sorted(path for path in a.keys() & b.keys() if a[path].sha256 != b[path].sha256)
    diffs: dict[str, str] = {}
    room = _MOST_SHOWN
    for path in sorted([*added, *modified]):
        if max(b[path].size, a[path].size if path in a else 0) > _TEXT:
            continue
        try:
            texts = (text_to_show(old / path) if path in a else "", text_to_show(new / path))
        except OSError:  # stored under another name, as its own contains a secret or is not UTF-8
            left_out[TOLD_IN_FULL] = f"the copies of {path} are stored under another name"
            continue
        if texts[0] is None or texts[1] is None:
            continue
        shown = unified(path, texts[0], texts[1])
        room -= len(shown)
        if room < 0:
            left_out[TOLD_IN_FULL] = f"the diffs have more than {_MOST_SHOWN:,} characters"
            break
        diffs[path] = shown
    return Changes(before.manifest, after.manifest, FilesystemDiff(added, removed, modified, diffs), left_out)


def removals(removed: Sequence[str], old: Path) -> dict[str, str]:
    """The diffs of texts that were removed, from their copies in `old`: only for `diff.txt`, which shows all
    changes."""
    diffs: dict[str, str] = {}
    room = _MOST_SHOWN
    for path in removed:
        try:
            text = text_to_show(old / path)
        except OSError:  # stored under another name
            continue
        if text is None:
            continue
        diffs[path] = unified(path, text, "")
        room -= len(diffs[path])
        if room < 0:
            break
    return diffs


def covered(path: str, places: Container[str]) -> bool:
    """Whether a path, or a folder above it, is among `places`; `.` is everything."""
    if "." in places:
        return True
    while path:
        if path in places:
            return True
        path = path.rpartition("/")[0]
    return False


def unified(path: str, old: str, new: str) -> str:
    """A unified diff of two texts; lines end at LF only."""
    a, b = _lines(old), _lines(new)
    header = f"--- a/{path}\n+++ b/{path}\n"
    if _matches(a, b) > _MOST_MATCHES:
        hunk = f"@@ -{_span(a)} +{_span(b)} @@\n"
        return header + hunk + "".join(_lines_with_ends("-", a)) + "".join(_lines_with_ends("+", b))
    lines = difflib.unified_diff(a, b, f"a/{path}", f"b/{path}")
    next(lines, None)
    next(lines, None)
    return header + "".join(line if line.endswith("\n") else line + _NO_LINE_END for line in lines)


def text_to_show(file: Path) -> str | None:
    """The text in a file; None if it is not text, or too large to be shown line by line."""
    if file.stat().st_size > _TEXT:
        return None
    data = file.read_bytes()
    return None if b"\0" in data[:_HEAD] else data.decode(errors="replace")


def _lines(text: str) -> list[str]:
    *lines, last = text.split("\n")
    return [line + "\n" for line in lines] + ([last] if last else [])


def _matches(a: Sequence[str], b: Sequence[str]) -> int:
    counts = Counter(b)
    return sum(counts[line] for line in a)


def _span(lines: Sequence[str]) -> str:
    return f"1,{len(lines)}" if lines else "0,0"


def _lines_with_ends(sign: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield sign + (line if line.endswith("\n") else line + _NO_LINE_END)
