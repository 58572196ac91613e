"""Whether an agent loaded a skill, judged by its tool calls: AgentV 4's `skill-trigger`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from evalwright.evaluators.combined.banded import banded
from evalwright.evaluators.tools.calls import TracedCall, calls_of, messages_of
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace

__all__ = ["SkillTrigger"]

_READERS = ("read", "read file", "readfile", "readtextfile", "view")
"""Names that agents give to the tool that reads a file."""
_SAID = ("Using skill: ", "mcp:")
"""How the name of a call begins if the agent puts the skill into it."""


class SkillTrigger(msgspec.Struct, frozen=True):
    """Passes if the skill was loaded or, with `should_trigger: false`, if it was not.

    A skill is loaded by a call of the tool `Skill`, by reading a file below `skills/NAME/`, or if a tool's output names
    such a file.
    """

    skill: Annotated[str, msgspec.Meta(min_length=1)]
    should_trigger: bool = True

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        calls = calls_of(trace)
        evidence = next(self._evidence(calls, trace), None)
        if (evidence is not None) is self.should_trigger:
            return banded(1.0, hits=[evidence or f"the skill {self.skill!r} was not loaded"])
        if evidence is not None:
            return banded(0.0, misses=[f"the skill {self.skill!r} was loaded: {evidence}"])
        made = f"in {len(calls)} tool call{'s' * (len(calls) != 1)}" if calls else "as no tool was called"
        return banded(0.0, misses=[f"the skill {self.skill!r} was not loaded, {made}"])

    def _evidence(self, calls: list[TracedCall], trace: Trace) -> Iterator[str]:
        folder = f"skills/{self.skill}/"
        for call in calls:
            args = call.args if isinstance(call.args, dict) else {}
            name = call.name.lower()
            named = next((call.name.removeprefix(prefix) for prefix in _SAID if call.name.startswith(prefix)), None)
            loaded = named or (str(args.get("skill") or "") if name == "skill" else "")
            if self.skill in loaded:
                yield f"{call.name} was called with {loaded!r}"
            path = next((str(args[key]) for key in ("file_path", "path", "filePath") if args.get(key)), "")
            if (name in _READERS or name.startswith("viewing ")) and folder in path:
                yield f"{call.name} read {path}"
            if folder in _text(call.output):
                yield f"{call.name} returned a file of it"
        results = (message.get("content") for message in messages_of(trace) if message.get("role") == "tool")
        if any(folder in _text(result) for result in results):
            yield "a tool returned a file of it"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
