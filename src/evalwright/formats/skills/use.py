"""Whether an agent used the skill, by its tool calls."""

from __future__ import annotations

from typing import Any

import msgspec

from evalwright.errors import EvaluatorError
from evalwright.formats.skills.blindness import named_paths
from evalwright.formats.skills.cases import KEY
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import ToolCall, Trace
from evalwright.targets.coding_agent.target import SKILLS

__all__ = ["SkillUsed", "concerns_skill", "is_use"]

_UNSEEN = "whether a skill was used is not known: the agent's output shows no tool calls (see its key `output`)"
_WRITTEN = frozenset(
    (
        "content",
        "contents",
        "text",
        "file_text",
        "old_string",
        "new_string",
        "old_str",
        "new_str",
        "description",
        "prompt",
    )
)
"""Arguments with text that an agent writes or says: a path quoted in them was not read."""
_MANIFEST = "skill.md"
_TOOLS = ("skill", "activate_skill", "load_skill", "use_skill")


def is_use(call: ToolCall, skill: str) -> bool:
    """Whether a call loads the skill: a tool for skills called with its name, or any tool that reads its SKILL.md.

    An agent that only lists the folder has not read what the skill says.
    """
    texts = list(_texts(call.arguments))
    return _loads(call, texts, skill) or (_has_path(texts, skill) and any(_MANIFEST in text.lower() for text in texts))


def concerns_skill(call: ToolCall, skill: str) -> bool:
    """Whether a call loads the skill or names any place in its folder, which only an agent that has the skill does."""
    texts = list(_texts(call.arguments))
    return _loads(call, texts, skill) or _has_path(texts, skill)


def _loads(call: ToolCall, texts: list[str], skill: str) -> bool:
    return bool(skill) and call.name.lower() in _TOOLS and any(_names(text, skill) for text in texts)


def _has_path(texts: list[str], skill: str) -> bool:
    paths = named_paths(skill)
    return bool(skill) and any(paths.search(text) for text in texts)


def _names(text: str, skill: str) -> bool:
    """Whether a text is the skill's name, including that of a plug-in's skill."""
    return text.strip().lstrip("/").rpartition(":")[2].lower() == skill.lower()


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        inner = [item for key, item in value.items() if key not in _WRITTEN]
    else:
        inner = value if isinstance(value, list) else []
    return [text for item in inner for text in _texts(item)]


class SkillUsed(msgspec.Struct, frozen=True):
    """Reported where the agent had the skill, and deciding where the case says `should_trigger`.

    Without the skill it is skipped, or an error of type `contaminated` if the agent found one all the same. If the
    agent's tool calls are unknown it is skipped, or an error of type `unseen` where it would decide.
    """

    skill: str

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        wanted = case.extra.get(KEY, {}).get("should_trigger")
        was_given = bool(trace.extra.get(SKILLS))
        if not _was_seen(trace):
            if was_given and wanted is not None:
                raise EvaluatorError(_UNSEEN, "unseen", {"calls": None})
            return Evaluation(True, skipped=True, reason=_UNSEEN, detail={"calls": None})
        uses = [call for call in trace.tool_calls if is_use(call, self.skill)]
        detail: dict[str, Any] = {"used": bool(uses), "calls": [call.name for call in uses][:10]}
        if not was_given:
            if uses:
                what = f"the agent used the skill {self.skill!r}, which it was not given: {_shown_call(uses[0])}"
                raise EvaluatorError(what, "contaminated", detail)
            return Evaluation(True, skipped=True, reason="it was not given the skill", detail=detail)
        message = f"the skill was used: {_shown_call(uses[0])}" if uses else "the skill was not used"
        if wanted is None:
            return Evaluation(bool(uses), float(bool(uses)), message, {**detail, "decides": False})
        passed = bool(uses) is wanted
        meant = "it should be" if wanted else "it should not be"
        return Evaluation(
            passed, float(passed), message if passed else f"{message}, and {meant}", {**detail, "decides": True}
        )


def _was_seen(trace: Trace) -> bool:
    """Whether the trace shows the agent's work: one that prints plain text leaves only its answer."""
    return bool(trace.tool_calls) or any(message.role not in ("system", "user") for message in trace.messages)


def _shown_call(call: ToolCall) -> str:
    return f"{call.name} {str(call.arguments)[:200]}"
