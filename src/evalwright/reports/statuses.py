"""How the status of a cell, or of one result, is shown."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ShownStatus", "shown_status"]


class ShownStatus(NamedTuple):
    """The mark, the word and the style of a status. Only errors and verdicts have a style."""

    mark: str
    word: str
    style: str


_SHOWN = {
    "pass": ShownStatus("✓", "pass", "pass"),
    "borderline": ShownStatus("~", "borderline", "borderline"),
    "fail": ShownStatus("✗", "fail", "fail"),
    "error": ShownStatus("!", "error", "error"),
    "skip": ShownStatus("–", "skip", "skip"),
}
_UNKNOWN = ShownStatus("…", "no verdict", "none")
_FULL, _BELOW = ShownStatus("·", "score 1", "scored"), ShownStatus("·", "below 1", "scored")


def shown_status(status: str | None, *, scored: bool = False) -> ShownStatus:
    """A status as people read it. `scored`: of a suite that has only scores, in which nothing passes or fails."""
    if scored and status in ("pass", "borderline", "fail"):
        return _FULL if status == "pass" else _BELOW
    return _SHOWN.get(status or "", _UNKNOWN)
