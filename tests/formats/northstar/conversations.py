"""Recorded conversations for tests of graders."""

from __future__ import annotations

from typing import Any

from evalwright.northstar import EvalCase, EvalSuite

__all__ = ["call", "case", "grade", "says", "tool"]


def says(text: Any, *calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **({"tool_calls": list(calls)} if calls else {})}


def call(name: str, arguments: Any = "{}", call_id: str = "c1") -> dict[str, Any]:
    return {"id": call_id, "function": {"name": name, "arguments": arguments}}


def tool(content: Any, call_id: str = "c1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def case(*messages: dict[str, Any], case_id: str = "a", **more: Any) -> EvalCase:
    expected = more.pop("expected", {})
    return EvalCase(id=case_id, messages=list(messages), expected=expected, **more)


def grade(name: str, *messages: dict[str, Any], metrics: dict[str, Any] | None = None, **expected: Any) -> Any:
    """The grade of the default suite's grader `name` on these messages."""
    result = EvalSuite().run([case(*messages, expected=expected, metrics=metrics or {})])
    return next(found for found in result.case_results[0].grades if found.name == name)
