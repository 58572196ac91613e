"""What judges are told by a configuration's own prompts, as promptfoo fills them in."""

from __future__ import annotations

import json

import pytest

from evalwright.errors import EvaluatorError, InputError
from evalwright.formats.promptfoo.graders import grader_of
from evalwright.llm.prices import built_in_price
from formats.promptfoo.judged_assertions import given
from formats.promptfoo.runs import asserted

PASSES = ['{"pass": true}']


@pytest.mark.parametrize(
    ("output", "prompt", "told"),
    [
        ('{"a": 1, "b": [1, {"c": 2}]}', "{{output}}|{{output.a}}", '{"a":1,"b":[1,{"c":2}]}|'),
        ('[1, {"a": 2}, "z"]', "{{output}}|{{rubric}}", '1,{"a":2},z|x'),
        ("5.0", "{{output}}", "5"),
        ('"said"', "{{output}}", "said"),
        ("null", "<{{output}}>", "<>"),
        ("plain", "{{o}} {{l}} {{m}}", '{"k":1} 1,{"k":2} a,b'),
        ('say "hi"', {"is": "{{output}}"}, '{"is":"say \\"hi\\""}'),
        ('say "hi"', '["{{output}}", 1.0]', '["say \\"hi\\"",1]'),
    ],
)
def test_the_output_and_the_variables_are_shown_as_promptfoo_shows_them(output, prompt, told):
    variables = {"o": {"k": 1}, "l": [1, {"k": 2}], "m": ["a", "b"]}
    _, models = given("llm-rubric", PASSES, answer=output, variables=variables, rubricPrompt=prompt)
    assert models.prompt.strip() == told


def test_the_output_can_be_shown_in_parts(monkeypatch):
    monkeypatch.setenv("PROMPTFOO_DISABLE_OBJECT_STRINGIFY", "true")
    _, models = given("factuality", ['{"category": "C"}'], answer='{"a": "b"}', rubricPrompt="{{completion.a}}")
    assert models.prompt.strip() == "b"


@pytest.mark.parametrize(
    "prompt",
    [
        [{"role": "system", "content": "S {{rubric}}"}, {"role": "user", "content": "{{output}}"}],
        '[{"role": "system", "content": "S {{rubric}}"}, {"role": "user", "content": "{{output}}"}]',
        "- role: system\n  content: S {{rubric}}\n- role: user\n  content: '{{output}}'\n",
    ],
)
def test_messages_are_sent_as_messages(prompt):
    _, models = given("llm-rubric", PASSES, rubricPrompt=prompt)
    assert [(message.role, message.content) for message in models.requests[-1].messages] == [
        ("system", "S x"),
        ("user", "On its way."),
    ]


def test_types_with_two_calls_take_two_prompts():
    replies = ['{"steps": ["look", "say"]}', '{"score": 8, "reason": "r"}']
    own = {"steps": "for {{criteria}}", "evaluate": "{{steps}} of {{maxScore}}: {{output}} on {{input}}"}
    evaluation, models = given("g-eval", replies, rubricPrompt=own)
    assert evaluation.passed
    assert [request.messages[0].content for request in models.requests] == [
        "for x",
        "look\n- say of 10: On its way. on Where is it?",
    ]
    replies = ["It is.", "Final verdict for each statement in order: Yes."]
    both = ["{{question}} {{answer}}", {"role": "user", "content": "{{context}} {{statements}}"}]
    _, models = given("context-faithfulness", replies, rubricPrompt=both)
    assert [one.messages[0].content for one in models.requests] == ["q On its way.", "a It is."]
    with pytest.raises(EvaluatorError, match="expected a list of two prompts"):
        given("context-faithfulness", replies, rubricPrompt="{{answer}}")


def test_a_prompt_for_judges_may_be_in_a_file(tmp_path):
    """The grader is `echo`, so that the reply is the prompt."""
    prompt = {"pass": True, "reason": "{{rubric}}, {{output}}"}
    files = {
        "own.txt": json.dumps(prompt), "own.js": f"module.exports = () => ({json.dumps(prompt)});",
        "own.mjs": f"export const named = () => {json.dumps(json.dumps(prompt))};",
    }  # fmt: skip
    named = ["file://own.txt", "file://own.js", "file://own.mjs:named"]
    asserts = [{"type": "llm-rubric", "value": "on {{q}}", "provider": "echo", "rubricPrompt": one} for one in named]
    result = asserted(tmp_path, "x", *asserts, **files)
    assert [row.reason for row in result.rows] == ["on asked, x"] * 3


@pytest.mark.parametrize(
    ("keys", "judge"),
    [
        ([], "openai:chat:gpt-5.6-sol"),
        (["ANTHROPIC_API_KEY"], "anthropic:messages:claude-sonnet-4-6"),
        (["ANTHROPIC_API_KEY", "OPENAI_API_KEY"], "openai:chat:gpt-5.6-sol"),
    ],
)
def test_the_judge_by_default_is_promptfoos_and_has_a_price(monkeypatch, keys, judge):
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name in keys:
        monkeypatch.setenv(name, "k")
    assert grader_of({}, {}, ".", "text").name == judge
    assert built_in_price(judge.rpartition(":")[2]) is not None


@pytest.mark.parametrize(
    ("prompt", "key", "said"),
    [
        ("file://gone.js", "rubricPrompt", "there is no file 'gone.js'"),
        (["file://gone.txt", "b"], "rubricPrompt[0]", "there is no file"),
        ("file://own.py", "rubricPrompt", "cannot be made by Python"),
    ],
)
def test_a_file_that_makes_no_prompt_is_a_mistake(tmp_path, prompt, key, said):
    one = {"type": "context-faithfulness", "value": "v", "rubricPrompt": prompt}
    with pytest.raises(InputError, match=said) as refusal:
        asserted(tmp_path, "x", one, own__py="def get_prompt():\n    return 'a'\n")
    assert f"tests[0].assert[0].{key}" in str(refusal.value)


@pytest.mark.parametrize("category", ["Contradiction", "Disagree", "a subset", "E or D", "AB"])
def test_a_word_is_no_category_of_factuality(category):
    with pytest.raises(EvaluatorError, match="no category from A to E"):
        given("factuality", [json.dumps({"category": category})])


@pytest.mark.parametrize("category", ["D", "d", "(D)", " D ", "D) they disagree", "(D) they disagree", "D: differs"])
def test_a_letter_that_is_marked_as_one_is_a_category_of_factuality(category):
    evaluation, _ = given("factuality", [json.dumps({"category": category})])
    assert evaluation.detail["category"] == "D"


@pytest.mark.parametrize(
    ("kind", "reply", "value"),
    [
        ("factuality", '{"category": "C"}', None),
        ("model-graded-closedqa", "Y", ""),
        ("context-recall", "a [Attributed]", 5),
        ("llm-rubric", '{"pass": true}', 5),
        ("g-eval", '{"steps": ["a"], "score": 9, "reason": "r"}', []),
        ("g-eval", '{"steps": ["a"], "score": 9, "reason": "r"}', ["a", None]),
    ],
)
def test_a_judge_that_is_told_no_criterion_has_no_verdict(kind, reply, value):
    """Models have an opinion all the same."""
    with pytest.raises(EvaluatorError, match=f"{kind} needs a value: expected text"):
        given(kind, [reply] * 4, value=value)


@pytest.mark.parametrize(
    ("prompt", "told"),
    [
        ([{"role": "user", "content": "{{output}}?"}], '[{"role":"user","content":"x?"}]'),
        ("- role: user\n  content: '{{output}}?'\n", "- role: user\n  content: 'x?'\n"),
    ],
)
def test_a_program_as_a_judge_gets_the_prompt_as_it_is(tmp_path, prompt, told):
    judge = f"""
def call_api(prompt, options, context):
    return {{"output": '{{"pass": true}}' if prompt == {told!r} else '{{"pass": false}}'}}
"""
    assertion = {"type": "llm-rubric", "value": "r", "provider": "python:judge.py", "rubricPrompt": prompt}
    assert asserted(tmp_path, "x", assertion, **{"judge.py": judge}).statuses == ["pass"]
