"""From configuration to evaluator: what is accepted, and what a user reads when it is not."""

from __future__ import annotations

import pickle
from datetime import date
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright import registry
from evalwright.built_in import KINDS
from evalwright.errors import InputError
from evalwright.evaluators.build import build, build_evaluator, calls_models, config_doubts
from evalwright.model.chat import ChatRequest
from evalwright.model.plan import EvaluatorSpec, Plugin
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Output
from evalwright.testing import a_case, a_trace


def built_in() -> list[str]:
    """Evaluators of ours, which are loaded for it: not while every worker collects."""
    by_name = {name: registry.load("evaluators", name) for name in registry.names("evaluators")}
    return sorted(name for name, one in by_name.items() if isinstance(one, type) and issubclass(one, msgspec.Struct))


def keys() -> list[str]:
    fields = (msgspec.structs.fields(registry.load("evaluators", name)) for name in built_in())
    return sorted({field.encode_name for of_one in fields for field in of_one})


@pytest.mark.parametrize(
    ("type_name", "config", "key", "said"),
    [
        ("contains_text", {"all_of": "x"}, "all_of", ["'all_of'", "list of strings", "the string 'x'"]),
        ("contains_text", {"any_of": ["a", 3]}, "any_of[1]", ["a string", "the integer 3", "'any_of[1]'"]),
        ("contains_text", {"case_sensitive": "yes"}, "case_sensitive", ["a boolean", "the string 'yes'"]),
        ("contains_text", {"al_of": []}, "al_of", ["unknown key 'al_of'", 'did you mean "all_of"']),
        ("latency_under", {}, "max_ms", ["'max_ms'", "missing", "int"]),
        ("latency_under", {"max_ms": 1.5}, "max_ms", ["'max_ms'", "int", "the number 1.5"]),
        ("latency_under", {"max_ms": 2.0}, "max_ms", ["'max_ms'", "int", "the number 2.0"]),
        ("latency_under", {"max_ms": True}, "max_ms", ["'max_ms'", "integer", "found true"]),
        ("latency_under", {"max_ms": 0}, "max_ms", ["'max_ms'", "integer >= 1", "the integer 0"]),
        ("thinking_tokens_under", {"max_tokens": None}, "max_tokens", ["'max_tokens'", "int", "null"]),
        ("cost_under", {"max_usd": -1}, "max_usd", ["'max_usd'", "number > 0", "the integer -1"]),
        ("cost_under", {"max_usd": float("nan")}, "max_usd", ["'max_usd'", "finite number", "nan"]),
        ("execution_metrics", {"max_tokens": float("inf")}, "max_tokens", ["'max_tokens'", "finite number", "inf"]),
        ("field_check", {"field": "x", "equals": [{"a": float("inf")}]}, "equals[0].a", ["finite number", "inf"]),
        ("tokens_per_second_above", {"min_tps": 0}, "min_tps", ["'min_tps'", "number > 0"]),
        ("code_judge", {"script": []}, "script", ["a string, of length >= 1, found an empty list"]),
        ("field_accuracy", {"fields": []}, "fields", ["a list of mappings, of length >= 1, found an empty list"]),
        ("stream_completed", {"x": 1}, "x", ["unknown key 'x'"]),
        ("tool_called", {"tool_name": ["a"]}, "tool_name", ["'tool_name'", "string", "a list"]),
        ("tool_called", {"tool_name": "t", "min_calls": "2"}, "min_calls", ["'min_calls'", "int", "the string '2'"]),
        ("tool_called", {"tool_name": "t", "args_match": ["a"]}, "args_match", ["'args_match'", "mapping", "a list"]),
        ("tool_called", {"tool_name": "t", "args_match": {1: 2}}, "args_match", ["mapping", "strings as keys"]),
        ("tool_called", {"must_appear": False}, "must_appear", ["'must_appear'", "without 'tool_name'"]),
        ("tool_called", {"args_match": {"a": 1}}, "args_match", ["'args_match'", "without 'tool_name'"]),
        ("exact_match", {"expected": 1}, "field", ["'field'", "missing", "string"]),
        ("exact_match", {"field": "x"}, "expected", ["'expected'", "'expected_from'"]),
        ("schema_match", {}, "schema", ["'schema'", "missing", "mapping"]),
        ("schema_match", {"schema": {"type": "objekt"}}, "schema.type", ["'schema'", "JSON Schema", "objekt"]),
        ("schema_match", {"schema": {"pattern": "["}}, "schema.pattern", ["'schema'", "regex"]),
        ("field_check", {"field": "x"}, "equals", ["'equals'", "'at_least'", "'matches'"]),
        ("field_check", {"field": "x", "matches": "["}, "matches", ["'matches'", "regular expression"]),
        ("field_check", {"field": "x", "above": True}, "above", ["'above'", "number", "found true"]),
        ("tool_calls_match", {"mode": "some"}, "mode", ["'mode'", "'subset'", "'some'"]),
        (
            "tool_calls_match",
            {"expected": [{"name": 1}]},
            "expected[0].name",
            ["'expected[0].name'", "a string", "the integer 1"],
        ),
        ("tool_calls_match", {"expected": [{"name": "a", "argumnts": {}}]}, "expected[0]", ["'argumnts'"]),
        ("field_accuracy", {"fields": [{"match": "exact"}]}, "fields[0]", ["'path'", "missing", "a string"]),
        (
            "field_accuracy",
            {"fields": [{"path": "a", "match": "x"}]},
            "fields[0].match",
            ["'date'", "found the string 'x'"],
        ),
        ("field_accuracy", {"fields": [{"path": "a", "weight": -1}]}, "fields[0].weight", ["a number >= 0", "-1"]),
        (
            "tool_trajectory",
            {"minimums": {"search": "two"}},
            "minimums.search",
            ["'minimums.search'", "an integer", "the string 'two'"],
        ),
    ],
)
def test_a_bad_configuration_says_what_was_found_and_expected(
    type_name: str, config: dict[str, Any], key: str, said: list[str]
) -> None:
    with pytest.raises(InputError) as refused:
        build_evaluator(type_name, config)
    (problem,) = refused.value.problems
    assert (problem.file, problem.key) == ("", key)
    assert [words for words in said if words not in problem.message] == []


def test_every_wrong_item_of_a_list_is_reported() -> None:
    assertions = ["a", {"text": "b", "required": "x"}, {"txt": "c"}, 3]
    with pytest.raises(InputError) as refusal:
        build_evaluator("llm_judge", {"model": "claude-x", "nl_assertions": assertions, "include_in_prompt": [1, 2]})
    assert [problem.key for problem in refusal.value.problems] == [
        *("nl_assertions[1].required", "nl_assertions[2]", "nl_assertions[2]", "nl_assertions[3]"),
        *("include_in_prompt[0]", "include_in_prompt[1]"),
    ]
    assert refusal.value.problems[1].message == "unknown key 'txt'; did you mean \"text\"?"


def test_every_problem_is_reported_at_once() -> None:
    with pytest.raises(InputError) as refused:
        build_evaluator("exact_match", {"feild": "x", "expected_form": 3})
    assert {problem.key for problem in refused.value.problems} == {"feild", "expected_form", "field", "expected"}


def test_a_wrong_value_is_not_reported_as_missing_too() -> None:
    with pytest.raises(InputError) as refused:
        build_evaluator("exact_match", {"field": "x", "expected_from": 3})
    assert [problem.key for problem in refused.value.problems] == ["expected_from"]


def test_an_unknown_type_names_the_nearest_and_where_all_are_listed() -> None:
    with pytest.raises(InputError, match=r'did you mean "latency_under".*list evaluators'):
        build_evaluator("latncy_under", {})


def test_a_date_in_the_configuration_is_its_text() -> None:
    evaluator = build_evaluator("exact_match", {"field": "input.day", "expected": date(2026, 5, 1)})
    assert evaluator.evaluate(a_case(), a_trace(input={"day": "2026-05-01"})).passed  # type: ignore[union-attr]


class Lengths:
    """An evaluator of another package, with keyword arguments of its own."""

    def __init__(self, longest: int) -> None:
        if longest < 1:
            raise ValueError("longest must be positive")
        self.longest = longest

    def evaluate(self, case: object, trace: Any) -> Evaluation:
        return Evaluation(len(trace.output.final_answer) <= self.longest)


@pytest.fixture
def other_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS["evaluators"], "lengths", f"{__name__}:Lengths")


@pytest.mark.usefixtures("other_package")
def test_a_class_of_another_package_gets_keyword_arguments() -> None:
    evaluator = build_evaluator("lengths", {"longest": 3}).evaluator
    said = [evaluator.evaluate(a_case(), a_trace(output=Output(text))) for text in ("abc", "abcd")]
    assert said == [Evaluation(True), Evaluation(False)]


@pytest.mark.usefixtures("other_package")
@pytest.mark.parametrize(("config", "said"), [({"longest": 0}, "positive"), ({"x": 1}, "x"), ({"longest": "a"}, "int")])
def test_what_another_package_refuses_is_bad_input(config: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        build_evaluator("lengths", config)


CONFIGS: list[tuple[str, dict[str, Any]]] = [
    ("contains_text", {"all_of": ["Hello"], "none_of": []}),
    ("exact_match", {"field": "output.final_answer", "expected": "Hello!"}),
    ("exact_match", {"field": "output.final_answer", "expected_from": "greeting"}),
    ("schema_match", {"field": "output.final_answer", "schema": {"type": "string"}}),
    ("field_check", {"field": "latency_ms", "at_least": 0, "below": 1.5}),
    ("field_check", {"field": "output.final_answer", "matches": "^H"}),
    ("tool_called", {"tool_name": "t", "min_calls": 0, "args_match": {"a": "{{ case.id }}"}}),
    ("tool_calls_match", {"expected": []}),
    ("latency_under", {"max_ms": 5}),
]


@pytest.mark.parametrize(("type_name", "config"), CONFIGS)
def test_an_evaluator_that_was_used_survives_pickling(type_name: str, config: dict[str, Any]) -> None:
    case, trace = a_case(), a_trace()
    case.expected.facts = {"greeting": "Hello!"}
    evaluator: Any = build_evaluator(type_name, config)
    before = evaluator.evaluate(case, trace)
    after = pickle.loads(pickle.dumps(evaluator)).evaluate(case, trace)  # noqa: S301
    assert (before.passed, after.passed) == (True, True)


@pytest.mark.parametrize(
    ("type_name", "config", "uses_case"),
    [
        ("contains_text", {"all_of": ["x"], "none_of": []}, False),
        ("contains_text", {"all_of": ["x"]}, True),
        ("exact_match", {"field": "x", "expected": None}, False),
        ("exact_match", {"field": "x", "expected_from": "y"}, True),
        ("tool_called", {"tool_name": "t", "args_match": {"a": 1}}, False),
        ("tool_called", {"tool_name": "t", "args_match": {"a": ["{{ case.id }}"]}}, True),
        ("tool_called", {}, True),
        ("field_check", {"field": "case.id", "equals": 1}, True),
        ("field_check", {"field": "case_id", "equals": 1}, False),
        ("tool_calls_match", {}, True),
        ("tool_calls_match", {"expected": [{"name": "a"}]}, False),
        ("schema_match", {"schema": {}}, False),
        ("latency_under", {"max_ms": 1}, False),
    ],
)
def test_an_evaluator_says_whether_it_looks_at_the_case(
    type_name: str, config: dict[str, Any], uses_case: bool
) -> None:
    evaluator: Any = build_evaluator(type_name, config)
    assert evaluator.traits.uses_case is uses_case
    if not uses_case:
        assert isinstance(evaluator.evaluate(None, a_trace()), Evaluation)


class Wanting:
    """An evaluator of another package that declares everything there is to declare."""

    uses_artifact = uses_results = imports_code = True
    timeout_seconds = 900

    @staticmethod
    def calls_models(config: dict[str, Any]) -> bool:
        return bool(config["model"])

    def __init__(self, model: str = "") -> None:
        self.model = model
        self.uses_case = bool(model)

    def asks(self, case: Case) -> list[ChatRequest]:
        return [ChatRequest(self.model, [])]

    def evaluate(self, case: object, trace: Any, *more: Any) -> Evaluation:
        return Evaluation(bool(more))


@pytest.fixture
def wanting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS["evaluators"], "wanting", f"{__name__}:Wanting")


@pytest.mark.usefixtures("wanting")
@pytest.mark.parametrize(
    ("spec", "uses_case"),
    [
        (EvaluatorSpec("w", "wanting"), False),
        (EvaluatorSpec("w", "wanting", {"model": "m"}), True),
        (EvaluatorSpec("w", "wanting", threshold=0.5), False),
        (EvaluatorSpec("w", "wanting", extractor=Plugin("last_assistant")), True),
    ],
)
def test_what_an_evaluator_declares_holds_behind_an_extractor_and_a_threshold(
    spec: EvaluatorSpec, uses_case: bool
) -> None:
    traits = build(spec).traits
    assert traits.uses_case is uses_case
    assert (traits.uses_artifact, traits.uses_results, traits.imports_code) == (True, True, True)
    assert traits.timeout_seconds == 900
    assert traits.asks is not None
    assert [request.model for request in traits.asks(a_case())] == [spec.config.get("model", "")]


@pytest.mark.usefixtures("wanting")
@pytest.mark.parametrize("model", ["", "m"])
def test_an_evaluator_may_decide_by_its_configuration_whether_it_calls_models(model: str) -> None:
    assert calls_models("wanting", {"model": model}) is bool(model)


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["output.final_answer", "[", "exact", "object", "#/$defs/a"])
    | st.dates()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "type", "$ref", "$id", "pattern", "items"]) | st.text(), inner)
        | st.dictionaries(st.integers(), inner, max_size=2)
    ),
    max_leaves=8,
)


@given(
    st.deferred(lambda: st.sampled_from(built_in())),
    st.dictionaries(st.deferred(lambda: st.sampled_from(keys())) | st.text() | st.integers(), VALUES),
)
def test_any_configuration_builds_or_is_refused_as_bad_input(type_name: str, config: dict[Any, Any]) -> None:
    problems: tuple[object, ...] = ()
    evaluator = None
    try:
        evaluator = build_evaluator(type_name, config)
    except InputError as refused:
        problems = refused.problems
    assert (evaluator is None) == bool(problems)


ANSWERED = {"name": "a", "type": "answered"}
REFUND = [{"name": "refund"}]


@pytest.mark.parametrize(
    ("type_name", "config", "key"),
    [
        ("required_tools", {"names": []}, "names"),
        ("forbidden_tools", {"names": [""]}, "names"),
        ("tool_arguments_match", {"expected": []}, "expected"),
        ("tool_trajectory", {"minimums": {"refund": 0}}, "minimums"),
        ("tool_calls_match", {"expected": REFUND, "only_tools": ["search"]}, "only_tools"),
        ("tool_calls_match", {"expected": REFUND, "ignore_tools": ["refund"]}, "ignore_tools"),
        ("tool_calls_match", {"expected": REFUND, "only_tools": [], "mode": "any_order"}, "only_tools"),
        ("text_check", {"check": "contains", "value": ""}, "value"),
        ("text_check", {"check": "starts_with", "value": " "}, "value"),
        ("text_check", {"check": "contains_any", "value": ["hi", ""]}, "value"),
        ("text_check", {"check": "contains_all", "value": []}, "value"),
        ("schema_match", {"schema": {"typ": "object"}}, "schema"),
        ("contains_text", {"all_of": [], "none_of": []}, "all_of"),
        ("ground_truth_match", {"text": " "}, "text"),
        ("composite", {"evaluators": [{**ANSWERED, "weight": 0}]}, "evaluators"),
        ("composite", {"evaluators": [ANSWERED], "aggregator": {"weights": {"a": 0}, "type": "all_or_nothing"}},
            "aggregator.weights"),
        ("composite", {"evaluators": [ANSWERED], "aggregator": {"type": "safety_gate"}}, "aggregator.required"),
        ("composite", {"evaluators": [ANSWERED], "aggregator": {"type": "threshold", "threshold": 0}},
            "aggregator.threshold"),
    ],
)  # fmt: skip
def test_a_configuration_by_which_all_or_none_pass_is_doubted(type_name: str, config: Any, key: str) -> None:
    build_evaluator(type_name, config)
    assert [doubt.key for doubt in config_doubts(type_name, config)] == [key]


@pytest.mark.parametrize(
    ("type_name", "config"),
    [
        ("required_tools", {"names": ["refund"]}),
        ("required_tools", {}),
        ("tool_trajectory", {"minimums": {"refund": 1, "search": 0}}),
        ("tool_calls_match", {"expected": REFUND, "only_tools": ["refund"], "ignore_tools": ["search"]}),
        ("text_check", {"check": "contains_all", "value": ["hi", ""]}),
        ("text_check", {"check": "equals", "value": ""}),
        ("text_check", {"check": "is_json"}),
        ("schema_match", {"schema": {"not": {}}}),
        ("contains_text", {"all_of": []}),
        ("contains_text", {"all_of": [], "any_of": ["hi"], "none_of": []}),
        ("ground_truth_match", {}),
        ("composite", {"evaluators": [{**ANSWERED, "weight": 0}], "aggregator": {"type": "minimum"}}),
        ("composite", {"evaluators": [ANSWERED], "aggregator": {"type": "threshold", "threshold": 0.5}}),
    ],
)
def test_a_configuration_that_distinguishes_answers_gives_no_warning(type_name: str, config: Any) -> None:
    build_evaluator(type_name, config)
    assert config_doubts(type_name, config) == []


@pytest.mark.parametrize(
    ("type_name", "config", "key"),
    [
        ("text_check", {"check": "contains"}, "value"),
        ("text_check", {"check": "regex", "value": "x", "flags": "g"}, "flags"),
        ("composite", {"evaluators": [ANSWERED], "aggregator": {"type": "threshold", "threshold": "high"}},
            "aggregator.threshold"),
        ("composite", {"evaluators": [ANSWERED], "aggregator": {"type": "all_or_nothing", "threshold": 80}},
            "aggregator.threshold"),
        ("composite", {"evaluators": [ANSWERED], "aggregator": {"type": "weighted_average", "weights": {"a": -1}}},
            "aggregator.weights.a"),
        ("composite", {"evaluators": [ANSWERED], "aggregator": {"type": "weighted_average", "weights": ["a"]}},
            "aggregator.weights"),
    ],
)  # fmt: skip
def test_a_value_that_no_comparison_can_use_is_rejected(type_name: str, config: Any, key: str) -> None:
    with pytest.raises(InputError) as raised:
        build_evaluator(type_name, config)
    assert [problem.key for problem in raised.value.listed] == [key]


@pytest.mark.parametrize(
    "config", [{}, {"evaluators": "x"}, {"evaluators": [3]}, {"evaluators": [ANSWERED], "aggregator": "x"}]
)
def test_a_composite_that_cannot_be_read_is_not_doubted_as_well(config: Any) -> None:
    assert config_doubts("composite", config) == []
