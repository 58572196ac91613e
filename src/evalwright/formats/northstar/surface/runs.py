"""A recorded run as graders see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar, TypeVar

import msgspec
from pydantic import BaseModel, ConfigDict, Field

from evalwright.evaluators.conversation.messages import conversation_of
from evalwright.evaluators.steps.steps import steps_of_trace
from evalwright.formats.northstar.authored import EvalCase, EvalMetrics
from evalwright.formats.northstar.cases import VARIANT, expectations_of
from evalwright.formats.northstar.surface.traces import EvalTraceDag, dag_of, steps_of
from evalwright.model.conversation import Conversation, ToolUse
from evalwright.model.conversation import ToolOutput as RecordedOutput
from evalwright.model.recordings import RECORDING, normalized
from evalwright.model.snapshot import Case
from evalwright.model.trace import Output, Trace

__all__ = ["EvalRun", "ToolCall", "ToolInteraction", "ToolOutput", "canonical", "normalize_messages", "run_of"]


M = TypeVar("M", bound=BaseModel)


class _Record(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


class ToolCall(_Record):
    """One call, with its arguments as recorded."""

    id: str | None = None
    name: str
    arguments: Any = None


class ToolOutput(_Record):
    """One message of a tool, with its content as recorded."""

    tool_call_id: str | None = None
    name: str | None = None
    content: Any = None


class ToolInteraction(_Record):
    """A call and the last output with its id."""

    call: ToolCall
    output: ToolOutput | None = None


class EvalRun(_Record):
    """A conversation split by role, with its trace and measurements."""

    messages: list[dict[str, Any]]
    system_prompts: list[str] = Field(default_factory=list)
    user_messages: list[str] = Field(default_factory=list)
    assistant_messages: list[str] = Field(default_factory=list)
    final_response: str | None = None
    tool_calls: list[ToolCall] = Field(default_factory=list)
    tool_outputs: list[ToolOutput] = Field(default_factory=list)
    tool_interactions: list[ToolInteraction] = Field(default_factory=list)
    trace: EvalTraceDag | None = None
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
    """The input of evaluators: what the case expects and measured, and the run itself, whatever its messages say."""
    conversation = Conversation(
        run.messages,
        run.system_prompts,
        run.user_messages,
        run.assistant_messages,
        run.final_response,
        [ToolUse(call.id, call.name, call.arguments) for call in run.tool_calls],
        [RecordedOutput(output.tool_call_id, output.name, output.content) for output in run.tool_outputs],
    )
    recording = {
        "messages": case.messages,
        "metrics": {"latency_ms": case.metrics.latency_ms},
        "conversation": conversation,
        "steps": None if run.trace is None else steps_of(run.trace),
    }
    now = datetime.now(UTC)
    trace = Trace(case.id, VARIANT, now, now, None, None, Output(run.final_response), extra={RECORDING: recording})
    trace.metrics.cost_usd = case.metrics.cost_usd
    return expectations_of(case), trace


def _dag(trace: Trace) -> EvalTraceDag | None:
    steps = steps_of_trace(trace)
    return None if steps is None else dag_of(steps)
