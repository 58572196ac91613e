"""What a case expects of a conversation, as its author writes it (pydantic): the twin of `model.conversation`.

Unknown keys are rejected at every level; numbers may be written as strings, booleans as yes or no, and a single string
in place of a list.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, StrictStr, WithJsonSchema

__all__ = ["ConversationExpectation", "ExpectedStateTransition", "ExpectedToolArguments", "TraceExpectation"]


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _not_negative(value: float) -> float:
    if not value >= 0:
        raise ValueError("must be non-negative")
    return value


def _positive(value: int) -> int:
    if value <= 0:
        raise ValueError("must be positive")
    return value


def _share(value: float) -> float:
    if not 0 <= value <= 1:
        raise ValueError("must be between 0 and 1")
    return value


_STRING = {"type": "string"}
_Texts = Annotated[
    list[StrictStr],
    BeforeValidator(_as_list),
    WithJsonSchema({"anyOf": [_STRING, {"type": "array", "items": _STRING}]}),
]
_Amount = Annotated[float, AfterValidator(_not_negative), WithJsonSchema({"type": "number", "minimum": 0})]
_Share = Annotated[float, AfterValidator(_share), WithJsonSchema({"type": "number", "minimum": 0, "maximum": 1})]
_Count = Annotated[int, AfterValidator(_not_negative), WithJsonSchema({"type": "integer", "minimum": 0})]
_Number = Annotated[int, AfterValidator(_positive), WithJsonSchema({"type": "integer", "minimum": 1})]


class _Strict(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", ser_json_inf_nan="constants", defer_build=True)


class ExpectedToolArguments(_Strict):
    """Arguments that at least one call of a tool must have."""

    name: StrictStr
    arguments: dict[str, Any]


class ExpectedStateTransition(_Strict):
    """A change of state that is allowed."""

    from_state: StrictStr
    to_state: StrictStr


class TraceExpectation(_Strict):
    """What is expected of the steps inside a run."""

    max_repeated_tool_calls: _Number | None = None
    allowed_state_transitions: list[ExpectedStateTransition] | None = None
    relevant_retrieval_ids: list[StrictStr] | None = None
    min_retrieval_precision: _Share | None = None
    min_retrieval_recall: _Share | None = None
    max_step_cost_usd: _Amount | None = None


class ConversationExpectation(_Strict):
    """What is expected of a conversation; null expects nothing, unlike an empty list or text."""

    goal: StrictStr | None = None
    ground_truth: StrictStr | None = None
    context: _Texts | None = None
    rubric: StrictStr | None = None
    required_tools: _Texts | None = None
    forbidden_tools: _Texts | None = None
    tool_sequence: _Texts | None = None
    contains: _Texts | None = None
    not_contains: _Texts | None = None
    tool_arguments: list[ExpectedToolArguments] | None = None
    require_tool_output_reference: bool | None = None
    max_tool_calls: _Count | None = None
    max_latency_ms: _Amount | None = None
    max_cost_usd: _Amount | None = None
    trace: TraceExpectation | None = None
