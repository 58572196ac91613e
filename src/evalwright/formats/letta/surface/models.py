"""The classes that user code of Letta suites receives and returns."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from evalwright.formats.letta.surface.messages import LettaMessage
from evalwright.model.snapshot import Case

__all__ = [
    "AgentState",
    "Block",
    "GradeResult",
    "LettaMessageUnion",
    "Open",
    "PerTurnGrade",
    "RewardOutput",
    "Sample",
    "SampleId",
    "sample_of",
]

LettaMessageUnion = LettaMessage


_Score = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]


class Open(BaseModel):
    """A record that keeps unknown fields."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow")


SampleId = int | str


class Sample(Open):
    """One sample of a dataset; fields that it does not have are None."""

    id: int | str = 0
    input: Any = ""
    """Text, or a text for each message; for a case in another format, its input, whatever it is."""
    ground_truth: str | list[str] | None = None
    tags: list[str] | None = None
    agent_args: dict[str, Any] | None = None
    rubric_vars: dict[str, Any] | None = None
    extra_vars: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    rubric: str | None = None


class PerTurnGrade(Open):
    """The grade of one turn."""

    turn: int = 0
    score: float = 0.0
    rationale: str | None = None
    submission: str = ""
    ground_truth: str | None = None


class GradeResult(BaseModel):
    """What a grader returns. Raises ValueError for a score that is not between 0 and 1."""

    model_config: ClassVar[ConfigDict] = ConfigDict(revalidate_instances="always")

    score: _Score
    rationale: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    per_turn_grades: list[PerTurnGrade] | None = None

    def __init__(self, *values: Any, **fields: Any) -> None:
        super().__init__(**dict(zip(("score", "rationale"), values, strict=False)), **fields)


class RewardOutput(BaseModel):
    """What a reward composer returns."""

    model_config: ClassVar[ConfigDict] = ConfigDict(revalidate_instances="always")

    score: _Score
    metadata: dict[str, Any] = Field(default_factory=dict)

    def __init__(self, *values: Any, **fields: Any) -> None:
        super().__init__(**dict(zip(("score", "metadata"), values, strict=False)), **fields)


class Block(Open):
    """One block of an agent's memory."""

    label: str
    value: str = ""


class Memory(Open):
    """An agent's memory."""

    blocks: list[Block] = Field(default_factory=list)


class AgentState(Open):
    """An agent after its last turn."""

    id: str | None = None
    blocks: list[Block] = Field(default_factory=list)

    @property
    def memory(self) -> Memory:
        """The blocks once more: agents of `letta_client` have them in both places."""
        return Memory(blocks=self.blocks)


def sample_of(case: Case) -> Sample:
    """The sample from which a case was read."""
    extra = case.extra
    return Sample(
        **{
            name: extra[name]
            for name in ("ground_truth", "agent_args", "rubric_vars", "extra_vars", "rubric")
            if name in extra
        },
        **extra.get("unknown", {}),
        id=extra.get("id", case.id),
        input=case.input,
        tags=case.tags or None,
        metadata=case.metadata or None,
    )
