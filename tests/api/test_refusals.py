"""What `evaluate` refuses before anything runs."""

import pytest

import evalwright as ew
from api import agents
from api.evaluations import evaluate, passes, problems


class Graph:
    """As in LangGraph: an object that is called by a method."""

    def invoke(self, state):
        return state


def test_every_problem_is_listed_with_its_place():
    cases = [
        "a",
        {"inptu": 1},
        {"input": 1, "expected": {"answer_should_inclde": []}},
        {"input": 1, "tags": "x"},
        object(),
    ]
    listed = problems(cases, [3, lambda: "x"], evaluators=["contans_text", passes, passes], trials=0)
    assert [text.partition(": ")[0] for text in listed] == [
        "trials", "cases[1].inptu", "cases[2].expected.answer_should_inclde", "cases[3].tags", "cases[4]",
        "system[0]", "system[1]", "evaluators[0]", "evaluators",
    ]  # fmt: skip
    assert listed[7] == "evaluators[0]: unknown evaluator 'contans_text'; did you mean \"contains_text\"?"


def test_an_input_that_is_taken_for_a_case_says_how_to_write_it():
    [unknown] = problems([{"messages": []}], agents.upper, evaluators=passes)
    assert unknown.startswith("cases[0].messages: unknown key (known: id, input")
    assert unknown.endswith("; an input that is a mapping is written {'input': {...}})")


def test_an_evaluator_without_its_keys_is_named_and_so_is_how_to_give_them():
    listed = problems(["a"], agents.upper, evaluators="exact_match")
    assert listed[0] == "evaluators: 'exact_match' alone lacks its keys: pass Evaluator('exact_match', KEY=...)"
    assert listed[1].startswith("evaluators.field: exact_match: the required key 'field' is missing")
    [unused, *_] = problems(["a"], agents.upper, evaluators=[passes, ew.Evaluator("exact_match", field="x")])
    assert unused.startswith("evaluators[1].expected: exact_match: needs 'expected'")


def test_a_system_that_cannot_be_imported_leaves_no_run_behind(tmp_path):
    [problem] = problems(["a"], "api.agents:uper", evaluators=passes, out=tmp_path)
    assert problem.startswith("system: 'api.agents:uper' cannot be imported")
    assert 'did you mean "upper"?' in problem
    assert [*tmp_path.iterdir()] == []


def test_what_is_expected_of_a_case_is_no_plain_answer():
    [problem] = problems([{"input": "a", "expected": "A"}], agents.upper, evaluators=passes)
    assert problem == "cases[0].expected: expected a mapping like {'answer_should_include': ['...']}, found str"


def test_no_option_of_the_command_line_is_named():
    with pytest.raises(ew.InputError) as refused:
        evaluate(["a"], agents.upper, evaluators=passes, tags=["x"])
    assert str(refused.value) == "no case matches tag x (no case has tags)"


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
        ((["a"], agents.upper), {"evaluators": passes, "baseline": 1}, "baseline: expected the name of a system"),
        ((["a"], agents.upper), {"evaluators": passes, "retries": "x"}, "retries: expected a whole number"),
        ((["a"], ew.System(agents.upper, name=5)), {"evaluators": passes}, "system.name: expected text, found 5"),
        (
            (["a"], agents.upper),
            {"evaluators": ew.Evaluator("contains_text", name=5)},
            "evaluators.name: expected text",
        ),
        ((["a"], agents.upper), {"evaluators": ew.evaluator(name=5)(lambda output: True)}, "evaluators.name: expected"),
        *(
            (
                (["a"], agents.upper),
                {"evaluators": ew.Evaluator("answered", threshold=threshold)},
                f"evaluators.threshold: answered: expected a number, found {threshold!r}",
            )
            for threshold in (float("nan"), "0.5", True)
        ),
        (
            (["a"], agents.upper),
            {"evaluators": passes, "on_cell": agents.later},
            "expected a function that is not async",
        ),
        ((["a"], ew.System(agents.upper, settings={"target": 1})), {"evaluators": passes}, "take another one"),
        ((["a"], agents.upper), {"evaluators": passes, "resume": True}, "resume: expected a folder"),
        ((["a"], "agents"), {"evaluators": passes}, "'module:callable' or the name of a target, found 'agents'"),
        ((["a"], Graph()), {"evaluators": passes}, "found Graph; give a function that calls its `invoke`"),
        (
            (["a"], lambda text: text),
            {"evaluators": passes, "executor": "ray"},
            "test_refusals:<lambda>: move the function",
        ),
        (
            (["a"], agents.upper),
            {"evaluators": passes, "executor": "rya"},
            "executor: expected local or ray, found 'rya'",
        ),
        ((["a"], "api.agents:uper"), {"evaluators": passes}, "cannot be imported"),
        ((b"bytes", agents.upper), {"evaluators": passes}, "found bytes"),
        (("", agents.upper), {"evaluators": passes}, "expected the path of a file, found an empty text"),
        (("nowhere.jsonl", agents.upper), {"evaluators": passes}, "there is no file nowhere.jsonl"),
        ((["a"], agents.upper), {"evaluators": ew.Evaluator("contains_text", all_of=[1])}, "evaluators.all_of"),
        ((["a"], agents.upper), {"evaluators": lambda outpt: True}, 'did you mean "output"?'),
        ((["a"], agents.upper), {"evaluators": lambda output, /: True}, "the parameter 'output' accepts no keyword"),
        ((["a"], agents.upper), {"evaluators": {"x": passes}}, "evaluators: expected a list, found a mapping"),
        ((["a"], agents.upper), {"evaluators": passes, "timeout": "soon"}, "timeout: expected a number"),
        ((["a"], agents.upper), {"evaluators": passes, "tags": "x"}, "tags: expected a list"),
        ((["a"], agents.upper), {"evaluators": passes, "tags": ["x"]}, "no case matches tag x"),
        ((["a"], agents.upper), {"evaluators": passes, "tags": [1]}, "tags: expected a list of tags, found [1]"),
        ((["a"], agents.upper), {"evaluators": passes, "seed": "x"}, "seed: expected a whole number, found 'x'"),
        ((["a"], agents.upper), {"evaluators": passes, "out": 5}, "out: expected a folder, found 5"),
        ((["a"], agents.upper), {"evaluators": passes, "resume": "no"}, "resume: expected True or False"),
        ((["a"], ew.System(agents.upper, timeout=0)), {"evaluators": passes}, "system.timeout: expected a number"),
        ((["a"], {"b": ew.System(agents.upper, concurrency=0)}), {"evaluators": passes}, "['b'].concurrency: expected"),
    ],
)
def test_what_cannot_be_used_is_refused_before_anything_runs(arguments, options, said):
    assert said in "\n".join(problems(*arguments, **options))


@pytest.mark.parametrize(
    ("case", "said"),
    [
        (ew.Case(5, "x"), ".id: expected str, found int"),
        (ew.Case("", "x"), ".id: expected an id that is not empty"),
        ({"id": "", "input": "x"}, ".id: expected an id that is not empty"),
        ({"id": True, "input": "x"}, ".id: expected str, found bool"),
        (ew.Case("a", "x", tags="smoke"), ".tags: expected list, found str"),
        (ew.Case("a", "x", expected={"facts": {}}), ".expected: expected an Expected, found dict"),
        (ew.Case("a", object()), ": expected a case that JSON can hold: encoding objects of type object"),
        (ew.Case("a", {"b": [1, float("nan")]}), ".input.b[1]: expected a JSON value, found nan"),
        ({"input": None, "metadata": {"b": float("-inf")}}, ".metadata.b: expected a JSON value, found -inf"),
        ("\ud800", ": expected an input that JSON can hold: 'utf-8' codec can't encode"),
    ],
)
def test_a_case_that_no_run_can_store_is_refused(case, said):
    [listed] = problems(["fits", case, ew.Case("fits, too", {"b": None})], agents.upper, evaluators=passes)
    assert listed.startswith(f"cases[1]{said}")


@pytest.mark.parametrize(
    ("name", "content", "places"),
    [
        ("c.jsonl", b'{"input": 1}\n{bad\n\nworse\n', [2, 4]),
        ("c.jsonl", '{"input": "é"}\n'.encode("latin-1"), [1]),
        ("c.yaml", b'schema_version: "2.0"\ncases: [a]\n', [None]),
        ("c.yaml", b"schema_version: 1.0\ncases: [a]\n", [None]),
    ],
)
def test_every_broken_line_of_a_file_of_cases_is_listed(tmp_path, name, content, places):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ew.InputError) as raised:
        evaluate(tmp_path / name)
    assert [(problem.file, problem.line) for problem in raised.value.problems] == [
        (str(tmp_path / name), line) for line in places
    ]


def test_an_unknown_keyword_is_pythons_own_error():
    with pytest.raises(TypeError, match=r"^evaluate\(\) got .*'trails'; did you mean \"trials\""):
        evaluate(trails=3)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: ew.open_run(5),
        lambda: ew.load(5),
        lambda: ew.resume(5),
        lambda: ew.Evaluator(5),
        lambda: ew.evaluator(5),
        lambda: ew.Judge(5, "It is polite."),
        lambda: evaluate(["a"], agents.upper, evaluators=passes).report(5),
    ],
)
def test_arguments_of_the_wrong_type_are_named(wrong):
    with pytest.raises(ew.InputError, match=r"expected|unknown report"):
        wrong()


def test_a_run_without_its_plan_is_told_as_such(tmp_path):
    run = evaluate(["hello"], out=tmp_path)
    (run.path / "plan.json").unlink()
    with pytest.raises(ew.InputError, match=r"its plan\.json is missing"):
        ew.open_run(run.path)
