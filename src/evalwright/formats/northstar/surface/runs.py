"""A recorded run as graders see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from pydantic import BaseModel, Field

from evalwright.evaluators.conversation.messages import conversation_of, normalized
from evalwright.evaluators.steps.steps import steps_of_trace
from evalwright.formats.northstar.cases import case_of, trace_of_case
from evalwright.formats.northstar.records import EvalCase, EvalMetrics
from evalwright.formats.northstar.surface.traces import EvalTraceDag, dag_of
from evalwright.model.conversation import Conversation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace

__all__ = ["EvalRun", "ToolCall", "ToolInteraction", "ToolOutput", "canonical", "normalize_messages", "run_of"]


M = TypeVar("M", bound=BaseModel)


class ToolCall(BaseModel):
    """One call; the arguments as they were recorded."""

    id: str | None = None
    name: str
    arguments: Any = None


class ToolOutput(BaseModel):
    """One message of a tool; the content as it was recorded."""

    tool_call_id: str | None = None
    name: str | None = None
    content: Any = None


class ToolInteraction(BaseModel):
    """A call and the last output with its id."""

    call: ToolCall
    output: ToolOutput | None = None


class EvalRun(BaseModel):
    """A conversation taken apart by role, with its trace and what was measured."""

    messages: list[dict[str, Any]] = Field(default_factory=list)
    system_prompts: list[str] = Field(default_factory=list)
    user_messages: list[str] = Field(default_factory=list)
    assistant_messages: list[str] = Field(default_factory=list)
    final_response: str | None = None
    tool_calls: list[ToolCall] = Field(default_factory=list)
    tool_outputs: list[ToolOutput] = Field(default_factory=list)
    tool_interactions: list[ToolInteraction] = Field(default_factory=list)
    trace: Any = None
    """An `EvalTraceDag`, or null."""
    metrics: EvalMetrics = Field(default_factory=EvalMetrics)
    metadata: dict[str, Any] = Field(default_factory=dict)


def normalize_messages(
    messages: Sequence[Mapping[str, Any]],
    *,
    trace: Any = None,
    metrics: EvalMetrics | Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> EvalRun:
    """The run in a list of messages."""
    measured = metrics if isinstance(metrics, EvalMetrics) else EvalMetrics.model_validate(metrics or {})
    kept = [message for message in messages if isinstance(message, dict)]
    return _run(normalized(kept), kept, trace, measured, dict(metadata or {}))


def run_of(case: EvalCase, trace: Trace) -> EvalRun:
    """The run of a case, from its canonical trace."""
    return _run(conversation_of(trace), case.messages, _dag(trace), case.metrics, case.metadata)


def _run(
    conversation: Conversation,
    messages: list[dict[str, Any]],
    trace: Any,
    metrics: EvalMetrics,
    metadata: dict[str, Any],
) -> EvalRun:
    return EvalRun(
        messages=messages,
        system_prompts=conversation.system_prompts,
        user_messages=conversation.user_messages,
        assistant_messages=conversation.assistant_messages,
        final_response=conversation.final_response,
        tool_calls=[_model(ToolCall, call) for call in conversation.tool_calls],
        tool_outputs=[_model(ToolOutput, output) for output in conversation.tool_outputs],
        tool_interactions=[
            ToolInteraction(
                call=_model(ToolCall, pair.call),
                output=None if pair.output is None else _model(ToolOutput, pair.output),
            )
            for pair in conversation.tool_interactions
        ],
        trace=trace,
        metrics=metrics,
        metadata=metadata,
    )


def _model(kind: type[M], record: msgspec.Struct) -> M:
    return kind(**{name: getattr(record, name) for name in record.__struct_fields__})


def canonical(case: EvalCase, run: EvalRun) -> tuple[Case, Trace]:
    """What evaluators judge for a case whose run may be another than the one it recorded."""
    made = case_of(case.model_copy(update={"messages": run.messages, "metrics": run.metrics}))
    return made, trace_of_case(made)


def _dag(trace: Trace) -> EvalTraceDag | None:
    steps = steps_of_trace(trace)
    return None if steps is None else dag_of(steps)
