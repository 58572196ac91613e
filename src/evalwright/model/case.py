"""A case as its author writes it (pydantic): the canonical form to which every format converts its cases."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, StrictStr

from evalwright.model.conversation_case import ConversationExpectation

__all__ = ["EvalCase", "ExpectedBehavior", "ForeignCase"]

# Factories, because pydantic would deep-copy a mutable default for every case.


class ExpectedBehavior(BaseModel):
    """What the author expects of an answer. Every part is optional."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="ignore", defer_build=True)

    must_call_tools: list[StrictStr] = Field(default_factory=list)
    """Names of tools that must each be called at least once."""
    answer_should_include: list[StrictStr] = Field(default_factory=list)
    answer_should_not_include: list[StrictStr] = Field(default_factory=list)
    facts: dict[StrictStr, Any] = Field(default_factory=dict)
    """Ground truth by name."""
    must_modify_files: list[StrictStr] = Field(default_factory=list)
    must_not_modify_files: list[StrictStr] = Field(default_factory=list)
    conversation: ConversationExpectation | None = None
    """What is expected of the conversation as a whole: tools, phrases, limits, and the goal for judges."""


class EvalCase(BaseModel):
    """One case: an input for the system and what is expected of the answer."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="ignore", ser_json_inf_nan="strings", defer_build=True
    )  # NaN must not silently become null

    id: StrictStr
    input: Any
    """What the system is given; a mapping in eval.yaml datasets."""
    expected: ExpectedBehavior = Field(default_factory=ExpectedBehavior)
    metadata: dict[StrictStr, Any] = Field(default_factory=dict)
    tags: list[StrictStr] = Field(default_factory=list)
    recorded: Any = None
    """A recorded trace of this case, for replay: a mapping in the shape of a stored trace."""
    group: StrictStr | None = None
    """Cases of one group (a conversation, a document) are not independent of each other."""
    schema_version: StrictStr = "1.0"


class ForeignCase(EvalCase):
    """A case of a format other than the native one, with what only such formats have."""

    description: StrictStr | None = None
    note: StrictStr | None = None
    extra: dict[str, Any] = Field(default_factory=dict)
    """What only the case's format has; targets and evaluators may read it."""
    evaluators: list[dict[str, Any]] | None = None
    """Evaluators for this case alone, instead of the suite's; each in the shape of `EvaluatorSpec`."""

    def described(self) -> dict[str, Any] | None:
        """The case as its format reads it, to be shown to people; None if it could not be read."""
        extra = self.extra
        if "load_error" in extra:
            return None
        return {
            "id": self.id,
            "input": self.input,
            "messages": extra.get("input_messages", []),
            "expected": {
                "messages": extra.get("expected_messages", []),
                "answer": extra.get("reference_answer"),
                "outcome": extra.get("expected_outcome"),
            },
            "group": self.group,
            "tags": self.tags,
            "evaluators": [{"name": spec["name"], "type": spec["type"]} for spec in self.evaluators or ()],
        }
