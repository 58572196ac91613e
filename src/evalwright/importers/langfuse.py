"""Traces of Langfuse: with `observations`, or observations alone, in the forms of its API, of the download of a trace
and of its scheduled exports to files.

The shapes are those of its API's models and of its reference of exported fields. Older names of usage and cost are
read, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from evalwright.importers.platform_documents import number_under, platform_objects, text_of
from evalwright.importers.platform_scores import langfuse_scores
from evalwright.importers.record_values import described, dictionaries
from evalwright.importers.span_files import Lose
from evalwright.importers.span_messages import json_content
from evalwright.importers.spans import ReadSpans, SpanImporter
from evalwright.importers.wire_spans import WireSpan, moment_ns

__all__ = ["LangfuseTraces"]

_KINDS = {
    "GENERATION": "LLM", "TOOL": "TOOL", "AGENT": "AGENT", "CHAIN": "CHAIN", "RETRIEVER": "RETRIEVER",
    "EMBEDDING": "EMBEDDING",
}  # fmt: skip
_VALUES = (("input", "input.value"), ("output", "output.value"))
_IDS = (("sessionId", "session.id"), ("userId", "user.id"))
_WORD = re.compile("_([a-z])")
"""The beginning of a word in a name, but the first one."""


def read(source: Path, lose: Lose) -> Iterator[WireSpan]:
    """The spans of a file: a trace with its observations is the span around them."""
    for place, trace in platform_objects(source, lose):
        listed = trace.get("data") if isinstance(trace.get("data"), list) else [trace]
        for item in map(_as_api, dictionaries(listed)):
            trace_id = text_of(item.get("traceId"))
            if ids := _listed_ids(item):
                yield from _listed_trace(item, ids, place, lose)
            elif isinstance(item.get("observations"), list):
                yield from _spans_of_trace(item, place, lose)
            elif trace_id is not None and "dataType" in item and "startTime" not in item:
                for observation, score in langfuse_scores([item], place, lose):
                    yield WireSpan(trace_id, observation or "", scores=[score])
            elif trace_id is not None:
                span = _observation(item, None, place, lose)
                span.scores = [score for _, score in langfuse_scores(item.get("scores"), place, lose)]
                yield span
            elif "bookmarked" in item and (id := text_of(item.get("id"))) is not None:
                yield WireSpan(id, "", attributes=_attributes(item))
            else:
                lose(place, "expected a trace with observations, an observation with a traceId, or a score of one")


def _as_api(item: dict[str, Any]) -> dict[str, Any]:
    """An object in the form of the API; a downloaded trace is beside its observations, and exports to files have other
    names and empty texts."""
    trace, observations = item.get("trace"), item.get("observations")
    if isinstance(trace, dict) and isinstance(observations, list):
        return {**trace, "observations": observations}
    if "project_id" not in item and "trace_id" not in item:
        return item
    return {_WORD.sub(lambda match: match[1].upper(), key): value for key, value in item.items() if value != ""}


def _listed_ids(trace: Mapping[str, Any]) -> list[str]:
    """The ids that a trace in a list of the API has in place of its observations."""
    listed = trace.get("observations")
    ids = [id for id in listed if isinstance(id, str)] if isinstance(listed, list) else []
    return ids if isinstance(listed, list) and len(ids) == len(listed) and text_of(trace.get("id")) else []


def _listed_trace(trace: Mapping[str, Any], ids: Sequence[str], place: str, lose: Lose) -> Iterator[WireSpan]:
    """What such a trace says of itself, and of observations that may be elsewhere in the files."""
    id = str(trace["id"])
    for observation, score in langfuse_scores(trace.get("scores"), place, lose):
        yield WireSpan(id, observation or "", scores=[score])
    yield WireSpan(id, "", attributes=_attributes(trace))
    yield from (WireSpan(id, observation) for observation in ids)


def _spans_of_trace(trace: Mapping[str, Any], place: str, lose: Lose) -> Iterator[WireSpan]:
    id = text_of(trace.get("id"))
    listed = [*dictionaries(trace["observations"])]
    if id is None or len(listed) < len(trace["observations"]):
        lose(place, "expected a trace with an id, whose observations are objects")
        return
    spans = [_observation({"traceId": id, **one}, id, place, lose) for one in listed]
    ids = {span.span_id for span in spans}
    scores: dict[str | None, list[dict[str, Any]]] = {}
    for observation, score in langfuse_scores(trace.get("scores"), place, lose):
        missing = observation is not None and observation not in ids
        about = {**score, "span": observation} if missing else score
        scores.setdefault(None if missing else observation, []).append(about)
    for span in spans:
        span.scores = scores.get(span.span_id, [])
    for span in spans:
        span.parent_id = span.parent_id if span.parent_id in ids else id
    inside = [span for span in spans if span.parent_id == id]
    faults: list[str] = []
    started = moment_ns(trace.get("timestamp"), "timestamp", faults)
    times = [time for span in spans for time in (span.started_at, span.finished_at) if time is not None]
    only = inside[0] if len(inside) == 1 else None
    yield WireSpan(
        id,
        id,
        text_of(trace.get("name")) or "trace",
        None,
        started or min(times, default=None),
        max([*times, started or 0], default=0) or None,
        only.status if only is not None else "unset",
        only.message if only is not None else None,
        {
            "openinference.span.kind": "CHAIN",
            **_attributes(trace),
        },
        faults=faults,
        scores=scores.get(None, []),
    )
    yield from spans


def _observation(observation: Mapping[str, Any], trace_id: str | None, place: str, lose: Lose) -> WireSpan:
    faults: list[str] = []
    kind = str(observation.get("type", "SPAN")).upper()
    started = moment_ns(observation.get("startTime"), "startTime", faults)
    failed = observation.get("level") == "ERROR"
    return WireSpan(
        trace_id or text_of(observation.get("traceId")) or "unidentified",
        text_of(observation.get("id")) or "",
        text_of(observation.get("name")) or kind.lower(),
        text_of(observation.get("parentObservationId")),
        started,
        moment_ns(observation.get("endTime"), "endTime", faults) or (started if kind == "EVENT" else None),
        "error" if failed else "unset",
        text_of(observation.get("statusMessage")) if failed else None,
        {
            **({"openinference.span.kind": _KINDS[kind]} if kind in _KINDS else {}),
            **({"llm.model_name": model} if (model := _model(observation)) is not None else {}),
            **(_messages(observation) if kind == "GENERATION" else {}),
            **_attributes(observation),
            **_usage(observation, place, lose),
        },
        faults=faults,
    )


def _model(observation: Mapping[str, Any]) -> str | None:
    return text_of(observation.get("model")) or text_of(observation.get("providedModelName"))


def _attributes(observation: Mapping[str, Any]) -> dict[str, Any]:
    """What traces and observations have in common."""
    attributes = {name: observation[key] for key, name in _VALUES if observation.get(key) is not None}
    attributes |= {name: observation[key] for key, name in _IDS if text_of(observation.get(key)) is not None}
    metadata, tags = json_content(observation.get("metadata")), observation.get("tags")
    attributes |= {"metadata": metadata} if isinstance(metadata, dict) and metadata else {}
    return attributes | ({"tag.tags": tags} if isinstance(tags, list) and tags else {})


def _messages(observation: Mapping[str, Any]) -> dict[str, Any]:
    """The messages of a model call, if input and output are messages. Newer versions of the API give them as text."""
    messages: dict[str, Any] = {}
    for key, name in (("input", "llm.input_messages"), ("output", "llm.output_messages")):
        value = json_content(observation.get(key))
        value = value.get("messages", value) if isinstance(value, dict) else value
        listed = value if isinstance(value, list) else [value]
        if listed and all(isinstance(message, dict) and "role" in message for message in listed):
            messages[name] = listed
    return messages


_KINDS_OF_TOKENS = {
    "llm.token_count.prompt": ("input",),
    "llm.token_count.completion": ("output",),
    "llm.token_count.completion_details.reasoning": ("reasoning",),
    "llm.token_count.prompt_details.cache_read": ("cached", "cache_read"),
    "llm.token_count.prompt_details.cache_write": ("cache_write", "cache_creation"),
}
"""Words in the names of counts that are parts of a number of tokens, as Langfuse itself adds them up."""
_OLDER = {
    "llm.token_count.prompt": ("promptTokens",),
    "llm.token_count.completion": ("completionTokens",),
    "llm.cost.total": ("totalCost", "calculatedTotalCost"),
}


def _usage(observation: Mapping[str, Any], place: str, lose: Lose) -> dict[str, Any]:
    """Tokens and dollars; the input is the sum of all its kinds, cached or not."""

    def numbers(name: str) -> dict[str, float]:
        return _numbers(observation.get(name), place, lose, f"{name}.")

    costs, older = numbers("costDetails"), numbers("usage")
    # without a total it is their sum, as in Langfuse
    tokens: dict[str, Any] = {"llm.cost.total": costs.get("total", sum(costs.values()) if costs else None)}
    details, usage = observation.get("usageDetails"), observation.get("usage")
    unit = usage.get("unit") if isinstance(usage, dict) else None
    if isinstance(details, dict) or unit in (None, "TOKENS"):
        counts = numbers("usageDetails") if isinstance(details, dict) else older
        tokens |= {name: _sum(counts, words) for name, words in _KINDS_OF_TOKENS.items()}
    else:
        lose(place, f"usage: expected the unit TOKENS, found {described(unit)}")
    own = _numbers({key: observation.get(key) for keys in _OLDER.values() for key in keys}, place, lose)
    for name, keys in _OLDER.items():
        if name in tokens and tokens[name] is None:
            # zeros are those of observations that nothing was counted for, or whose model has no price
            tokens[name] = next(filter(None, (holder.get(key) for holder in (own, older) for key in keys)), None)
    return {key: value for key, value in tokens.items() if value is not None}


def _numbers(holder: Any, place: str, lose: Lose, above: str = "") -> dict[str, float]:
    """The numbers of tokens and dollars under the keys of an object; what cannot be one is lost."""
    numbers: dict[str, float] = {}
    for key, value in holder.items() if isinstance(holder, dict) else ():
        number = number_under(holder, key)
        if number is not None and number >= 0:
            numbers[key] = number
        elif value is not None and key != "unit":
            lose(place, f"{above}{key}: expected a number that is not negative, found {described(value)}")
    return numbers


def _sum(counts: Mapping[str, float], words: Sequence[str]) -> float | None:
    named = [key for key in counts if any(word in key.lower() for word in words) and "cost" not in key.lower()]
    return sum(counts[key] for key in named) if named else None


class LangfuseTraces(SpanImporter):
    """Traces of Langfuse with their observations, or observations alone, as its API returns and its exports have
    them."""

    read: ClassVar[ReadSpans] = staticmethod(read)
