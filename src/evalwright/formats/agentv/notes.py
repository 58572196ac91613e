"""What is noticed while a case of an AgentEvals file is read, each with its path inside the case."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from evalwright.errors import did_you_mean
from evalwright.formats.shared.isolation import ISOLATING, isolating, refusal

__all__ = ["OF_FILE", "Notes"]

OF_FILE = " (of the file)"
"""Follows a key at the top level of the file, whose value all cases share, in the path of a mistake."""

_Note = tuple[str, str]


class Notes:
    """Mistakes in one case; calling this reports one that keeps the case from running."""

    def __init__(self) -> None:
        self.errors: list[_Note] = []
        self.left_out: list[_Note] = []
        """Mistakes that only cost an evaluator, as long as the case has another."""
        self.refused: list[_Note] = []
        """Reasons to reject the whole suite."""
        self.unread: list[_Note] = []
        """Keys that nothing reads."""
        self.warnings: list[_Note] = []
        """What is allowed but most likely not meant."""

    def __call__(self, path: str, message: str) -> None:
        self.errors.append((path, message))

    def leave_out(self, path: str, message: str) -> None:
        self.left_out.append((path, f"left out: {message}"))

    def warn(self, path: str, message: str) -> None:
        self.warnings.append((path, message))

    def unknown_keys(
        self, path: str, raw: Mapping[Any, Any], known: Collection[str], isolate: tuple[str, ...] = ISOLATING
    ) -> None:
        """Warn of keys that nothing reads; those that `isolate` go to `refused`."""
        refused = [*isolating(raw, known, isolate)]
        inside = f"{path}." if path else ""
        self.refused += [(f"{inside}{key}", refusal(key, known)) for key in refused]
        for key in raw:
            place = f"{inside}{key}"
            if key not in known and key not in refused:
                self.unread.append((place, f"nothing reads the key {key!r}{did_you_mean(str(key), known)}"))

    def with_known_keys(self, path: str, listed: Any, known: Collection[str]) -> Any:
        """The mappings in a list without the keys that nothing reads, after a warning; anything else as it is."""
        if not isinstance(listed, list):
            return listed
        for i, item in enumerate(listed):
            self.unknown_keys(f"{path}[{i}]", item if isinstance(item, dict) else {}, known)
        return [{k: v for k, v in item.items() if k in known} if isinstance(item, dict) else item for item in listed]
