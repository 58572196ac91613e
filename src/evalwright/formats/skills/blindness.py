"""Hides from a judge whether the agent had the skill, and which one it is."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["Blindfold", "named_paths"]

_HIDDEN = "[left out]"


def named_paths(skill: str) -> re.Pattern[str]:
    """Paths of a skill's files, as agents name them in calls and command lines."""
    # if it could start within a word, it would scan a long line without blanks from each of its characters
    return re.compile(rf"(?<![^\s\"'`])[^\s\"'`]*skills/{re.escape(skill)}(?![\w-])[^\s\"'`]*", re.IGNORECASE)


class Blindfold:
    """Hides the name of a skill. If the task itself contains that word, only phrases that mean the skill are hidden."""

    def __init__(self, skill: str, task: Iterable[str]) -> None:
        name = rf"(?<![\w-]){re.escape(skill)}(?![\w-])"
        quoted = rf"[\"'`*]*/?{name}[\"'`*]*"
        phrases = rf"(?:the\s+)?{quoted}\s+skill\b|\bskill\s+(?:called\s+|named\s+)?{quoted}"
        self._paths = named_paths(skill)
        self._phrases = re.compile(phrases, re.IGNORECASE)
        # a word such as `pdf` is most likely a file type; `pdf-forms` can only be the name
        constant_criteria = not skill.isalpha() and not any(re.search(name, text, re.IGNORECASE) for text in task)
        self._name = re.compile(name, re.IGNORECASE) if constant_criteria else None

    def hide(self, text: str) -> str:
        text = self._phrases.sub(_HIDDEN, self._paths.sub(_HIDDEN, text))
        return text if self._name is None else self._name.sub(_HIDDEN, text)
