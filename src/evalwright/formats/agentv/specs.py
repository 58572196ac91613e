"""The evaluators of a case as specs: their names, and which of them call a judge."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from evalwright.files.key_paths import as_written
from evalwright.files.numbers import is_number
from evalwright.formats.agentv.notes import OF_FILE, Notes

__all__ = ["Spec", "spec_name", "unique", "uses_default_judge", "weighs_texts", "weight_in"]

Spec = dict[str, Any]

_OF_PATTERN = 30
"""Characters of a pattern that AgentV puts into a name."""


def spec_name(written: str, raw: Mapping[str, Any]) -> str:
    """AgentV's name for an assertion without one: its type and what it looks for, or the number of texts to look
    for."""
    value = raw.get("value", raw.get("skill"))
    written = written.replace("_", "-")
    if value in (None, "", []):
        return written
    if written == "regex":
        return f"regex-{str(value)[:_OF_PATTERN]}"
    return f"{written}-{len(value)}" if isinstance(value, list) else f"{written}-{value}"


def weighs_texts(place: str) -> bool:
    """Whether the weight counts the texts: in the newer `assertions`, except those of a turn."""
    return place.removesuffix(OF_FILE).endswith("assertions") and not place.startswith("turns")


def weight_in(raw: Mapping[str, Any], place: str, name: str, report: Notes) -> float:
    """The weight of an evaluator, 1 if it has none; a mistake in it is reported."""
    weight = raw.get("weight", 1.0)
    sound = is_number(weight)
    if not sound or not math.isfinite(weight) or weight < 0:
        report(
            f"{place}.weight", f"weight of {name!r}: expected a number that is not negative, found {as_written(weight)}"
        )
        return 1.0
    return float(weight)


def uses_default_judge(specs: Sequence[Spec]) -> bool:
    """Whether one of the evaluators calls a judge without naming its target."""
    return any(
        (spec["type"] in ("criteria_judge", "rubric_checks") and "target" not in spec["config"])
        or "judges" in spec["config"].get("aggregator", {})
        or any(uses_default_judge(members) for members in _members(spec))
        for spec in specs
    )


def _members(spec: Spec) -> list[Sequence[Spec]]:
    config = spec["config"]
    if spec["type"] == "composite":
        return [config["evaluators"]]
    return [*config["turns"], config.get("whole", ())] if spec["type"] == "conversation_turns" else []


def unique(specs: Sequence[Spec]) -> list[Spec]:
    """All specs; of several with one name, the last keeps it and the others are numbered."""
    left = Counter(spec["name"] for spec in specs)
    if len(left) == len(specs):
        return list(specs)
    seen: Counter[str] = Counter()
    found = []
    for spec in specs:
        name = spec["name"]
        seen[name] += 1
        found.append(spec if seen[name] == left[name] else {**spec, "name": f"{name} ({seen[name]})"})
    return found
