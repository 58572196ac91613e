"""`exact_match`, `schema_match` and `field_check`."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, SchemaError

from evalwright.errors import EvaluatorError, InputError
from evalwright.evaluators.build import build_evaluator
from evalwright.evaluators.values.plain_schema import NotPlainJson, plain_check
from evalwright.model.snapshot import Expected
from evalwright.model.trace import Metrics, Output, ToolCall
from evalwright.scoring.reasons import shape_of
from evalwright.testing import a_case, a_trace

TRACE = a_trace(
    latency_ms=120,
    output=Output("Paris", structured={"n": 3, "f": 1.0, "yes": True, "l": [1, 2], "o": {"a": 1, "b": 2}, "nul": None}),
    tool_calls=[ToolCall("find", "t1", {"id": 4711})],
    metrics=Metrics(cost_usd=0.25, custom={"reward": 1}),
)
FACTS = {"city": "Paris", "nul": None, "n": 3, "deep": {"x": [3, 4]}, "other": "Rome"}
CASE = a_case(expected=Expected(facts=FACTS), metadata={"tier": "gold"})


def verdict(type_name: str, **config: Any) -> Any:
    evaluator: Any = build_evaluator(type_name, config)
    return evaluator.evaluate(CASE, TRACE)


@pytest.mark.parametrize(
    ("field", "expected", "passed"),
    [
        ("output.final_answer", "Paris", True),
        ("$.output.final_answer", "Paris", True),
        ("output.final_answer", "paris", False),
        ("output.structured.n", 3.0, True),
        ("output.structured.n", "3", False),
        ("output.structured.yes", 1, True),
        ("output.structured.l", [1, 2], True),
        ("output.structured.l", [2, 1], False),
        ("output.structured.o", {"b": 2, "a": 1}, True),
        ("output.structured.o", {"a": 1}, False),
        ("output.structured.nul", None, True),
        ("output.structured.nope", None, False),
        ("error", None, True),
        ("tool_calls[*].name", "find", True),
        ("tool_calls[?(@.name=='find')].arguments.id", 4711, True),
    ],
)
def test_exact_match(field: str, expected: Any, passed: bool) -> None:
    result = verdict("exact_match", field=field, expected=expected)
    assert (result.passed, result.score) == (passed, float(passed))


@pytest.mark.parametrize(
    ("field", "expected_from", "passed"),
    [
        ("output.final_answer", "city", True),
        ("output.final_answer", "$.city", True),
        ("output.final_answer", "other", False),
        ("output.final_answer", "absent", False),
        ("output.thinking", "absent", False),
        ("output.structured.nul", "nul", True),
        ("output.structured.n", "deep.x[0]", True),
    ],
)
def test_exact_match_with_a_fact_of_the_case(field: str, expected_from: str, passed: bool) -> None:
    assert verdict("exact_match", field=field, expected_from=expected_from).passed is passed


def test_an_expected_value_wins_over_a_fact() -> None:
    assert verdict("exact_match", field="output.final_answer", expected="Paris", expected_from="other").passed


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"field": "latency_ms", "expected": 5}, "latency_ms is 120, expected 5"),
        ({"field": "output.nope", "expected": 5}, "output.nope is absent, expected 5"),
        ({"field": "output.thinking", "expected": "x"}, "output.thinking is None, expected 'x'"),
        ({"field": "latency_ms", "expected_from": "absent"}, "the case has no fact 'absent'"),
    ],
)
def test_why_values_do_not_match(config: dict[str, Any], reason: str) -> None:
    assert verdict("exact_match", **config).reason == reason


def test_a_field_that_is_no_path_is_an_error_though_the_fact_is_missing_too() -> None:
    with pytest.raises(EvaluatorError, match="output"):
        verdict("exact_match", field="output.structured[", expected_from="absent")


PERSON = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("field", "schema", "passed"),
    [
        ("output.structured", PERSON, True),
        ("$.output.structured", PERSON, True),
        ("output.structured", {"required": ["zip"]}, False),
        ("output.structured.n", {"type": "string"}, False),
        ("output.structured.f", {"type": "integer"}, True),
        ("output.structured.yes", {"type": "integer"}, False),
        ("output.structured.nul", {"type": "null"}, True),
        ("output.structured.nope", {}, False),
        ("output.final_answer", {"format": "date"}, True),
        ("output.structured", {"$ref": "#/$defs/P", "$defs": {"P": PERSON}}, True),
        ("tool_calls", {"type": "array", "items": {"required": ["name", "arguments"]}}, True),
        ("tool_calls", {"prefixItems": [{"type": "object"}], "items": False}, True),
        ("output.structured", {"dependentRequired": {"n": ["zip"]}}, False),
    ],
)
def test_schema_match(field: str, schema: dict[str, Any], passed: bool) -> None:
    result = verdict("schema_match", field=field, schema=schema)
    assert (result.passed, result.score) == (passed, float(passed))


@pytest.mark.parametrize(
    ("value", "unit", "passed"),
    [
        (19.99, 0.01, True),
        (0.3, 0.1, True),
        (19.995, 0.01, False),
        (7, 2, False),
        (1e308, 0.1, True),
        (-1e22, 3, False),
    ],
)
def test_multiples_are_those_of_the_numbers_as_written(value: float, unit: float, passed: bool) -> None:
    on = a_trace(output=Output(structured={"price": value}))
    evaluator = build_evaluator("schema_match", {"schema": {"properties": {"price": {"multipleOf": unit}}}}).evaluator
    assert evaluator.evaluate(a_case(), on).passed is passed


def test_schema_match_looks_at_structured_output_by_default() -> None:
    assert verdict("schema_match", schema=PERSON).passed


def test_schema_match_counts_errors_and_shows_the_first_with_its_place() -> None:
    schema = {"$id": "urn:person", "required": ["zip"], "properties": {"n": {"minimum": 5}}}
    result = verdict("schema_match", schema=schema)
    assert result.reason.startswith("2 errors against the schema: output.structured")
    assert result.detail["schema_id"] == "urn:person"
    assert sorted(result.detail["errors"]) == ["'zip' is a required property", "3 is less than the minimum of 5"]


def test_errors_are_in_the_order_of_their_places() -> None:
    schema = {"properties": {"n": {"minimum": 5}, "f": {"type": "string"}}, "additionalProperties": False}
    unknown, *of_parts = verdict("schema_match", schema=schema).detail["errors"]
    assert unknown.startswith("Additional properties")
    assert of_parts == ["1.0 is not of type 'string'", "3 is less than the minimum of 5"]


@pytest.mark.parametrize("reference", ["http://127.0.0.1:9/schema.json", "#/$defs/Nobody", "file:///etc/passwd"])
def test_schema_match_fetches_nothing(reference: str) -> None:
    with pytest.raises(EvaluatorError) as raised:
        verdict("schema_match", schema={"$ref": reference})
    assert raised.value.type == "unresolvable_reference"


@pytest.mark.parametrize(
    ("config", "passed"),
    [
        ({"field": "metrics.custom.reward", "equals": 1}, True),
        ({"field": "metrics.custom.reward", "equals": 0}, False),
        ({"field": "output.thinking", "equals": None}, True),
        ({"field": "output.nope", "equals": None}, False),
        ({"field": "latency_ms", "at_least": 120}, True),
        ({"field": "latency_ms", "at_least": 120.5}, False),
        ({"field": "latency_ms", "at_most": 120}, True),
        ({"field": "latency_ms", "at_most": 119}, False),
        ({"field": "latency_ms", "above": 120}, False),
        ({"field": "latency_ms", "above": 119}, True),
        ({"field": "latency_ms", "below": 120}, False),
        ({"field": "latency_ms", "below": 121}, True),
        ({"field": "latency_ms", "at_least": 100, "below": 110}, False),
        ({"field": "metrics.cost_usd", "below": 1, "above": 0}, True),
        ({"field": "output.structured.yes", "at_least": 0}, False),
        ({"field": "output.final_answer", "at_least": 0}, False),
        ({"field": "metrics.token_input", "at_least": 0}, False),
        ({"field": "output.final_answer", "matches": "^P.*s$"}, True),
        ({"field": "output.final_answer", "matches": "ari"}, True),
        ({"field": "output.final_answer", "matches": "^ari"}, False),
        ({"field": "latency_ms", "matches": "120"}, False),
        ({"field": "output.nope", "matches": ""}, False),
        ({"field": "case.metadata.tier", "equals": "gold"}, True),
        ({"field": "$.case.expected.facts.n", "at_least": 3}, True),
        ({"field": "case.expected.facts.deep.x[*]", "equals": 3}, True),
        ({"field": "case.metadata.nope", "equals": "gold"}, False),
        ({"field": "case_id", "equals": "c1"}, True),
    ],
)
def test_field_check(config: dict[str, Any], passed: bool) -> None:
    result = verdict("field_check", **config)
    assert (result.passed, result.score) == (passed, float(passed))


def test_an_absent_part_is_skipped_if_configured() -> None:
    fact = verdict("exact_match", field="input", expected_from="nope", without_fact="skip")
    field = verdict("field_check", field="metrics.custom.nope", equals=1, absent="skip")
    assert [(one.skipped, one.score) for one in (fact, field)] == [(True, None)] * 2
    assert (fact.reason, field.reason) == ("the case has no fact 'nope'", "metrics.custom.nope is absent")
    assert not verdict("field_check", field="output.final_answer", equals=1, absent="skip").skipped
    assert not verdict("exact_match", field="output.nope", expected=1, without_fact="skip").skipped


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"field": "latency_ms", "equals": 5}, "latency_ms is 120, expected 5"),
        ({"field": "latency_ms", "below": 99.5}, "latency_ms is 120, expected a number below 99.5"),
        ({"field": "output.nope", "at_least": 1}, "output.nope is absent, expected a number at least 1"),
        ({"field": "output.nope", "equals": None}, "output.nope is absent, expected None"),
        (
            {"field": "output.final_answer", "matches": "^R"},
            "output.final_answer is 'Paris', expected a text that matches '^R'",
        ),
        (
            {"field": "latency_ms", "equals": 5, "reason_from": "tool_calls[0].name"},
            "latency_ms is 120, expected 5: find",
        ),
        ({"field": "latency_ms", "equals": 5, "reason_from": "extra.why"}, "latency_ms is 120, expected 5"),
    ],
)
def test_why_a_field_check_fails(config: dict[str, Any], reason: str) -> None:
    assert verdict("field_check", **config).reason == reason


def test_a_reason_from_no_part_of_a_trace_is_refused() -> None:
    with pytest.raises(InputError, match="'reason_from' must be a field of the trace"):
        build_evaluator("field_check", {"field": "latency_ms", "equals": 5, "reason_from": "extr.why"})


def test_a_text_that_is_cut_in_a_reason_stays_within_its_quotes() -> None:
    evaluator: Any = build_evaluator("exact_match", {"field": "input", "expected": "it's"})
    reason = evaluator.evaluate(CASE, a_trace(input="word " * 1000)).reason
    assert shape_of(reason) == "input is '…', expected '…'"


def test_a_huge_value_is_not_written_out_in_the_reason() -> None:
    evaluator: Any = build_evaluator("exact_match", {"field": "input", "expected": "y" * 10_000})
    assert len(evaluator.evaluate(CASE, a_trace(input={"x" * 10_000: ["z" * 10_000] * 1000})).reason) < 400


def test_an_integer_that_python_does_not_write_has_a_reason_too() -> None:
    evaluator: Any = build_evaluator("exact_match", {"field": "input.n", "expected": 1})
    assert evaluator.evaluate(CASE, a_trace(input={"n": 10**5000})).reason == "input.n is a huge int, expected 1"


NAMES = st.sampled_from(["a", "b", "it's"])
BOUNDS = st.integers(-2, 3) | st.sampled_from([0.5, 1.0])
TYPES = st.sampled_from(["array", "boolean", "integer", "null", "number", "object", "string"])
SCHEMAS = st.recursive(
    st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES | st.lists(TYPES, min_size=1, max_size=2, unique=True),
            "title": st.just("a title"),
            "required": st.lists(NAMES, unique=True),
            "enum": st.lists(st.sampled_from(["", "ab", "abcd"]), min_size=1, unique=True),
            "additionalProperties": st.just(False),
            **dict.fromkeys(["minItems", "maxItems", "minLength", "maxLength"], st.integers(0, 3)),
            **dict.fromkeys(["minProperties", "maxProperties"], st.integers(0, 2)),
            **dict.fromkeys(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"], BOUNDS),
        },
    ),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={"items": inner, "additionalProperties": st.just(False), "properties": st.dictionaries(NAMES, inner)},
    ),
    max_leaves=4,
)
VALUES = st.recursive(
    st.none() | st.booleans() | BOUNDS | st.sampled_from(["", "ab", "abcd", float("nan")]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner),
    max_leaves=6,
)


@given(SCHEMAS, VALUES)
def test_errors_of_a_plain_schema_are_those_of_jsonschema(schema: dict[str, Any], value: Any) -> None:
    check = plain_check(schema)
    assert check is not None
    expected = [(error.json_path, error.message) for error in Draft202012Validator(schema).iter_errors(value)]
    assert [(error.json_path, error.message) for error in check(value)] == expected


@pytest.mark.parametrize("value", [(1, 2), Decimal(3), {"a": {1, 2}}])
def test_values_that_json_does_not_have_are_left_to_jsonschema(value: Any) -> None:
    check = plain_check({"minItems": 1, "properties": {"a": {"type": "array"}}})
    assert check is not None
    with pytest.raises(NotPlainJson):
        check(value)


@pytest.mark.parametrize(
    "schema",
    [
        *({"minItems": -1}, {"maxLength": True}, {"maxProperties": "1"}, {"minimum": "1"}, {"exclusiveMaximum": True}),
        *({"type": []}, {"type": ["null", "null"]}, {"type": "text"}, {"required": ["a", "a"]}, {"required": "a"}),
        *({"title": 1}, {"examples": {}}, {"properties": []}, {"items": [{"type": "null"}]}),
    ],
)
def test_a_schema_that_is_not_well_formed_is_refused(schema: dict[str, Any]) -> None:
    for one in (schema, {"properties": {"a": schema}}):
        with pytest.raises(SchemaError):
            Draft202012Validator.check_schema(one)
        with pytest.raises(InputError, match="must be a JSON Schema"):
            build_evaluator("schema_match", {"schema": one})


@pytest.mark.parametrize("keyword", ["$ref", "allOf", "enum", "pattern", "additionalProperties", "prefixItems"])
def test_other_keywords_are_left_to_jsonschema(keyword: str) -> None:
    assert plain_check({"type": "object", keyword: []}) is None
    assert plain_check({"properties": {"a": {"items": {keyword: []}}}}) is None
