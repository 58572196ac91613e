"""Places of templates that no case fills are found without calling anything."""

import pytest

from evalwright.model.plan import Variant
from evalwright.model.snapshot import Case
from evalwright.targets.unfilled import UnfilledPlaces

CASES = [Case("a", {"word": "ha"}), Case("b", {"word": "ho", "tone": "kind"}, metadata={"tier": "gold"})]


def problems_of(adapter, config, cases=CASES, **fields):
    places = UnfilledPlaces([Variant("v", adapter, config, **fields)])
    assert [*places.watched(cases)] == cases
    return [(problem.key, problem.message) for problem in places.problems("eval.yaml")]


@pytest.mark.parametrize(
    ("adapter", "key"),
    [
        ("cli", "stdin_template"),
        ("http", "request_template"),
        ("chat", "system_prompt"),
        ("chat", "user_template"),
        ("coding_agent", "prompt_template"),
    ],
)
def test_a_path_that_no_case_has_is_named_with_what_there_is(adapter, key):
    instead = 'did you mean "word"? (optional: {{ input.wrod | default("") }})'
    assert problems_of(adapter, {key: "{{ input.wrod }}"}) == [(f"v.{key}", f"no case has input.wrod; {instead}")]


@pytest.mark.parametrize(
    "text",
    [
        "{{ input.word }} {{ session_id }}",
        "{{ input.tone }} {{ case.metadata.tier }}",
        '{{ input.mood | default("") }}',
        "{{ input.",
    ],
    ids=["of all", "of one", "optional", "wrong itself"],
)
def test_a_path_that_a_case_has_or_that_is_optional_is_none(text):
    assert problems_of("cli", {"stdin_template": text}) == []


@pytest.mark.parametrize(
    ("adapter", "cases", "fields"),
    [("cli", CASES, {"evalh_rules": True}), ("cli", [], {}), ("python_function", CASES, {})],
    ids=["empty by evalh's rules", "no case", "no template"],
)
def test_where_nothing_must_be_filled_nothing_is_missing(adapter, cases, fields):
    assert problems_of(adapter, {"stdin_template": "{{ input.wrod }}"}, cases, **fields) == []
