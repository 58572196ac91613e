"""What people and evaluators of a tracing platform found in a trace, or in one of its spans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from evalwright.errors import counted
from evalwright.importers.platform_documents import number_under, text_of
from evalwright.importers.record_values import dictionaries
from evalwright.importers.span_files import Lose
from evalwright.importers.span_messages import json_content

__all__ = [
    "braintrust_scores",
    "langfuse_scores",
    "langsmith_scores",
    "mlflow_facts",
    "mlflow_scores",
    "scores_by_name",
]


def braintrust_scores(row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The scores in a span, from 0 to 1, with the reason that its scorer gave; None is that of one that failed."""
    scores, about = row.get("scores"), row.get("metadata")
    scores = scores if isinstance(scores, dict) else {}
    reason = about.get("rationale") if isinstance(about, dict) else None
    for name in scores:
        yield _recorded(str(name), None, number_under(scores, name), reason or row.get("error"), {})


def langfuse_scores(given: Any, place: str, lose: Lose) -> Iterator[tuple[str | None, dict[str, Any]]]:
    """The scores of a trace, each with the id of the observation that it is about, if it is about one."""
    listed = given if isinstance(given, list) else [given] if given else []
    scores = [dictionary for dictionary in dictionaries(listed) if text_of(dictionary.get("name")) is not None]
    if len(scores) < len(listed):
        lose(place, f"{counted(len(listed) - len(scores), 'score')} without a name or a value, such as ids alone")
    for entry in scores:
        score = number_under(entry, "value") if not isinstance(entry.get("value"), bool) else float(entry["value"])
        kind, label = entry.get("dataType"), text_of(entry.get("stringValue"))
        if kind in ("CATEGORICAL", "TEXT", "CORRECTION"):  # whose numbers mean nothing
            score, label = None, label or text_of(entry.get("value"))
        about = {"source": text_of(entry.get("source")), "label": label if kind != "BOOLEAN" else None}
        passed = bool(score) if kind == "BOOLEAN" and score is not None else None
        yield (
            text_of(entry.get("observationId")),
            _recorded(str(entry["name"]), passed, score, entry.get("comment"), about),
        )


def langsmith_scores(stats: Any) -> Iterator[dict[str, Any]]:
    """The feedback on a run, by its kind: the mean of `number` pieces, or how often each label was given."""
    for name, stat in stats.items() if isinstance(stats, dict) else ():
        if isinstance(stat, dict):
            comments = stat.get("comments")
            comment = "\n".join(map(str, comments)) if isinstance(comments, list) else None
            about = {"number": stat.get("n"), "labels": stat.get("values") or None}
            yield _recorded(str(name), None, number_under(stat, "avg"), comment, about)


def mlflow_scores(given: Any, place: str, lose: Lose) -> Iterator[tuple[str | None, dict[str, Any]]]:
    """The feedback on a trace, each with the id of the span that it is about, if it is about one."""
    listed = given if isinstance(given, list) else []
    rows = [dictionary for dictionary in dictionaries(listed) if isinstance(dictionary.get("feedback"), dict)]
    unread = len(listed) - len(rows) - len(_expected(given))
    if unread:
        lose(place, f"{counted(unread, 'assessment')} without feedback and expectation")
    for row in rows:
        if row.get("valid") is False:  # replaced by a later one
            continue
        value, source = row["feedback"].get("value"), row.get("source")
        passed = value if isinstance(value, bool) else None
        score = float(value) if isinstance(value, int | float) else None
        about = {
            "source": text_of(source.get("source_type")) if isinstance(source, dict) else None,
            "label": text_of(value),
        }
        name = text_of(row.get("assessment_name")) or "feedback"
        yield text_of(row.get("span_id")), _recorded(name, passed, score, row.get("rationale"), about)


def mlflow_facts(given: Any) -> dict[str, Any]:
    """What was expected of a trace, by name; the later one of a name, which replaced the earlier."""
    facts = {}
    for one in _expected(given):
        packed = one["expectation"].get("serialized_value")
        value = json_content(packed.get("value")) if isinstance(packed, dict) else one["expectation"].get("value")
        facts[text_of(one.get("assessment_name")) or "expected"] = value
    return facts


def _expected(given: Any) -> list[dict[str, Any]]:
    return [dictionary for dictionary in dictionaries(given) if isinstance(dictionary.get("expectation"), dict)]


def _recorded(
    name: str, passed: bool | None, score: float | None, reason: Any, about: Mapping[str, Any]
) -> dict[str, Any]:
    more = {key: value for key, value in about.items() if value is not None}
    return {"name": name, "passed": passed, "score": score, "reason": text_of(reason), **more}


def scores_by_name(scores: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """The numbers among the scores of a whole trace; none for a name with several that differ."""
    values: dict[str, set[float]] = {}
    for score in scores:
        if score["score"] is not None and "span" not in score:
            values.setdefault(score["name"], set()).add(score["score"])
    return {name: numbers.pop() for name, numbers in values.items() if len(numbers) == 1}
