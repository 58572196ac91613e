"""The prompts of AgentV's judges: the names in double braces, and the values that replace them."""

from __future__ import annotations

import json
import re
from typing import Any

from evalwright.errors import shorten
from evalwright.evaluators.combined.aggregators import MEMBER_RESULTS
from evalwright.evaluators.tools.calls import TracedCall, calls_of, messages_of
from evalwright.formats.agentv.message_texts import without_places
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace

__all__ = ["DEFAULT_PROMPT", "filled_prompt", "prompt_values"]

_NAME = re.compile(r"\{\{\s*([A-Za-z_]+)\s*\}\}")
_ALIASES = {
    "input": "question", "output": "candidate_answer", "answer": "candidate_answer", "criteria": "expected_outcome",
    "outcome": "expected_outcome", "expected_output": "reference_answer",
}  # fmt: skip
DEFAULT_PROMPT = """\
Judge whether the candidate answer meets the criterion.

Criterion:
{{ expected_outcome }}

Question:
{{ question }}

Reference answer (may be empty):
{{ reference_answer }}

Note of the author (may be empty):
{{ note }}

Candidate answer:
{{ candidate_answer }}
"""
_FOUND = {"file_changes": "Changes of files", "tool_calls": "Tool calls"}
_LONGEST_ARGUMENTS = 300


def prompt_values(case: Case, trace: Trace) -> dict[str, str]:
    """The values for the names in double braces."""
    extra = case.extra
    return {
        "question": str(extra.get("prompt") or extra.get("question") or case.input).strip(),
        "expected_outcome": str(extra.get("expected_outcome") or "").strip(),
        "candidate_answer": (trace.output.final_answer or "").strip(),
        "reference_answer": str(extra.get("reference_answer") or "").strip(),
        "input_messages": _json(without_places(extra.get("input_messages") or [])),
        "expected_messages": _json(without_places(extra.get("expected_messages") or [])),
        "output_messages": _json(messages_of(trace)),
        "file_changes": str(trace.extra.get("file_changes") or ""),
        "note": case.note or "",
        "description": case.description or "",
        "conversation_id": case.group or "",
        "metadata": _json(case.metadata),
        "metadata_json": json.dumps(case.metadata, ensure_ascii=False, separators=(",", ":")),
        "tool_calls": "\n".join(map(_call_line, calls_of(trace))),
        **({MEMBER_RESULTS: extra[MEMBER_RESULTS]} if MEMBER_RESULTS in extra else {}),
    }


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def filled_prompt(template: str, values: dict[str, str]) -> str:
    """Fill in a template in one pass: braces in values are never expanded, and unknown names are left as they are.

    The default prompt also gets the system's file changes and tool calls, if there are any, as in AgentV 4.
    """

    def value(match: re.Match[str]) -> str:
        return values.get(_ALIASES.get(match[1], match[1]), match[0])

    sections = {name: heading for name, heading in _FOUND.items() if template == DEFAULT_PROMPT and values.get(name)}
    return _NAME.sub(value, template) + "".join(f"\n{heading}:\n{values[name]}\n" for name, heading in sections.items())


def _call_line(call: TracedCall) -> str:
    if not call.args:
        return f"- {call.name}"
    return f"- {call.name}: {shorten(json.dumps(call.args, ensure_ascii=False), _LONGEST_ARGUMENTS)}"
