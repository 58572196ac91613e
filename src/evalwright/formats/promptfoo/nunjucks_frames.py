"""The names that templates set, which Nunjucks keeps from one round of a loop to the next."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["Frames"]


class _Frame(NamedTuple):
    values: dict[str, Any]
    is_open: bool
    """Whether names that are set in it may be those of the frames around it."""


class Frames:
    """Names and values while a template is rendered: a frame for the template, for each loop, macro and call block."""

    def __init__(self) -> None:
        self._frames: tuple[_Frame, ...] = (_Frame({}, False),)
        self._left: list[tuple[_Frame, ...]] = []
        self._of_template: dict[str, Any] = {}
        """What was set outside of all loops and macros, which macros see as well."""

    def here(self) -> tuple[_Frame, ...]:
        return self._frames

    def enter(self, around: tuple[_Frame, ...], is_open: bool) -> None:
        self._left.append(self._frames)
        self._frames = (*around, _Frame({}, is_open))

    def leave(self) -> None:
        self._frames = self._left.pop()

    def keep(self, name: str, value: Any) -> None:
        """Give a name to the innermost frame, whatever those around it have."""
        self._frames[-1].values[name] = value

    def set(self, name: str, value: Any) -> None:
        """Change the innermost frame that has the name, or else give it to the current one."""
        target = self._frames[-1]
        for frame in reversed(self._frames):
            if name in frame.values:
                target = frame
            if name in frame.values or not frame.is_open:
                break
        target.values[name] = value
        if not self._left:
            self._of_template[name] = value

    def get(self, name: str, otherwise: Any) -> Any:
        for frame in reversed(self._frames):
            if name in frame.values:
                return frame.values[name]
        return self._of_template.get(name, otherwise)
