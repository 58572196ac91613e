"""Takes parts of a platform's record over into a trace, by JSONPaths in the record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from evalwright.errors import did_you_mean
from evalwright.files.key_paths import as_written
from evalwright.model.trace import Doubt, Metrics, Output, Trace
from evalwright.model.unread_calls import unread_calls
from evalwright.targets.answer_parts import answer_from, unmeasured

__all__ = ["Merge", "merge_mistakes"]

_LISTS = ("messages", "tool_calls", "tool_results", "spans")
_READ_AS_ANSWER = _LISTS[:3]
_FIELDS = {"output": Output.__struct_fields__, "metrics": Metrics.__struct_fields__}
_MAPPINGS = ("output", "metrics", "extra")
_MERGEABLE = (*_MAPPINGS, *_LISTS)


class Merge:
    """The paths in a trace with the JSONPaths of their values, as `merge_mistakes` accepts them."""

    def __init__(self, merge: dict[str, str]) -> None:
        self._paths = [(path, query, _compiled(query)) for path, query in merge.items()]
        self._unfound = set(merge)
        """Paths that have found nothing so far: if in no record at all, they are most likely misspelt."""

    def apply(self, record: Any, trace: Trace) -> list[Doubt]:
        """Set the parts that the record has. A null says as little as a missing value, and replaces nothing.

        Raises ValueError or TargetError for a value that does not fit, and leaves the trace as it was.
        """
        if not self._paths:
            return [Doubt("merge is empty: nothing of the platform's record was taken over")]
        merged = {name: msgspec.to_builtins(getattr(trace, name)) for name in _MERGEABLE}
        missing, roots = [], set()
        for path, query, compiled in self._paths:
            values = [match.value for match in compiled.find(record)]
            if all(value is None for value in values):
                missing.append({"target": path, "reason": f"{query} found nothing"})
                continue
            self._unfound.discard(path)
            steps = path.split(".")
            roots.add(steps[0])
            _put(merged, steps, values[0] if len(values) == 1 else values)
        if missing:
            earlier = merged["extra"].get("enrichment_warnings") or []
            merged["extra"]["enrichment_warnings"] = [*earlier, *missing]
        notes = self._take_over(merged, roots, trace)
        doubts = [Doubt("a value was replaced or left out", note) for note in notes[:1]]
        never = ((path, query) for path, query, _ in self._paths if path in self._unfound)
        return doubts + [Doubt(f"merge.{path}: {query} found nothing", if_all=True) for path, query in never]

    @staticmethod
    def _take_over(merged: dict[str, Any], roots: set[str], trace: Trace) -> list[str]:
        """Read the merged parts by the rules of their type; the lines returned say what no record can hold."""
        read = [name for name in _READ_AS_ANSWER if name in roots]
        parts = {name: merged.pop(name) for name in read}
        completed = msgspec.convert({**msgspec.to_builtins(trace), **merged}, Trace)
        notes: list[str] = []
        answer = answer_from(parts, notes)
        if "tool_calls" in read and not all(call.name for call in answer.tool_calls):
            raise ValueError("tool_calls: a call has no name")
        if "messages" in read and not (answer.tool_calls or trace.tool_calls):
            for number in unread_calls(parts["messages"]):
                raise ValueError(f"messages[{number}]: its tool call is in a form that nothing reads")
        if unmeasured(completed.metrics, notes):
            raise ValueError(notes[-1])
        for name in merged:
            setattr(trace, name, getattr(completed, name))
        for name in read:
            setattr(trace, name, getattr(answer, name))
        return notes


def merge_mistakes(merge: Any) -> Iterator[tuple[str, str]]:
    """The key and the message of everything in a configuration's `merge` that cannot be used."""
    if not isinstance(merge, dict):
        yield "merge", f"'merge' must be a mapping, found {as_written(merge)}"
        return
    for path, query in merge.items():
        if mistake := _path_mistake(str(path)):
            yield f"merge.{path}", mistake
        if not isinstance(query, str):
            yield f"merge.{path}", f"expected a JSONPath, found {as_written(query)}"
            continue
        try:
            _compiled(query)
        except Exception as error:
            yield f"merge.{path}", f"not a JSONPath: {error}"


def _path_mistake(path: str) -> str:
    root, *steps = path.split(".")
    if root not in _MERGEABLE:
        return f"expected a path below one of {', '.join(_MERGEABLE)}"
    if "" in steps:
        return "expected names between the dots"
    if steps and root in _LISTS:
        return f"{root} is a list, which can only be merged as a whole"
    fields = _FIELDS.get(root)
    if fields and steps and steps[0] not in fields:
        near = did_you_mean(steps[0], fields) or f" (there are: {', '.join(fields)})"
        return f"{root} has no {steps[0]!r}{near}"
    if fields and len(steps) > 1 and steps[0] not in ("structured", "custom"):
        return f"{root}.{steps[0]} is no mapping"
    return ""


def _compiled(query: str) -> Any:
    from evalwright.sandbox.jsonpaths import parsed

    return parsed(query if query.startswith("$") else f"$.{query}")


def _put(merged: dict[str, Any], steps: list[str], value: Any) -> None:
    """Set a value. A single value becomes a list where the trace has one; a mapping completes the trace's own."""
    root = steps[0]
    if root in _LISTS:
        merged[root] = value if isinstance(value, list) else [value]
    elif len(steps) == 1 and isinstance(value, dict):
        fields = _FIELDS.get(root)
        if unread := sorted(set(value).difference(fields or value)):
            raise ValueError(f"{root} has no {', '.join(unread)} (there are: {', '.join(fields or ())})")
        merged[root] = {**merged[root], **value}
    else:
        place: Any = merged
        for step in steps[:-1]:
            if not isinstance(place.get(step), dict):
                place[step] = {}
            place = place[step]
        place[steps[-1]] = value
