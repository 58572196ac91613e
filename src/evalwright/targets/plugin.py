"""Targets of other packages. Python checks no types, so their answers are checked here, wherever they are called."""

from __future__ import annotations

from typing import Any

from evalwright.errors import TargetError
from evalwright.model.protocols import Target
from evalwright.model.snapshot import Case
from evalwright.model.trace import Answer
from evalwright.targets.answers import stored_form

__all__ = ["PluginTarget"]

_OF_OURS: dict[str, type | tuple[type, ...]] = {
    "account": str,
    "address": str,
    "grace_seconds": (int, float),
    "may_be_silent": bool,
}
"""What a run reads of our targets. In a plug-in, something of another type only has the same name."""


class PluginTarget:
    """A target whose answers are what a reader of the run will find, or an error of the cell."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._target, name)
        if name in _OF_OURS and not isinstance(value, _OF_OURS[name]):
            raise AttributeError(name)
        return value

    async def run(self, case: Case, trial: int) -> Answer:
        answer: object = await self._target.run(case, trial)
        if not isinstance(answer, Answer):
            raise TargetError(f"the target must return an Answer, found {type(answer).__name__}")
        return stored_form(answer, self._target.run)
