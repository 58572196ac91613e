"""What an evaluator of an instrumented application gets (pydantic, because users construct and dump it)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from enum import Enum
from typing import Any

from pydantic import BaseModel, Field, JsonValue, field_validator, model_validator

__all__ = ["UNSET", "Evaluable", "NamedData", "TestCase", "collapse_named_data"]


class _Unset(Enum):
    UNSET = "UNSET"


UNSET = _Unset.UNSET
"""No expectation was given, which is not the same as an expectation of None."""


class NamedData(BaseModel):
    """A JSON value with a name."""

    name: str
    value: JsonValue


class _Values(list[NamedData]):
    """Named values. Release 0.4 had the bare value here: a program that still compares with one gets a warning."""

    __hash__ = None

    def __eq__(self, other: object) -> bool:
        if other is not None and not isinstance(other, list):
            _warn_of_scalar(other)
        return list.__eq__(self, other) is True

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __contains__(self, one: object) -> bool:
        if not _is_named(one):
            _warn_of_scalar(one)
        return list.__contains__(self, one)


def _warn_of_scalar(other: object) -> None:
    warnings.warn(
        f"a list of named values was compared with {type(other).__name__} {str(other)[:60]!r}, which is never equal: "
        "compare collapse_named_data(...) of it, or [0].value",
        stacklevel=3,
    )


class TestCase(BaseModel):
    """The input of the application and the expectation."""

    __test__ = False

    eval_input: list[NamedData] = Field(min_length=1)
    expectation: Any = UNSET
    eval_metadata: dict[str, Any] | None = None
    description: str | None = None
    evaluators: list[str] | None = None

    @model_validator(mode="before")
    @classmethod
    def _accept_older_names(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        given = dict(given)
        if "expected_output" in given:
            given.setdefault("expectation", given["expected_output"])
            del given["expected_output"]
        for key in ("input", "output"):
            if f"eval_{key}" in given:
                given[f"eval_{key}"] = _as_named_data(given[f"eval_{key}"], key)
        return given

    @field_validator("eval_input", "eval_output", check_fields=False)
    @classmethod
    def _with_scalars_named(cls, given: list[NamedData] | None) -> list[NamedData] | None:
        return None if given is None else _Values(given)

    @field_validator("expectation", mode="before")
    @classmethod
    def _unset_as_text(cls, given: Any) -> Any:
        return UNSET if given == "UNSET" else given

    @property
    def expected_output(self) -> Any:
        """The older name of `expectation`."""
        return self.expectation


class Evaluable(TestCase):
    """A test case with the application's output; `eval_output` is None until it has run.

    As in release 0.4, one without an input and without named outputs has the input None.
    """

    __test__ = False

    eval_output: list[NamedData] | None = Field(default=None, min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _accept_no_input(cls, given: Any) -> Any:
        if not isinstance(given, dict) or "eval_input" in given:
            return given
        output = given.get("eval_output")
        named = isinstance(output, list) and output and all(_is_named(item) for item in output)
        return given if named else {**given, "eval_input": None}


def _as_named_data(value: Any, name: str) -> Any:
    """A bare value as one named item; named items unchanged, an absent output as absent."""
    if isinstance(value, list) and all(_is_named(item) for item in value):
        return value
    if value is None and name == "output":
        return None
    return [{"name": name, "value": value}]


def _is_named(value: Any) -> bool:
    return isinstance(value, NamedData) or (isinstance(value, dict) and value.keys() == {"name", "value"})


def collapse_named_data(items: Sequence[NamedData] | None) -> Any:
    """None for no item, the value of a single one, else a mapping by name in which the last duplicate wins."""
    if not items:
        return None
    return items[0].value if len(items) == 1 else {item.name: item.value for item in items}
