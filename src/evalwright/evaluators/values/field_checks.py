"""Checks of a field of the trace: equality, JSON Schema, comparisons."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property
from typing import Any, Literal

import msgspec

from evalwright.errors import EvaluatorError, Problem, counted, shorten
from evalwright.evaluators.fields import ABSENT, part_of_trace, parts_at, select
from evalwright.evaluators.onlooker import PASSED, Look, Onlooker
from evalwright.evaluators.values.plain_schema import Check, NotPlainJson, asks_for_size, plain_check
from evalwright.evaluators.values.schema_patterns import with_bounded_patterns
from evalwright.evaluators.wording import number, shown
from evalwright.files.numbers import is_number
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace
from evalwright.sandbox.patterns import compiled_pattern, search

__all__ = ["ExactMatch", "FieldCheck", "SchemaMatch", "schema_problems"]

_CHECKING = frozenset({
    "$ref", "$dynamicRef", "additionalProperties", "allOf", "anyOf", "const", "contains", "dependentRequired",
    "dependentSchemas", "enum", "exclusiveMaximum", "exclusiveMinimum", "if", "items", "maxItems", "maxLength",
    "maxProperties", "maximum", "minItems", "minLength", "minProperties", "minimum", "multipleOf", "not", "oneOf",
    "pattern", "patternProperties", "prefixItems", "properties", "propertyNames", "required", "type",
    "unevaluatedItems", "unevaluatedProperties", "uniqueItems",
})  # fmt: skip
"""Keywords of draft 2020-12 that can reject a value; a schema without any of them is satisfied by every value."""
_MOST_ERRORS = 50
"""Errors of one document that are kept; the reason gives their total."""


class ExactMatch(Onlooker, frozen=True):
    """A field equal to `expected`, or to the fact of the case at `expected_from` (Python equality).

    `expected` takes precedence if both are given; a fact that is null is still a fact.
    """

    field: str
    expected: Any = msgspec.UNSET
    expected_from: str | None = None
    without_fact: Literal["fail", "skip"] = "fail"
    """A case without the fact fails, as in the original evalh, or is skipped."""

    @staticmethod
    def config_problems(values: Mapping[str, Any]) -> list[Problem]:
        if "expected" in values or values.get("expected_from") is not None:
            return []
        return [Problem("", "needs 'expected' or 'expected_from', found neither", key="expected")]

    @property
    def reads(self) -> frozenset[str]:
        return parts_at(self.field)

    @property
    def uses_case(self) -> bool:
        return self.expected is msgspec.UNSET

    def looking(self) -> Look:
        always, at, fact = self.expected, select(self.field), select(self.expected_from or "")

        def look(case: Case, trace: Trace) -> Evaluation:
            value, expected = at(trace), always
            if expected is msgspec.UNSET:
                expected = fact(case.expected.facts)
                if expected is ABSENT:
                    skipped = self.without_fact == "skip"
                    reason = f"the case has no fact {self.expected_from!r}"
                    return Evaluation(False, None if skipped else 0.0, reason, skipped=skipped)
            if value is ABSENT:
                return Evaluation(False, 0.0, f"{self.field} is absent, expected {shown(expected)}")
            if value == expected:
                return PASSED
            return Evaluation(False, 0.0, f"{self.field} is {shown(value)}, expected {shown(expected)}")

        return look


def schema_problems(schema: dict[str, Any], validator: Any) -> list[Problem]:
    """Problems of a JSON Schema, found by the `jsonschema` validator of its draft."""
    from jsonschema import SchemaError

    try:
        validator.check_schema(schema)
    except SchemaError as error:
        place = error.json_path.removeprefix("$")
        message = f"'schema' must be a JSON Schema, found: {shorten(error.message)}"
        return [Problem("", message, key=f"schema{place}")]
    return []


def _plain_check(schema: dict[str, Any]) -> Check | None:
    try:
        return plain_check(schema)
    except RecursionError:
        return None


class SchemaMatch(Onlooker, frozen=True):
    """A field that satisfies a JSON Schema (draft 2020-12; `format` is not asserted; nothing is fetched)."""

    schema: dict[str, Any]
    field: str = "output.structured"
    uses_case = False

    @staticmethod
    def config_problems(values: Mapping[str, Any]) -> list[Problem]:
        schema = values.get("schema")
        if not isinstance(schema, dict) or _plain_check(schema) is not None:
            return []  # importing `jsonschema` takes a tenth of the time of a command
        from jsonschema import Draft202012Validator

        return schema_problems(schema, Draft202012Validator)

    @staticmethod
    def config_doubts(config: Mapping[str, Any]) -> list[Problem]:
        schema = config.get("schema")
        if not isinstance(schema, dict) or not _CHECKING.isdisjoint(schema):
            return []
        return [Problem("", "every value satisfies this schema: say what the value must be", key="schema")]

    @property
    def reads(self) -> frozenset[str]:
        return parts_at(self.field)

    def looking(self) -> Look:
        field, read, check = self.field, select(self.field), self._check
        # Turning a whole list into plain data takes longer than looking up its length.
        part = part_of_trace(field) if check is not None and asks_for_size(self.schema) else None
        passed = Evaluation(True, 1.0, "", self._detail())

        def look(case: Case, trace: Trace) -> Evaluation:
            if part is not None and check is not None:
                value = part(trace)
                if value.__class__ is list and not check(value):
                    return passed
            value = read(trace)
            if value is ABSENT:
                return Evaluation(False, 0.0, f"{field} is absent", self._detail())
            errors = self._errors(value)
            return self._wrong(errors) if errors else passed

        return look

    def _detail(self, errors: Sequence[Any] = ()) -> dict[str, Any]:
        messages = [shorten(error.message, 1000) for error in errors[:_MOST_ERRORS]]
        return {"schema_id": self.schema.get("$id"), "errors": messages}

    def _wrong(self, errors: Sequence[Any]) -> Evaluation:
        errors = sorted(errors, key=lambda error: error.path)
        many = counted(len(errors), "error")
        first = f"{errors[0].json_path.replace('$', self.field, 1)}: {shorten(errors[0].message)}"
        return Evaluation(False, 0.0, f"{many} against the schema: {first}", self._detail(errors))

    def _errors(self, value: Any) -> Sequence[Any]:
        if self._check is not None:
            with suppress(NotPlainJson):
                return self._check(value)
        from referencing.exceptions import Unresolvable

        try:
            return list(self._validator.iter_errors(value))
        except Unresolvable as error:
            raise EvaluatorError(
                f"the schema refers to something unknown: {error}", "unresolvable_reference"
            ) from error

    @cached_property
    def _check(self) -> Check | None:
        return _plain_check(self.schema)

    @cached_property
    def _validator(self) -> Any:
        from jsonschema_specifications import REGISTRY

        # With our own registry, the library fetches no references from the network.
        return with_bounded_patterns(_validator_class(), self.schema)(self.schema, registry=REGISTRY)


@cache
def _validator_class() -> Any:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    return extend(Draft202012Validator, {"multipleOf": _multiple_of})  # type: ignore[no-untyped-call]


def _multiple_of(validator: Any, unit: float, value: Any, _schema: Any) -> Iterator[Any]:
    """By the numbers as they are written: in floating point, as the library divides, 19.99 is no multiple of 0.01."""
    from fractions import Fraction

    from jsonschema import ValidationError

    if validator.is_type(value, "number") and Fraction(repr(value)) % Fraction(repr(unit)):
        yield ValidationError(f"{value!r} is not a multiple of {unit!r}")


_Number = int | float
_LONGEST_REASON = 1000
"""Characters of the text that a trace has as the reason."""

_BOUNDS: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "at_least": ("at least", operator.ge),
    "at_most": ("at most", operator.le),
    "above": ("above", operator.gt),
    "below": ("below", operator.lt),
}


class FieldCheck(Onlooker, frozen=True):
    """A field of the trace, or of the case under `case.`, compared with values; every comparison must hold.

    Bounds hold only for numbers, and `matches` only for text.
    """

    field: str
    equals: Any = msgspec.UNSET
    at_least: _Number | None = None
    at_most: _Number | None = None
    above: _Number | None = None
    below: _Number | None = None
    matches: str | None = None
    """A regular expression that is searched for in the text."""
    absent: Literal["fail", "skip"] = "fail"
    """A trace without the field fails, or is skipped."""
    reason_from: str | None = None
    """A field of the trace whose text ends the reason of a failure, if the trace has it."""

    @staticmethod
    def config_problems(values: Mapping[str, Any]) -> list[Problem]:
        comparisons = (*_BOUNDS, "matches")
        if "equals" not in values and all(values.get(name) is None for name in comparisons):
            expected = ", ".join(map(repr, comparisons))
            return [Problem("", f"needs one of 'equals', {expected}, found none", key="equals")]
        if isinstance(reason := values.get("reason_from"), str) and not parts_at(reason):
            expected = f"'reason_from' must be a field of the trace, such as extra.why, found {shown(reason)}"
            return [Problem("", expected, key="reason_from")]
        try:
            compiled_pattern(values["matches"] if isinstance(values.get("matches"), str) else "")
        except ValueError as error:
            return [Problem("", f"'matches' must be a regular expression, found: {error}", key="matches")]
        return []

    @property
    def reads(self) -> frozenset[str]:
        return (frozenset() if self.uses_case else parts_at(self.field)) | parts_at(self.reason_from or "")

    @property
    def uses_case(self) -> bool:
        return self.field.startswith(("case.", "$.case."))

    def look(self, case: Case, trace: Trace) -> Evaluation:
        if self.uses_case:
            value = select(self.field.partition("case.")[2])(case)
        else:
            value = select(self.field)(trace)
        if value is ABSENT and self.absent == "skip":
            return Evaluation(False, None, f"{self.field} is absent", skipped=True)
        expected = self._unmet(value)
        if expected is None:
            return PASSED
        state = "absent" if value is ABSENT else shown(value)
        why = select(self.reason_from)(trace) if self.reason_from else None
        because = f": {shorten(why, _LONGEST_REASON)}" if isinstance(why, str) and why else ""
        return Evaluation(False, 0.0, f"{self.field} is {state}, expected {expected}{because}")

    def _unmet(self, value: Any) -> str | None:
        """The first comparison that does not hold, in words."""
        if self.equals is not msgspec.UNSET and (value is ABSENT or value != self.equals):
            return shown(self.equals)
        numeric = is_number(value)
        for words, holds, bound in self._bounds:
            if not numeric or not holds(value, bound):
                return f"a number {words} {number(bound)}"
        if self._pattern is not None and not (isinstance(value, str) and search(self._pattern, value)):
            return f"a text that matches {shown(self.matches)}"
        return None

    @cached_property
    def _bounds(self) -> list[tuple[str, Callable[[Any, Any], Any], _Number]]:
        configured = [(*_BOUNDS[name], getattr(self, name)) for name in _BOUNDS]
        return [bound for bound in configured if bound[2] is not None]

    @cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        return None if self.matches is None else re.compile(self.matches)
