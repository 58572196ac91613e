"""Cases as NorthStar files write them, and the mistakes in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, StrictStr, ValidationError

from evalwright.errors import Problem, did_you_mean
from evalwright.files.key_paths import bracketed
from evalwright.formats.northstar.records import Record, json_kind
from evalwright.formats.shared.findings import expectation, remedy
from evalwright.model.conversation_case import (
    ConversationExpectation,
    ExpectedStateTransition,
    ExpectedToolArguments,
    TraceExpectation,
)

__all__ = ["EvalCase", "EvalMetrics", "checked"]


class EvalMetrics(BaseModel):
    """The measurements of a recorded run; null for those not taken."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    latency_ms: float | None = None
    cost_usd: float | None = None


class EvalCase(BaseModel):
    """One recorded conversation and what is expected of it."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    id: StrictStr
    input: Any = None
    trace: dict[str, Any] | None = None
    """The exported trace of the run; looked at when the case is judged."""
    messages: list[dict[str, Any]]
    expected: ConversationExpectation = Field(default_factory=ConversationExpectation)
    metrics: EvalMetrics = Field(default_factory=EvalMetrics)
    metadata: dict[str, Any] = Field(default_factory=dict)


def checked(record: Record, file: str) -> tuple[EvalCase | None, list[Problem]]:
    """The case of a record, or everything that is wrong with it."""
    try:
        return EvalCase.model_validate(record.value), []
    except ValidationError as error:
        problems = error.errors(include_url=False)
    except RecursionError:
        message = f"Invalid eval case ({record.place()}): nested too deeply"
        return None, [Problem(file, message, record.line, bracketed(record.at))]
    return None, list(_problems(record, file, problems))


def _problems(record: Record, file: str, mistakes: Iterable[Any]) -> Iterator[Problem]:
    where = record.place()
    for item in mistakes:
        place = item["loc"]
        message = f"Invalid eval case ({where}): {_message(place, item)}"
        yield Problem(file, message, record.line, bracketed((*record.at, *place)))


_FIELDS: dict[str, type[BaseModel]] = {
    "": EvalCase,
    "expected": ConversationExpectation,
    "expected.trace": TraceExpectation,
    "metrics": EvalMetrics,
    "tool_arguments": ExpectedToolArguments,
    "allowed_state_transitions": ExpectedStateTransition,
}


def _message(place: tuple[Any, ...], item: Any) -> str:
    if item["type"] == "missing":
        return "it is missing"
    if item["type"] == "extra_forbidden":
        above = [step for step in place[:-1] if isinstance(step, str)]
        kind = _FIELDS.get(".".join(above)) or _FIELDS.get(above[-1] if above else "", EvalCase)
        return f"unknown key{did_you_mean(str(place[-1]), kind.model_fields)}"
    wanted = expectation(item["msg"]).replace("a mapping", "an object")
    return f"{wanted}, found {json_kind(item['input'])}{remedy(item['type'], item['input'])}"
