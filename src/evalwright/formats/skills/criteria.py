"""The criteria of one eval, in any of the shapes found in public files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from evalwright.files.key_paths import Place, as_written
from evalwright.formats.shared.findings import Findings

__all__ = ["CRITERION_TEXTS", "LISTS", "Criterion", "criteria_of"]

LISTS = ("assertions", "expectations", "checks", "expected_behavior", "unexpected_behavior")
"""The keys of an eval that hold criteria, in order of precedence."""
CRITERION_TEXTS = ("text", "assertion", "expectation", "criterion", "description", "check")
_NAMED = ("description", "check")
"""Texts that say little without their `name`."""


class Criterion(NamedTuple):
    text: str
    extra: dict[str, Any]
    """The other keys of its object."""


def criteria_of(raw: Mapping[str, Any], place: Place, findings: Findings) -> list[Criterion]:
    """All criteria of an eval, in the order of the keys. Mistakes are reported."""
    criteria: list[Criterion] = []
    for key in LISTS:
        value = raw.get(key)
        if value is None:
            continue
        if not isinstance(value, list):
            findings.report((*place, key), f"expected a list of criteria, found {as_written(value)}")
            continue
        for i, item in enumerate(value):
            criteria += _criterion(item, (*place, key, i), findings, negated=key == "unexpected_behavior")
    return criteria


def _criterion(value: Any, place: Place, findings: Findings, *, negated: bool) -> Iterator[Criterion]:
    text, extra = (value, {}) if isinstance(value, str) else _text_and_other_keys(value)
    if text is None:
        kinds = f"text, or an object with one of {', '.join(CRITERION_TEXTS)}"
        findings.report(place, f"expected {kinds}, found {as_written(value)}")
    elif not text.strip():
        findings.warn(place, "a criterion without text is left out")
    else:
        yield Criterion(f"This does not happen: {text.strip()}" if negated else text.strip(), extra)


def _text_and_other_keys(value: Any) -> tuple[str | None, dict[str, Any]]:
    """The text of an object and its other keys; None if it has no text at all."""
    if not isinstance(value, dict):
        return None, {}
    texts = {key: value[key] for key in CRITERION_TEXTS if isinstance(value.get(key), str)}
    if not texts:
        return None, {}
    key = next((key for key, text in texts.items() if text.strip()), next(iter(texts)))
    text, name = texts[key], value.get("name")
    used = {key}
    if key in _NAMED and text.strip() and isinstance(name, str) and name.strip():
        text = f"{name.strip()}: {text.strip()}"
        used.add("name")
    return text, {str(other): item for other, item in value.items() if other not in used}
