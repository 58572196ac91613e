"""What `evaluate` refuses before anything runs."""

import pytest

import evalwright as ew
from api import agents
from api.evaluations import evaluate, passes, problems


def test_every_problem_is_listed_with_its_place():
    cases = [
        "a",
        {"inptu": 1},
        {"input": 1, "expected": {"answer_should_inclde": []}},
        {"input": 1, "tags": "x"},
        object(),
    ]
    found = problems(cases, [3, lambda: "x"], evaluators=["contans_text", passes, passes], trials=0)
    assert [text.partition(": ")[0] for text in found] == [
        "trials", "cases[1].inptu", "cases[2].expected.answer_should_inclde", "cases[3].tags", "cases[4]",
        "system[0]", "system[1]", "evaluators[0]", "evaluators",
    ]  # fmt: skip
    assert found[7] == "evaluators[0]: unknown evaluator 'contans_text'; did you mean \"contains_text\"?"


@pytest.mark.parametrize(
    ("arguments", "options", "said"),
    [
        (([], agents.upper), {"evaluators": passes}, "expected at least one case"),
        ((["a"], agents.upper), {}, "nothing would be judged"),
        ((["a"], agents.upper), {"evaluators": []}, "nothing would be judged"),
        ((["a"],), {"evaluators": passes}, "system: expected a function"),
        ((["a"], {}), {"evaluators": passes}, "expected at least one system"),
        ((["a"], [agents.upper, agents.upper]), {"evaluators": passes}, "two systems are named 'upper'"),
        (([ew.Case("x", 1), ew.Case("x", 2)], agents.upper), {"evaluators": passes}, "two cases have the id 'x'"),
        ((["a"], agents.upper), {"evaluators": passes, "baseline": "uper"}, 'did you mean "upper"?'),
        ((["a"], agents.upper), {"evaluators": passes, "resume": True}, "resume: expected a folder"),
        ((["a"], "agents"), {"evaluators": passes}, "expected 'module:callable'"),
        ((["a"], "api.agents:uper"), {"evaluators": passes}, "cannot be imported"),
        ((b"bytes", agents.upper), {"evaluators": passes}, "found bytes"),
        (("nowhere.jsonl", agents.upper), {"evaluators": passes}, "there is no file nowhere.jsonl"),
        ((["a"], agents.upper), {"evaluators": ew.Evaluator("contains_text", all_of=[1])}, "evaluators.all_of"),
        ((["a"], agents.upper), {"evaluators": lambda outpt: True}, 'did you mean "output"?'),
        ((["a"], agents.upper), {"evaluators": passes, "timeout": "soon"}, "timeout: expected a number"),
        ((["a"], agents.upper), {"evaluators": passes, "tags": "x"}, "tags: expected a list"),
        ((["a"], agents.upper), {"evaluators": passes, "tags": ["x"]}, "no case matches tag x"),
    ],
)
def test_what_cannot_be_used_is_refused_before_anything_runs(arguments, options, said):
    assert said in "\n".join(problems(*arguments, **options))


def test_an_unknown_keyword_is_pythons_own_error():
    with pytest.raises(TypeError, match=r"^evaluate\(\) got .*'trails'; did you mean \"trials\""):
        evaluate(trails=3)
