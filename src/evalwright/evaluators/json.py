"""Checks on a value of a trace chosen by path: equality, JSON Schema, comparison."""

from __future__ import annotations

import operator
import re
from typing import Any

import msgspec

from evalwright.errors import InputError, Problem
from evalwright.evaluators.fields import ABSENT, select
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace

__all__ = ["ExactMatch", "FieldCheck", "SchemaMatch"]


class ExactMatch(msgspec.Struct, frozen=True):
    """A field equal to `expected`, or to the fact of the case at `expected_from` (Python equality)."""

    field: str
    expected: Any = msgspec.UNSET
    expected_from: str | None = None

    def __post_init__(self) -> None:
        if self.expected is msgspec.UNSET and self.expected_from is None:
            raise InputError(Problem("", "needs 'expected' or 'expected_from'", key="expected"))

    @property
    def uses_case(self) -> bool:
        return self.expected is msgspec.UNSET

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        expected = self.expected
        if expected is msgspec.UNSET:
            assert self.expected_from is not None
            expected = select(self.expected_from)(case.expected.facts)
            if expected is ABSENT:
                return Evaluation(False, 0.0, f"the case has no fact {self.expected_from!r}")
        found = select(self.field)(trace)
        if found is ABSENT:
            return Evaluation(False, 0.0, f"{self.field} is absent")
        if found == expected:
            return Evaluation(True, 1.0)
        return Evaluation(False, 0.0, f"{self.field} is {_shown(found)}, expected {_shown(expected)}")


class SchemaMatch(msgspec.Struct, frozen=True):
    """A field that satisfies a JSON Schema (draft 2020-12; `format` is not asserted)."""

    schema: dict[str, Any]
    field: str = "output.structured"
    uses_case = False

    def __post_init__(self) -> None:
        _validator(self.schema)

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        detail: dict[str, Any] = {"schema_id": self.schema.get("$id"), "errors": []}
        found = select(self.field)(trace)
        if found is ABSENT:
            return Evaluation(False, 0.0, f"{self.field} is absent", detail)
        errors = [error.message for error in _validator(self.schema).iter_errors(found)]
        if not errors:
            return Evaluation(True, 1.0, "", detail)
        detail["errors"] = errors[:50]
        many = f"{len(errors)} error{'s' if len(errors) > 1 else ''}"
        return Evaluation(False, 0.0, f"{many} against the schema: {errors[0][:120]}", detail)


_validators: dict[int, Any] = {}


def _validator(schema: dict[str, Any]) -> Any:
    """The compiled schema. Raises InputError for one that is no schema."""
    known = _validators.get(id(schema))
    if known is not None and known.schema is schema:
        return known
    from jsonschema import Draft202012Validator, SchemaError

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise InputError(Problem("", f"'schema' is no JSON Schema: {error.message}", key="schema")) from error
    validator = _validators[id(schema)] = Draft202012Validator(schema)
    return validator


class FieldCheck(msgspec.Struct, frozen=True):
    """A field (of the trace, or of the case under `case.`) compared with values; every comparison must hold."""

    field: str
    equals: Any = msgspec.UNSET
    at_least: float | None = None
    at_most: float | None = None
    above: float | None = None
    below: float | None = None
    matches: str | None = None
    """A regular expression that is searched for in the text."""

    def __post_init__(self) -> None:
        bounds = (self.at_least, self.at_most, self.above, self.below, self.matches)
        if self.equals is msgspec.UNSET and all(bound is None for bound in bounds):
            raise InputError(
                Problem("", "needs one of 'equals', 'at_least', 'at_most', 'above', 'below', 'matches'", key="equals")
            )
        if self.matches is not None:
            try:
                re.compile(self.matches)
            except re.error as error:
                raise InputError(Problem("", f"'matches' is no regular expression: {error}", key="matches")) from error

    @property
    def uses_case(self) -> bool:
        return self.field.startswith("case.")

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        record, path = (case, self.field[5:]) if self.uses_case else (trace, self.field)
        found = select(path)(record)
        if found is ABSENT:
            return Evaluation(False, 0.0, f"{self.field} is absent")
        failed = self._failed(found)
        if failed is None:
            return Evaluation(True, 1.0)
        return Evaluation(False, 0.0, f"{self.field} is {_shown(found)}, expected {failed}")

    def _failed(self, found: Any) -> str | None:
        if self.equals is not msgspec.UNSET and found != self.equals:
            return _shown(self.equals)
        number = found if isinstance(found, (int, float)) and not isinstance(found, bool) else None
        for bound, word, holds in (
            (self.at_least, "at least", operator.ge),
            (self.at_most, "at most", operator.le),
            (self.above, "above", operator.gt),
            (self.below, "below", operator.lt),
        ):
            if bound is not None and (number is None or not holds(number, bound)):
                return f"{word} {bound:g}"
        if self.matches is not None and (not isinstance(found, str) or re.search(self.matches, found) is None):
            return f"a text that matches {self.matches!r}"
        return None


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 120 else text[:117] + "..."
