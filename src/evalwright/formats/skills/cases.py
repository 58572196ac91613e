"""Turns evals into cases, each with the evaluators for its criteria."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from evalwright.formats.skills.evals import AuthoredEval
from evalwright.formats.skills.skill import Skill
from evalwright.model.plan import EvaluatorSpec
from evalwright.model.snapshot import Case
from evalwright.workspaces.case_files import WORKSPACE_FILES

__all__ = ["EXPECTED", "KEY", "USED", "is_criterion", "skill_cases"]

KEY = "skill_eval"
"""The key of a case's `extra` with what the judge and the verdict need."""
EXPECTED, USED = "expected_output", "skill_used"
_CRITERION = "criterion-"


def skill_cases(evals: Sequence[AuthoredEval], skill: Skill, judge: str, *, expected_too: bool) -> list[Case]:
    """The cases of evals, judged by the model `judge`. With `expected_too`, expected_output is always a criterion."""
    return [_case(entry, skill, judge, expected_too=expected_too) for entry in evals]


def is_criterion(name: str) -> bool:
    """Whether an evaluator of that name counts in the score of a case."""
    return name != USED


def _case(entry: AuthoredEval, skill: Skill, judge: str, *, expected_too: bool) -> Case:
    own = {
        "skill": skill.name,
        "expected_output": entry.expected_output,
        "should_trigger": entry.should_trigger,
        "criteria_extra": [criterion.extra for criterion in entry.criteria if criterion.extra],
    }
    return Case(
        entry.id,
        {"prompt": entry.prompt},
        metadata=entry.metadata,
        tags=entry.tags,
        description=entry.title,
        extra={
            KEY: {name: value for name, value in own.items() if value not in (None, [])},
            **({"name": entry.title} if entry.title else {}),
            **({WORKSPACE_FILES: entry.files} if entry.files else {}),
        },
        evaluators=[*_specs(entry, skill, judge, expected_too=expected_too)],
    )


def _specs(entry: AuthoredEval, skill: Skill, judge: str, *, expected_too: bool) -> Iterator[EvaluatorSpec]:
    for i, criterion in enumerate(entry.criteria, 1):
        yield EvaluatorSpec(f"{_CRITERION}{i}", "skill_criterion", {"text": criterion.text, "model": judge})
    others = list(_without_judge(entry))
    if entry.expected_output and (expected_too or not (entry.criteria or others)):
        yield EvaluatorSpec(EXPECTED, "skill_criterion", {"text": entry.expected_output, "model": judge})
    yield from others
    yield EvaluatorSpec(USED, "skill_used", {"skill": skill.name})


def _without_judge(entry: AuthoredEval) -> Iterator[EvaluatorSpec]:
    kinds: dict[str, tuple[str, Any]] = {
        "must_have": ("text_check", lambda text: {"check": "regex", "value": text}),
        "must_not_have": ("text_check", lambda text: {"check": "regex", "value": text, "negate": True}),
        "files_exist": ("skill_file", lambda text: {"path": text}),
        "logs_contain": ("skill_transcript", lambda text: {"text": text}),
    }
    for key, (kind, config) in kinds.items():
        for i, text in enumerate(entry.texts.get(key, ()), 1):
            yield EvaluatorSpec(f"{key}-{i}", kind, config(text))
