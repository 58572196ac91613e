"""Regular expressions of users end within their limit, wherever they are given and whichever thread searches."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from evaluators.scripted_models import Scripted, case, fails, judged, problems, says, trace
from evalwright.errors import EvaluatorError, InputError
from evalwright.evaluators.build import build_evaluator, build_extractor
from evalwright.evaluators.tools.arguments import matches_subset
from evalwright.sandbox import patterns
from evalwright.sandbox.patterns import find_all, search

ENDLESS = "(a+)+$"
TEXT = "a" * 40 + "b"
CATASTROPHIC = [
    (ENDLESS, TEXT),
    ("(a|a)*$", TEXT),
    ("(a|aa)+$", TEXT * 2),
    ("(.*a){25}$", "a" * 60 + "b"),
    (r"^(\w+\s?)*$", "word " * 30 + "!"),
    (r"(x+x+)+y", "x" * 40),
    (r"\s+$", " " * 200_000 + "x"),
    (r"^(([a-z])+.)+[A-Z]([a-z])+$", "a" * 60),
]


UNUSABLE = ["(", "a{99999999999}", "(" * 5_000 + ")" * 5_000]


@pytest.fixture
def short_limit(monkeypatch):
    """Most searches here have a tenth of the time that users' searches have."""
    monkeypatch.setattr(patterns, "SEARCH_LIMIT", 0.1)


def elsewhere(work, *arguments):
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(work, *arguments).result()


@pytest.mark.parametrize(("pattern", "text"), CATASTROPHIC)
def test_catastrophic_patterns_are_ended(short_limit, pattern, text):
    with pytest.raises(EvaluatorError, match=r"took more than 0\.1 s") as caught:
        search(re.compile(pattern), text)
    assert caught.value.type == "timeout"


def test_catastrophic_patterns_are_ended_in_other_threads():
    with pytest.raises(EvaluatorError, match="took more than 1 s"):
        elsewhere(search, re.compile(ENDLESS), TEXT)


@pytest.mark.slow("uses the second that a pattern may take")
def test_finding_all_is_ended_too():
    with pytest.raises(EvaluatorError, match="took more than 1 s"):
        find_all(re.compile(ENDLESS), TEXT)


@pytest.mark.parametrize("where", [lambda work, *given: work(*given), elsewhere], ids=["main", "other"])
def test_good_patterns_find_what_re_finds(where):
    pattern = re.compile(r"(\d+)€", re.IGNORECASE)
    found = where(search, pattern, "12€ and 30€")
    assert found is not None
    assert (found.span(), found[1]) == ((0, 3), "12")
    assert where(find_all, pattern, "12€ and 30€") == ["12", "30"]


def test_the_next_search_has_its_own_time(short_limit):
    with pytest.raises(EvaluatorError):
        search(re.compile(ENDLESS), TEXT)
    assert search(re.compile("b+"), TEXT)


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        ("field_check", {"field": f"$.output[?(@ =~ '{ENDLESS}')]", "equals": "x"}),
        ("text_check", {"check": "regex", "value": ENDLESS}),
        ("field_check", {"field": "output.final_answer", "matches": ENDLESS}),
        ("ground_truth_matches", {"ground_truth": ENDLESS}),
        ("regex", {"pattern": ENDLESS}),
        ("thinking_does_not_leak", {"forbidden_patterns": [f"re:{ENDLESS}"]}),
    ],
)
def test_evaluators_with_a_catastrophic_pattern_are_errors(short_limit, kind, config):
    assert fails(kind, config, Scripted(says()), on=trace(TEXT, TEXT)).type == "timeout"


PATTERNED = {"patternProperties": {ENDLESS: True}}


@pytest.mark.parametrize(
    "schema",
    [
        {"pattern": ENDLESS},
        PATTERNED,
        {"additionalProperties": False, **PATTERNED},
        {"unevaluatedProperties": False, **PATTERNED},
        {"unevaluatedProperties": False, "allOf": [PATTERNED]},
        {"unevaluatedProperties": False, "$ref": "#/$defs/named", "$defs": {"named": PATTERNED}},
    ],
)
def test_catastrophic_schemas_are_errors(short_limit, schema):
    given = trace(TEXT)
    given.output.structured = {TEXT: TEXT}
    field = "output.final_answer" if "pattern" in schema else "output.structured"
    config = {"schema": schema, "field": field}
    assert fails("schema_match", config, Scripted(says()), on=given).type == "timeout"


def test_schemas_with_patterns_judge_as_before():
    given = trace()
    given.output.structured = {"x_1": 1, "y": "no"}
    schema = {"patternProperties": {"^x_": {"type": "string"}}, "properties": {"y": {"pattern": "^yes"}}}
    evaluation = judged("schema_match", {"schema": schema}, Scripted(says()), on=given)
    assert sorted(evaluation.detail["errors"]) == ["'no' does not match '^yes'", "1 is not of type 'string'"]


@pytest.mark.parametrize("keyword", ["additionalProperties", "unevaluatedProperties"])
@pytest.mark.parametrize(("pattern", "passed"), [("^[xy]", True), ("^x_+", False)])
def test_properties_beyond_patterns_are_judged_as_before(keyword, pattern, passed):
    given = trace()
    given.output.structured = {"x_1": 1, "y": "no"}
    config = {"schema": {"patternProperties": {pattern: True}, keyword: False}}
    assert judged("schema_match", config, Scripted(says()), on=given).passed is passed


def test_catastrophic_arguments_are_errors(short_limit):
    with pytest.raises(EvaluatorError, match="took more"):
        matches_subset({"q": f"~={ENDLESS}"}, {"q": TEXT})


@pytest.mark.parametrize("search_all", [False, True])
def test_catastrophic_extractors_are_errors(short_limit, search_all):
    extractor = build_extractor("pattern", {"pattern": ENDLESS, "search_all": search_all})
    with pytest.raises(EvaluatorError, match="took more"):
        extractor.extract([[{"message_type": "assistant_message", "content": TEXT}]], None)


@pytest.mark.parametrize(
    ("config", "passed", "match"),
    [
        ({"pattern": "on"}, False, None),
        ({"pattern": "ON", "flags": ["IgnoreCase"]}, True, "On"),
        ({"pattern": "^its", "target": "output"}, False, None),
        ({"pattern": "^c1$", "target": "case.id"}, True, "c1"),
        ({"pattern": "gold", "target": "case.metadata.tier"}, True, "gold"),
        ({"pattern": "^1$", "target": "case.metadata.count"}, True, "1"),
        ({"pattern": '"count": 1', "target": "case.metadata"}, True, '"count": 1'),
        ({"pattern": ".*", "target": "case.metadata.none"}, False, None),
        ({"pattern": ".*", "target": "case.metadata.list.0"}, False, None),
        ({"pattern": ".*", "target": "elsewhere"}, False, None),
        ({"pattern": "way", "target": "run.final_response"}, True, "way"),
    ],
)
def test_regex_searches_its_target(config, passed, match):
    given = case(metadata={"tier": "gold", "count": 1, "none": None, "list": [1]})
    evaluation = judged("regex", config, Scripted(says()), of=given)
    assert (evaluation.passed, evaluation.score, evaluation.detail["match"]) == (passed, float(passed), match)


def test_an_answer_that_is_not_there_does_not_match():
    assert judged("regex", {"pattern": ""}, Scripted(says()), on=trace(None)).reason.startswith("there is nothing")


def test_mistakes_of_regex_are_reported_at_once():
    listed = problems("regex", {"pattern": "(", "flags": ["verbose"]})
    assert listed.keys() == {"pattern", "flags"}


@pytest.mark.parametrize("pattern", UNUSABLE, ids=["unbalanced", "too large", "too deep"])
@pytest.mark.parametrize(
    ("build", "kind", "config", "key"),
    [
        (build_evaluator, "text_check", {"check": "regex"}, "value"),
        (build_evaluator, "regex", {}, "pattern"),
        (build_evaluator, "field_check", {"field": "output.final_answer"}, "matches"),
        (build_extractor, "pattern", {}, "pattern"),
    ],
)
def test_a_pattern_that_cannot_be_compiled_is_a_mistake_at_its_key(build, kind, config, key, pattern):
    with pytest.raises(InputError, match="regular expression") as raised:
        build(kind, {**config, key: pattern})
    assert [problem.key for problem in raised.value.problems] == [key]


@pytest.mark.parametrize("pattern", UNUSABLE, ids=["unbalanced", "too large", "too deep"])
def test_a_ground_truth_that_cannot_be_compiled_matches_nothing(pattern):
    evaluation = build_evaluator("ground_truth_matches", {"ground_truth": pattern}).evaluate(case(), trace())
    assert not evaluation.passed
    assert "is not a regular expression" in evaluation.reason
