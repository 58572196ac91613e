"""Tests that rely on the answers to earlier ones: turns of a conversation, and outputs that were stored under a name.

A session knows only its own answers. If the earlier tests of a test were answered in another session or shard, or were
left out, the test would ask something else than its suite says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from evalwright.formats.promptfoo.prompts import TURNS
from evalwright.formats.promptfoo.values import compact_json
from evalwright.model.snapshot import Case

__all__ = ["remembers", "stored_as", "talk_of", "which_relies", "with_dependence"]


def remembers(prompt: Mapping[str, Any]) -> bool:
    """Whether a prompt contains the earlier turns of the conversation."""
    return TURNS in str(prompt.get("raw", "")) or "remembers" in prompt


def stored_as(case: Case) -> str | None:
    """The name under which later tests find the output of this one."""
    name = _options(case).get("storeOutputAs")
    return None if name is None else str(name)


def talk_of(case: Case) -> str:
    """The conversation of which a test is a turn."""
    return str(case.metadata.get("conversationId", case.extra["promptfoo"].get("talk", "")))


def with_dependence(cases: Sequence[Case], prompts: Iterable[Mapping[str, Any]]) -> list[Case]:
    """The cases, each with the ids of those on which it relies."""
    prompts = [*prompts]
    talks, prompt_text = any(map(remembers, prompts)), " ".join(str(prompt.get("raw", "")) for prompt in prompts)
    last: dict[str, str] = {}
    storing: dict[str, str] = {}
    names = []
    for case in cases:
        needed = {id for name, id in storing.items() if name in prompt_text or name in compact_json(case.input)}
        if talks and _options(case).get("disableConversationVar") is not True:
            needed |= {last[talk_of(case)]} if talk_of(case) in last else set()
        last[talk_of(case)] = case.id
        if (name := stored_as(case)) is not None:
            storing[name] = case.id
        own = case.extra["promptfoo"]
        extra = {**case.extra, "promptfoo": {**own, "relies_on": sorted(needed)}} if needed else case.extra
        names.append(msgspec.structs.replace(case, extra=extra))
    return names


def which_relies(cases: Iterable[Case]) -> str:
    """The first case that relies on another, with that, in words; empty if none does."""
    relying = ((case.id, case.extra["promptfoo"].get("relies_on")) for case in cases)
    return next((f"{id} continues from {needed[0]}" for id, needed in relying if needed), "")


def _options(case: Case) -> Mapping[str, Any]:
    options: Mapping[str, Any] = case.extra["promptfoo"].get("options") or {}
    return options
