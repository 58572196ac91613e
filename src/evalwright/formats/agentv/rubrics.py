"""Rubric items of AgentEvals files."""

from __future__ import annotations

import math
from typing import Any

from evalwright.files.key_paths import as_written
from evalwright.files.numbers import is_number
from evalwright.formats.agentv.booleans import meant
from evalwright.formats.agentv.notes import Notes

__all__ = ["RUBRIC_KEYS", "RUBRIC_OPERATORS", "RUBRIC_TEXTS", "TOP", "rubric_items"]

TOP = 10
RUBRIC_KEYS = {
    "id", "weight", "required", "min_score", "required_min_score", "score_ranges", "expected_outcome", "outcome",
    "description", "criteria", "operator",
}  # fmt: skip
RUBRIC_TEXTS = ("expected_outcome", "outcome", "description", "criteria")
_OF_RANGE = ("score_range", "expected_outcome", "outcome")
_EXPECTED = "expected text, or a mapping with expected_outcome or score_ranges"


def rubric_items(raw: Any, place: str, name: str, report: Notes) -> list[dict[str, Any]]:
    """Items with `id`, `text`, `weight`, `required` and, if given, `min_score` and `ranges` [[low, high, text]].

    Entries that are not rubrics are skipped with a warning, and do not count in the numbers that ids are made from.
    """
    raw = [raw] if isinstance(raw, str) and raw.strip() else raw
    if not isinstance(raw, list) or not raw:
        report(place, f"rubrics of {name!r}: expected a list with at least one rubric")
        return []
    rubrics = [(i, rubric) for i, rubric in enumerate(raw) if _is_rubric(rubric)]
    if not rubrics:
        report(place, f"rubrics of {name!r}: {_EXPECTED}")
    for i in sorted({*range(len(raw))} - {i for i, _ in rubrics}):
        report.warn(f"{place}[{i}]", f"rubrics of {name!r}: {_EXPECTED}; {str(raw[i])[:60]!r} is skipped")
    items = [_item(rubric, number, f"{place}[{i}]", name, report) for number, (i, rubric) in enumerate(rubrics, 1)]
    if not any("ranges" in item for item in items):
        for (i, _), item in zip(rubrics, items, strict=True):
            if item.pop("min_score", None) is not None:
                message = (
                    f"rubric {item['id']!r}: a minimum score has no effect, as no rubric of {name!r} has score_ranges"
                )
                report.warn(f"{place}[{i}]", message)
    seen: set[str] = set()
    for item in items:
        if item["id"] in seen:
            report(place, f"rubrics of {name!r}: duplicate id {item['id']!r}")
        seen.add(item["id"])
    return items


def _is_rubric(raw: Any) -> bool:
    if isinstance(raw, str):
        return bool(raw.strip())
    return isinstance(raw, dict) and (_text(raw) is not None or raw.get("score_ranges") is not None)


def _text(raw: dict[str, Any]) -> str | None:
    return next((raw[key] for key in RUBRIC_TEXTS if isinstance(raw.get(key), str) and raw[key].strip()), None)


def _item(raw: Any, number: int, place: str, name: str, report: Notes) -> dict[str, Any]:
    if isinstance(raw, str):
        return {"id": f"rubric-{number}", "text": raw, "weight": 1.0, "required": False}
    report.unknown_keys(place, raw, RUBRIC_KEYS)
    item_id = str(raw.get("id") or f"rubric-{number}")
    item: dict[str, Any] = {
        "id": item_id,
        "text": _with_operator(raw, place, item_id, report),
        "weight": _weight(raw.get("weight", 1.0), place, item_id, report),
        "required": _is_required(raw.get("required", False), place, item_id, report),
    }
    least = _least(raw, place, item_id, report)
    if least is not None:
        item["min_score"] = least
    if raw.get("score_ranges") is not None:
        item["ranges"] = _ranges(
            raw["score_ranges"], f"{place}.score_ranges", f"rubric {item_id!r} of {name!r}", report
        )
    return item


RUBRIC_OPERATORS = {"correctness": "", "contradiction": "The answer does not contradict this: "}
"""What an operator adds before a rubric's statement in the judge's prompt."""


def _with_operator(raw: dict[str, Any], place: str, item_id: str, report: Notes) -> str:
    operator = raw.get("operator", "correctness")
    if not isinstance(operator, str) or operator not in RUBRIC_OPERATORS:
        known = " or ".join(RUBRIC_OPERATORS)
        report(f"{place}.operator", f"rubric {item_id!r}: operator: expected {known}, found {as_written(operator)}")
        return ""
    return RUBRIC_OPERATORS[operator] + (_text(raw) or "")


def _weight(value: Any, place: str, item_id: str, report: Notes) -> float:
    sound = is_number(value) and math.isfinite(value) and value >= 0
    if not sound:
        report(
            f"{place}.weight", f"rubric {item_id!r}: expected a weight that is not negative, found {as_written(value)}"
        )
        return 1.0
    return float(value)


def _is_required(value: Any, place: str, item_id: str, report: Notes) -> bool:
    if isinstance(value, bool):
        return value
    report(
        f"{place}.required",
        f"rubric {item_id!r}: required: expected true or false, found {as_written(value)}{meant(value)}",
    )
    return False


def _least(raw: dict[str, Any], place: str, item_id: str, report: Notes) -> float | None:
    """`required_min_score` from 0 to 10; a `min_score` from 0 to 1 is converted to it."""
    for key, top in (("required_min_score", TOP), ("min_score", 1)):
        value = raw.get(key)
        if value is None:
            continue
        number = is_number(value)
        if not number or not 0 <= value <= top or (top == TOP and value != int(value)):
            report(
                f"{place}.{key}",
                f"rubric {item_id!r}: {key}: expected a number from 0 to {top}, found {as_written(value)}",
            )
            return None
        return float(value) * TOP / top
    return None


def _ranges(raw: Any, place: str, name: str, report: Notes) -> list[list[Any]]:
    """All scores from 0 to 10, each in exactly one range."""
    ranges = _from_bounds(raw, place, name, report) if isinstance(raw, dict) else _from_list(raw, place, name, report)
    covered = [score for low, high, _ in ranges for score in range(low, high + 1)]
    if ranges and len(set(covered)) < len(covered):
        spans = ", ".join(f"[{low}, {high}]" for low, high, _ in sorted(ranges))
        report(place, f"score_ranges of {name} overlap: {spans}")
    elif ranges and (gaps := sorted(set(range(TOP + 1)) - set(covered))):
        report(place, f"score_ranges of {name} leave out {', '.join(map(str, gaps))}")
    return [list(span) for span in ranges]


def _from_bounds(raw: dict[Any, Any], place: str, name: str, report: Notes) -> list[tuple[int, int, str]]:
    """From lower bounds: each range extends to the next one, the last one to 10."""
    bounds = {}
    for key, text in raw.items():
        bound = int(key) if str(key).isdecimal() and int(key) <= TOP else None
        if bound is None or not isinstance(text, str):
            found = f"{key!r}: {text!r}"
            report(
                place, f"score_ranges of {name}: expected whole numbers from 0 to 10 with a text each, found {found}"
            )
            return []
        bounds[bound] = text
    if 0 not in bounds:
        report(
            place, f"score_ranges of {name} must begin with 0, found {', '.join(map(str, sorted(bounds))) or 'none'}"
        )
        return []
    ordered = sorted(bounds)
    ends = [*(bound - 1 for bound in ordered[1:]), TOP]
    return [(low, high, bounds[low]) for low, high in zip(ordered, ends, strict=True)]


def _from_list(raw: Any, place: str, name: str, report: Notes) -> list[tuple[int, int, str]]:
    if not isinstance(raw, list) or not raw:
        report(place, f"score_ranges of {name}: expected a mapping of lower bounds or a list of ranges")
        return []
    rubrics = []
    for i, rubric in enumerate(raw):
        report.unknown_keys(f"{place}[{i}]", rubric if isinstance(rubric, dict) else {}, _OF_RANGE)
        span = rubric.get("score_range") if isinstance(rubric, dict) else None
        text = rubric.get("expected_outcome", rubric.get("outcome")) if isinstance(rubric, dict) else None
        whole = isinstance(span, list) and len(span) == 2 and all(type(end) is int for end in span)
        if not whole or span is None or not 0 <= span[0] <= span[1] <= TOP or not isinstance(text, str) or not text:
            report(
                f"{place}[{i}]", f"score_ranges of {name}: expected score_range [min, max] within 0 and 10, and a text"
            )
            return []
        rubrics.append((span[0], span[1], text))
    return rubrics
