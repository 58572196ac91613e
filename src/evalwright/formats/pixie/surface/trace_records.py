"""The records of pixie's trace files as models, for programs that read or make them."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

__all__ = [
    "ENTRY_KWARGS_KEY",
    "EntryInputLog",
    "LLMSpanLog",
    "WrapNameCollisionError",
    "WrappedData",
    "filter_by_purpose",
]

ENTRY_KWARGS_KEY = "app_input"
"""The name of a run's arguments among the inputs of an entry."""


class WrapNameCollisionError(ValueError):
    """Two marked points of one run have the same name."""


class WrappedData(BaseModel):
    """A value that passed a marked point."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True)

    type: str = "wrap"
    name: str
    purpose: Literal["input", "output", "state"]
    data: JsonValue
    description: str | None = None
    trace_id: str | None = None
    span_id: str | None = None


def filter_by_purpose(entries: Sequence[WrappedData], purposes: Set[str]) -> list[WrappedData]:
    """The values that passed points with these purposes."""
    return [entry for entry in entries if entry.purpose in purposes]


class EntryInputLog(BaseModel):
    """The arguments of the run."""

    type: Literal["kwargs"] = "kwargs"
    value: dict[str, JsonValue]


class LLMSpanLog(BaseModel):
    """A model call."""

    type: Literal["llm_span"] = "llm_span"
    operation: str | None = None
    provider: str | None = None
    request_model: str | None = None
    response_model: str | None = None
    input_messages: list[dict[str, Any]] = Field(default_factory=list)
    output_messages: list[dict[str, Any]] = Field(default_factory=list)
    tool_definitions: list[dict[str, Any]] = Field(default_factory=list)
    finish_reasons: list[str] = Field(default_factory=list)
    output_type: str | None = None
    error_type: str | None = None
