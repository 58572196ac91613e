"""Traces with AgentV's messages, and evaluators that judge them."""

from __future__ import annotations

import asyncio
import inspect
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evalwright.evaluators.build import build_evaluator
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Metrics, Output, Trace

__all__ = ["NOW", "call", "judged", "judging_program", "trace"]

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def trace(
    *calls: dict[str, Any], answer: str = "done", metrics: Metrics | None = None, latency: int = 0, **extra: Any
) -> Trace:
    """One message of the system with these calls and this answer."""
    messages = [{"role": "assistant", "content": answer, "tool_calls": list(calls)}]
    return Trace(
        "c",
        "v",
        NOW,
        NOW,
        latency,
        "q",
        Output(answer),
        extra={"output_messages": messages, **extra},
        metrics=metrics or Metrics(),
    )


def call(tool: str, arguments: Any = None, **more: Any) -> dict[str, Any]:
    return {"tool": tool, **({} if arguments is None else {"input": arguments}), **more}


def judged(kind: str, config: dict[str, Any], given: Trace, case: Case | None = None) -> Evaluation:
    evaluation = build_evaluator(kind, config).evaluate(case or Case("c", "q"), given)
    return evaluation if isinstance(evaluation, Evaluation) else asyncio.run(_awaited(evaluation))


async def _awaited(evaluation: Any) -> Evaluation:
    assert inspect.isawaitable(evaluation)
    found: Evaluation = await evaluation
    return found


def judging_program(folder: Path, code: str) -> dict[str, Any]:
    """The configuration of a code judge that runs `code`, to which `document` is what the judge reads."""
    path = folder / "judge.py"
    path.write_text("import json, sys\ndocument = json.load(sys.stdin)\n" + code)
    return {"script": [sys.executable, str(path)]}
