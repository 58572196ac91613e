"""Turns the JSON of a response into an Answer, using the paths of `response_mapping`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from evalwright.model.trace import Answer
from evalwright.model.unread_calls import unread_calls
from evalwright.targets.answer_parts import answer_in
from evalwright.targets.http.body import shortened
from evalwright.targets.http.paths import JsonPath

__all__ = [
    "MAPPING_KEYS",
    "METRICS",
    "NEEDED",
    "ResponseMapping",
    "answer_of_parts",
    "strange_find",
    "text_of",
    "tool_call_in",
    "tool_call_items",
]

_MARKS = {
    "messages": ("role", "content", "thinking", "tool_call", "tool_calls"),
    "tool_results": ("content",),
}
"""Keys for the items of a list that was found: an item with none of them would lose its content."""
_EXPECTED = {
    "messages": "a text, or a mapping with role and content",
    "tool_calls": "a mapping with name and arguments, or with function",
    "tool_results": "a text, or a mapping with content, name and tool_call_id",
}
METRICS = {
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
    *METRICS,
)

NEEDED = ("final_answer", "structured")
"""What a reply must have where the mapping points: without it there is nothing to judge."""

_THINK = re.compile(r"<think>(.*?)(?:</think>|\Z)", re.DOTALL)


class ResponseMapping:
    """The paths of a mapping by the names of what they find. Entries that are not in MAPPING_KEYS are ignored.

    `defaults` are the paths that a provider is known to use; the suite's own `paths` take precedence.
    """

    def __init__(self, paths: Mapping[str, str | None], defaults: Mapping[str, str], strip_think: bool) -> None:
        self._own = frozenset(paths)
        self._paths = {
            name: JsonPath(f"response_mapping.{name}", path)
            for name, path in {**defaults, **paths}.items()
            if path and name in MAPPING_KEYS
        }
        self._strip_think = strip_think
        self.problems: list[str] = [path.problem for path in self._paths.values() if path.problem]

    def parts(self, document: Any) -> dict[str, Any]:
        """What each path finds; None if it finds nothing. Raises TargetError."""
        return {name: path.find(document) for name, path in self._paths.items()}

    def missing(self, parts: Mapping[str, Any], document: Any, needed: Collection[str]) -> list[str]:
        """The paths of `needed` parts that find nothing in a document with these parts.

        A reply that calls tools needs no text. What a path of the suite points to must still be there, even if null:
        nothing else distinguishes such a path from a misspelt one.
        """
        acted = any(True for _ in tool_call_items(parts.get("tool_calls")))
        failed_paths = []
        for name in needed:
            path = self._paths.get(name)
            if path is None or not _is_absent(parts[name]):
                continue
            there = path.matches(document)
            if not (acted and (there or name not in self._own)):
                failed_paths.append(f"{path.written} finds {'null' if there == [None] else 'nothing'}")
        return failed_paths

    def strange(self, parts: Mapping[str, Any]) -> list[str]:
        """Warnings of finds of the wrong kind: silently left out, they would seem not to have happened."""
        messages = _items(parts.get("messages"))
        lost = next(unread_calls(messages), None) if messages and not parts.get("tool_calls") else None
        return [
            strange_find(self._paths[name].written, name, item)
            for name in _EXPECTED
            if (item := next(_strange_items(name, parts.get(name)), None)) is not None
        ] + ([] if lost is None else [_lost_call(self._paths["messages"].written, messages[lost])])

    def unread_numbers(self, parts: Mapping[str, Any], answer: Answer) -> Iterator[tuple[str, str]]:
        """The paths of numbers whose finds are not in the answer of these parts, and what they found."""
        for name, ours in METRICS.items():
            if (value := parts.get(name)) is not None and getattr(answer.metrics, ours) is None:
                yield self._paths[name].written, repr(value)

    def unmatched_paths(self, parts: Mapping[str, Any], document: Any, names: Collection[str]) -> list[str]:
        """The paths among these without any match in a document with these parts."""
        return [name for name in names if parts[name] is None and not self._paths[name].matches(document)]

    @property
    def own(self) -> dict[str, str]:
        """The paths written in the suite, as messages show them, by the names of the parts they find."""
        return {name: path.written for name, path in self._paths.items() if name in self._own}

    def answer(self, parts: Mapping[str, Any]) -> Answer:
        """The Answer of these parts. Raises TargetError for a wrong shape."""
        structured = parts.get("structured")
        trace_id = text_of(parts.get("trace_id"))
        return answer_of_parts(
            text_of(parts.get("final_answer")),
            text_of(parts.get("thinking")),
            self._strip_think,
            {
                "structured": structured if isinstance(structured, dict | None) else {"value": structured},
                "messages": _items(parts.get("messages")),
                "tool_calls": list(tool_call_items(parts.get("tool_calls"))),
                "tool_results": _items(parts.get("tool_results")),
                "metrics": {ours: parts.get(name) for name, ours in METRICS.items()},
                "extra": {} if trace_id is None else {"trace_id": trace_id},
            },
        )


def answer_of_parts(answer: str | None, thinking: str | None, strip_think: bool, rest: dict[str, Any]) -> Answer:
    """An Answer whose inline thinking (`<think>`) is moved to `thinking`."""
    if strip_think and answer is not None and "<think>" in answer:
        inline = [block.strip() for block in _THINK.findall(answer)]
        thinking = "\n\n".join(filter(None, [thinking, *inline])) or None
        answer = _THINK.sub("", answer).strip()
    return answer_in({"final_answer": answer, "thinking": thinking, **rest})


def text_of(value: Any) -> str | None:
    """A found value as text: several strings as lines, anything else as Python prints it. Nulls in a list, as of parts
    without text, are no text."""
    if value is None or isinstance(value, str):
        return value
    texts = [item for item in value if item is not None] if isinstance(value, list) else [value]
    if not texts:
        return None
    return "\n".join(texts) if all(isinstance(text, str) for text in texts) else str(value)


def tool_call_items(value: Any) -> Iterator[dict[str, Any]]:
    """Tool calls in any of the known shapes, as `{id, name, arguments}`; a single one need not be in a list."""
    for item in _items(value):
        if (call := tool_call_in(item)) is not None and call["name"] is not None:
            yield call


def tool_call_in(item: Any) -> dict[str, Any] | None:
    """The `{id, name, arguments}` of an item, which may be a fragment without a name; None if it is no mapping."""
    if not isinstance(item, dict):
        return None
    function = item.get("function") or item.get("custom")
    inner = function if isinstance(function, dict) else {}
    candidates = (part.get(key) for part in (item, inner) for key in ("arguments", "input", "args"))
    arguments = next((value for value in candidates if value is not None), None)
    if not isinstance(arguments, dict | str | None):
        arguments = {"_raw": arguments}
    return {"id": item.get("id"), "name": item.get("name", inner.get("name")), "arguments": arguments}


def strange_find(path: str, name: str, found: Any) -> str:
    """The message about something that the path of a part found and that is not such a part."""
    return f"{path} finds {shortened(str(found), 80)!r}, expected {_EXPECTED[name]}"


def _lost_call(path: str, message: Any) -> str:
    return (
        f"{path} finds a message with a tool call that nothing reads, {shortened(str(message), 80)!r}: "
        "let response_mapping.tool_calls find the calls"
    )


def _strange_items(name: str, value: Any) -> Iterator[Any]:
    items = [item for item in _items(value) if item is not None]
    if name == "tool_calls":
        yield from (item for item in items if not any(call["name"] for call in tool_call_items([item])))
    else:
        yield from (item for item in items if isinstance(item, dict) and item.keys().isdisjoint(_MARKS[name]))


def _is_absent(value: Any) -> bool:
    """Whether it has no content; an empty text is an answer."""
    return value is None or value in ([], {}) or (isinstance(value, list) and all(item is None for item in value))


def _items(value: Any) -> list[Any]:
    """Matches as a list. If a path matched whole lists, their items are the matches."""
    if value is None:
        return []
    if not isinstance(value, list):
        return [value]
    if any(isinstance(item, list) for item in value):
        return [item for items in value for item in (items if isinstance(items, list) else [items])]
    return value
