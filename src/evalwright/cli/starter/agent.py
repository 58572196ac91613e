"""The system under test. Replace the body of `answer` with a call of your own agent."""

from __future__ import annotations

from typing import Any


def answer(case: dict[str, Any], variant: dict[str, Any]) -> dict[str, Any]:
    """Called once for each case; may be `async def`."""
    message = case["input"]["user_message"]
    if "open" in message:
        return {
            "final_answer": "On Sunday we are open from 10:00 to 16:00.",
            "tool_calls": [{"name": "look_up_hours", "arguments": {"day": "Sunday"}}],
        }
    return {"final_answer": f"I have noted your request: {message}"}
