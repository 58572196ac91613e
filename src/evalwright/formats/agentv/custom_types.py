"""Evaluator types that a repository adds: programs in `.agentv/assertions`, named after their files."""

from __future__ import annotations

from evalwright.files.boundary import OutsideError
from evalwright.formats.agentv.message_files import Files

__all__ = ["custom_command"]

_RUN_BY = {
    ".ts": ["bun", "run"],
    ".mts": ["bun", "run"],
    ".js": ["node"],
    ".mjs": ["node"],
    ".py": ["python3"],
    ".sh": ["sh"],
}


def custom_command(name: str, files: Files) -> list[str] | None:
    """The command of a type, from the nearest folder that has it; None if none within the repository does."""
    if "/" in name or "\\" in name:
        return None
    for suffix, command in _RUN_BY.items():
        try:
            path = files.find(f".agentv/assertions/{name}{suffix}")
        except OutsideError:
            continue
        if path is not None:
            return [*command, str(path)]
    return None
