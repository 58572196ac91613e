"""What stands between braces in a text for a system: paths, what they find, and what no case can have."""

from typing import Any

import pytest

from evalwright.errors import InputError, TargetError
from evalwright.model.plan import Variant
from evalwright.model.snapshot import Case
from evalwright.targets.build import build_target
from evalwright.targets.templates import Template

CASE = Case("c1", {"word": "hi", "none": None, "empty": "", "list": ["a", {"b": 2}], "two words": 1}, metadata={"k": 3})


def render(text: str, **options: bool) -> str:
    return Template(text, "key", **options).render(CASE)


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("{{ input.word }}, {{input.word|json}}", 'hi, "hi"'),
        ("{{ input.none }}-{{ input.empty }}-{{ input.none | json }}", "--null"),
        ("{{ input.list.0 }}{{ input.list.1.b }}", "a2"),
        ("{{ case_id }} {{ case.id }} {{ case.metadata.k }} {{ case.input.word }}", "c1 c1 3 hi"),
        ("{{ input.no | default(\"\") }}|{{ input.no | default('a | b') | json }}", '|"a | b"'),
        ('{{ input.no | default("it\'s") | json }}|{{ input.no | default(\'say "|"\') }}', '"it\'s"|say "|"'),
        ("{{ input.word | default('x') }}", "hi"),
        ('{"a": {"b": {}}} { x } {{ open', '{"a": {"b": {}}} { x } {{ open'),
    ],
)
def test_what_is_there_is_filled_in(text: str, rendered: str) -> None:
    assert render(text) == rendered


def test_each_call_is_a_session_of_its_own() -> None:
    first, second = (render("{{ session_id }} {{ session_id | json }}").split() for _ in range(2))
    assert f'"{first[0]}"' == first[1]
    assert first[0] != second[0]


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("input.wrd", 'did you mean "word"'),
        ("input.zzz", "input has: word, none"),
        ("input.word.deeper", "the case has no input.word.deeper"),
        ("input.list.7", "the case has no input.list.7"),
        ("case.metadata.tier", "the case has no case.metadata.tier"),
    ],
)
def test_a_path_that_a_case_lacks_is_an_error_of_the_cell(path: str, says: str) -> None:
    with pytest.raises(TargetError) as raised:
        render(f"a {{{{ {path} }}}} b")
    assert says in str(raised.value)
    assert str(raised.value).startswith(f"key: the case has no {path}")


def test_all_paths_that_a_case_lacks_are_named_once() -> None:
    with pytest.raises(TargetError) as raised:
        render("{{ input.x }} {{ input.y }} {{ input.x }}")
    assert str(raised.value).count("the case has no input.x") == 1
    assert "the case has no input.y" in str(raised.value)


@pytest.mark.parametrize(
    "inside",
    [
        "inputs.word",
        "word",
        "case.expected.answer",
        "case.inptu",
        "case_id.x",
        "#if x",
        "",
        "input..x",
        "input.x | upper",
    ],
)
def test_what_no_case_can_have_is_a_mistake_of_the_suite(inside: str) -> None:
    with pytest.raises(InputError) as refused:
        Template(f"{{{{{inside}}}}}", "key")
    assert [problem.key for problem in refused.value.problems] == ["key"]
    assert f"{{{{{inside}}}}}" in refused.value.problems[0].message


def test_by_evalh_s_rules_what_is_not_found_is_empty() -> None:
    text = "{{ input.no }}{{ x }}{{ input.no | json }} {{ input.word | upper }}"
    assert render(text, evalh_rules=True) == "null {{ input.word | upper }}"


HTTP = {"adapter": "http", "endpoint": "http://127.0.0.1:1/x", "response_mapping": {"final_answer": "a"}}
CLI = {"adapter": "cli", "command": ["/bin/cat"]}


def mistakes(config: dict[str, Any], *, evalh_rules: bool = False) -> dict[str, str]:
    rest = {key: value for key, value in config.items() if key != "adapter"}
    try:
        build_target(Variant("s", config["adapter"], rest, evalh_rules=evalh_rules), ())
    except InputError as error:
        return {problem.key.removeprefix("config."): problem.message for problem in error.listed}
    return {}


@pytest.mark.parametrize(
    ("config", "key", "filled"),
    [
        ({**HTTP, "endpoint": "http://127.0.0.1:1/{{ input.user }}/x"}, "endpoint", "request_template"),
        ({**HTTP, "headers": {"X-User": "u {{input.user | json}}"}}, "headers.X-User", "request_template"),
        ({**HTTP, "query_params": {"q": '{{ case.metadata.q | default("") }}'}}, "query_params.q", "request_template"),
        ({**HTTP, "body": {"a": [{"b": "{{ case_id }}"}]}}, "body.a.b", "request_template"),
        ({**CLI, "command": ["/bin/echo", "{{ input.question }}"]}, "command", "stdin_template"),
        ({**CLI, "env": {"Q": "{{ case.id }}"}}, "env.Q", "stdin_template"),
        ({**CLI, "cwd": "/tmp/{{ case_id }}"}, "cwd", "stdin_template"),
    ],
)
def test_a_value_of_the_case_where_none_is_filled_in_is_a_mistake(
    config: dict[str, Any], key: str, filled: str
) -> None:
    listed = mistakes(config)
    assert listed.keys() == {key}
    assert f"is not filled in here, but only in {filled!r}" in listed[key]
    assert mistakes(config, evalh_rules=True) == {}  # the original sends the text


def test_other_braces_are_text_where_nothing_is_filled_in() -> None:
    words = ["docker", "ps", "--format", "{{ .Names }} {{ range .Ports }}", "{{ inputs.x }}"]
    assert mistakes({**CLI, "command": words}) == {}
    assert mistakes({**HTTP, "headers": {"X-A": "{{}} { input.x }"}}) == {}
