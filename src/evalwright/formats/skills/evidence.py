"""What a judge sees of one cell: the answer, the files that the agent left, and its tool calls in order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evalwright.errors import counted
from evalwright.formats.skills.blindness import Blindfold
from evalwright.formats.skills.cases import KEY
from evalwright.formats.skills.use import concerns_skill
from evalwright.model.artifact import Artifact
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace

__all__ = ["evidence"]

_MOST_ANSWER, _MOST_FILE, _MOST_FILES = 60_000, 20_000, 100_000
"""The most characters of the answer, of one file and of all files."""
_READ = 8 * _MOST_FILE
"""The most bytes read of a file to show it."""
_WITHIN = bytes(range(0x80, 0xC0))
"""The continuation bytes of UTF-8."""
_MOST_LISTED, _MOST_CALLS, _MOST_ARGUMENTS = 200, 200, 500
"""The most files and calls listed, and the most characters of a call's arguments."""


def evidence(case: Case, trace: Trace, artifact: Artifact | None, criterion: str) -> list[tuple[str, Any]]:
    """Labels and texts, without any mention of the variant. Cuts are marked."""
    own = case.extra.get(KEY, {})
    skill, expected = str(own.get("skill", "")), own.get("expected_output")
    prompt = case.input.get("prompt", "") if isinstance(case.input, dict) else str(case.input)
    blind = Blindfold(skill, [prompt, expected or "", criterion])
    answer = _cut(trace.output.final_answer or "", _MOST_ANSWER)
    shown = [("the task that the agent was given", prompt)]
    if expected and expected != criterion:
        shown.append(("what success looks like, by the author of the task", expected))
    shown += [
        ("the agent's final answer", blind.hide(answer)),
        ("the files that the agent added or changed", blind.hide("\n\n".join(_files(artifact, skill)))),
        ("the agent's tool calls, in order", blind.hide("\n".join(_calls(trace, skill)))),
    ]
    return shown


def _cut(text: str, most: int, length: int | None = None) -> str:
    """The beginning of a text; `length` is that of the whole text, if this one has already been cut."""
    length = len(text) if length is None else length
    return text if length <= most else f"{text[:most]}\n[cut: {length - most:,} more characters]"


def _files(artifact: Artifact | None, skill: str) -> Iterator[str]:
    if artifact is None:
        yield "(not recorded)"
        return
    diff, after = artifact.record.diff, artifact.record.after_manifest.files
    changed = [("added", path) for path in diff.added] + [("changed", path) for path in diff.modified]
    changed = [(how, path) for how, path in changed if f"skills/{skill}/" not in path]
    room = _MOST_FILES
    for how, path in changed[:_MOST_LISTED]:
        file = artifact.folder / "after" / path
        text = _text(file)
        size = counted(after[path].size, "byte") if path in after else ""
        if text is None:
            yield f"{path} ({how}, {size}, not text)"
            continue
        shown = _cut(text, min(room, _MOST_FILE), _length(file))
        room = max(0, room - len(shown))
        yield f"{path} ({how}, {size}):\n{shown}"
    for path in diff.removed[:_MOST_LISTED]:
        yield f"{path} (removed)"
    if len(changed) > _MOST_LISTED:
        yield f"[cut: {counted(len(changed) - _MOST_LISTED, 'more file')}]"
    if not changed and not diff.removed:
        yield "(none)"
    if artifact.record.left_out:
        yield f"[not recorded: {', '.join(list(artifact.record.left_out)[:20])}]"


def _text(file: Path) -> str | None:
    """The text in a file; None if it is not text or is stored under another name."""
    try:
        with file.open("rb") as source:
            data = source.read(_READ)
    except OSError:
        return None
    return None if b"\0" in data else data.decode(errors="replace")


def _length(file: Path) -> int | None:
    """The number of characters in a file that was read only in part: bytes that begin a character."""
    if file.stat().st_size <= _READ:
        return None
    with file.open("rb") as source:
        return sum(len(part.translate(None, _WITHIN)) for part in iter(lambda: source.read(2**20), b""))


def _calls(trace: Trace, skill: str) -> Iterator[str]:
    """The calls except those that concern the skill: the other variant cannot have any."""
    calls = [call for call in trace.tool_calls if not concerns_skill(call, skill)]
    for number, call in enumerate(calls[:_MOST_CALLS], 1):
        arguments = json.dumps(call.arguments, ensure_ascii=False, default=str)
        yield f"{number}. {call.name} {_cut(arguments, _MOST_ARGUMENTS)}"
    if len(calls) > _MOST_CALLS:
        yield f"[cut: {counted(len(calls) - _MOST_CALLS, 'more call')}]"
    if not calls:
        yield "(none)"
