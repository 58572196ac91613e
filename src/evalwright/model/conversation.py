"""A recorded conversation as evaluators see it, and what a case expects of one (produced)."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

__all__ = [
    "Conversation",
    "ConversationExpected",
    "ExpectedArguments",
    "StateTransition",
    "ToolInteraction",
    "ToolOutput",
    "ToolUse",
    "TraceExpected",
]

_Count = Annotated[int, msgspec.Meta(ge=0)]
_Amount = Annotated[float, msgspec.Meta(ge=0)]
_Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class ToolUse(msgspec.Struct, gc=False):
    """One call of a tool; the arguments are raw: JSON text, a mapping, or whatever else was recorded."""

    id: str | None
    name: str
    arguments: Any


class ToolOutput(msgspec.Struct, gc=False):
    """One message of a tool; its content is raw."""

    tool_call_id: str | None
    name: str | None
    content: Any


class ToolInteraction(msgspec.Struct, gc=False):
    """A call and its outcome: the last message with its id."""

    call: ToolUse
    output: ToolOutput | None


class Conversation(msgspec.Struct, gc=False):
    """Messages separated by role; `final_response` is the system's last text, null if there is none."""

    messages: list[Any] = []
    system_prompts: list[str] = []
    user_messages: list[str] = []
    assistant_messages: list[str] = []
    final_response: str | None = None
    tool_calls: list[ToolUse] = []
    tool_outputs: list[ToolOutput] = []

    @property
    def tool_interactions(self) -> list[ToolInteraction]:
        """The calls with their outputs. A call with an empty id gets none, since other calls may have an empty id,
        too."""
        by_id = {output.tool_call_id: output for output in self.tool_outputs}
        return [ToolInteraction(call, by_id.get(call.id) if call.id else None) for call in self.tool_calls]


class ExpectedArguments(msgspec.Struct, gc=False):
    """Arguments that at least one call of a tool must have."""

    name: str
    arguments: dict[str, Any]


class StateTransition(msgspec.Struct, gc=False):
    """A change of state that is allowed."""

    from_state: str
    to_state: str


class TraceExpected(msgspec.Struct, gc=False, omit_defaults=True):
    """What is expected of the steps inside a run; null expects nothing."""

    max_repeated_tool_calls: Annotated[int, msgspec.Meta(gt=0)] | None = None
    allowed_state_transitions: list[StateTransition] | None = None
    relevant_retrieval_ids: list[str] | None = None
    min_retrieval_precision: _Share | None = None
    min_retrieval_recall: _Share | None = None
    max_step_cost_usd: _Amount | None = None


class ConversationExpected(msgspec.Struct, gc=False, omit_defaults=True):
    """What is expected of a conversation; null expects nothing, unlike an empty list or text."""

    goal: str | None = None
    ground_truth: str | None = None
    context: list[str] | None = None
    rubric: str | None = None
    required_tools: list[str] | None = None
    forbidden_tools: list[str] | None = None
    tool_sequence: list[str] | None = None
    contains: list[str] | None = None
    not_contains: list[str] | None = None
    tool_arguments: list[ExpectedArguments] | None = None
    require_tool_output_reference: bool | None = None
    max_tool_calls: _Count | None = None
    max_latency_ms: _Amount | None = None
    max_cost_usd: _Amount | None = None
    trace: TraceExpected | None = None
