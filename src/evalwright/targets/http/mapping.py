"""Turns the JSON of a response into an Answer, by the paths of `response_mapping`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from evalwright.model.trace import Answer
from evalwright.targets.answers import answer_of
from evalwright.targets.http.paths import JsonPath

__all__ = ["MAPPING_KEYS", "ResponseMapping", "answer_of_parts", "text_of", "tool_call_items"]

_METRICS = {
    "tokens.input": "token_input",
    "tokens.output": "token_output",
    "tokens.thinking": "token_thinking",
    "cost_usd": "cost_usd",
}
MAPPING_KEYS = (
    "final_answer",
    "thinking",
    "structured",
    "messages",
    "tool_calls",
    "tool_results",
    "trace_id",
    *_METRICS,
)

_THINK = re.compile(r"<think>(.*?)(?:</think>|\Z)", re.DOTALL)


class ResponseMapping:
    """The paths of a mapping by the names of what they find. Entries that are not in MAPPING_KEYS are ignored."""

    def __init__(self, paths: Mapping[str, str | None], strip_think: bool) -> None:
        self._paths = {
            name: JsonPath(f"response_mapping.{name}", path)
            for name, path in paths.items()
            if path and name in MAPPING_KEYS
        }
        self._strip_think = strip_think
        self.problems: list[str] = [path.problem for path in self._paths.values() if path.problem]

    def finds_in(self, document: Any) -> bool:
        """Whether any path finds something."""
        return any(path.find(document) not in (None, "", []) for path in self._paths.values())

    def answer(self, document: Any) -> Answer:
        """The Answer in a response; parts without a match are None. Raises TargetError for a wrong shape."""
        found = {name: path.find(document) for name, path in self._paths.items()}
        structured = found.get("structured")
        trace_id = text_of(found.get("trace_id"))
        return answer_of_parts(
            text_of(found.get("final_answer")),
            text_of(found.get("thinking")),
            self._strip_think,
            {
                "structured": structured if isinstance(structured, dict | None) else {"value": structured},
                "messages": _items(found.get("messages")),
                "tool_calls": list(tool_call_items(found.get("tool_calls"))),
                "tool_results": _items(found.get("tool_results")),
                "metrics": {ours: found.get(name) for name, ours in _METRICS.items()},
                "extra": {} if trace_id is None else {"trace_id": trace_id},
            },
        )


def answer_of_parts(answer: str | None, thinking: str | None, strip_think: bool, rest: dict[str, Any]) -> Answer:
    """An Answer whose inline thinking (`<think>`) is moved to `thinking`."""
    if strip_think and answer is not None and "<think>" in answer:
        inline = [block.strip() for block in _THINK.findall(answer)]
        thinking = "\n\n".join(filter(None, [thinking, *inline])) or None
        answer = _THINK.sub("", answer).strip()
    return answer_of({"final_answer": answer, "thinking": thinking, **rest})


def text_of(value: Any) -> str | None:
    """A found value as text: several strings as lines, anything else as Python prints it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "\n".join(value)
    return str(value)


def tool_call_items(value: Any) -> Iterator[dict[str, Any]]:
    """Tool calls in any of the known shapes, as `{id, name, arguments}`; a single one need not be in a list."""
    for item in _items(value):
        if not isinstance(item, dict):
            continue
        function = item.get("function")
        inner = function if isinstance(function, dict) else {}
        name = item.get("name", inner.get("name"))
        if name is None:
            continue
        given = (item.get("arguments"), item.get("input"), inner.get("arguments"))
        arguments = next((value for value in given if value is not None), None)
        if not isinstance(arguments, dict | str | None):
            arguments = {"_raw": arguments}
        yield {"id": item.get("id"), "name": name, "arguments": arguments}


def _items(value: Any) -> list[Any]:
    """Matches as a list. A wildcard may match whole lists, whose items are then the matches."""
    if value is None:
        return []
    if not isinstance(value, list):
        return [value]
    if value and all(isinstance(item, list) for item in value):
        return [item for items in value for item in items]
    return value
