"""What `evaluate` takes beside systems, what it gives back, and what it refuses."""

import asyncio
import json
import signal
import threading

import pytest

import evalwright as ew
from api import agents

CASES = ["one", "two", "three"]


def passes(output):
    return True


def evaluate(cases=CASES, system=agents.upper, **options):
    return ew.evaluate(cases, system, **{"evaluators": passes, "out": None, **options})


def problems(*arguments, **options):
    with pytest.raises(ew.InputError) as raised:
        ew.evaluate(*arguments, **{"out": None, **options})
    return str(raised.value).splitlines()


# Cases


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (["a", {"input": "b"}, ew.Case("x", "c")], [("1", "a"), ("2", "b"), ("x", "c")]),
        ({"first": "a", "second": {"q": 1}}, [("first", "a"), ("second", {"q": 1})]),
        ((text for text in ["a", "b"]), [("1", "a"), ("2", "b")]),
        ([{"id": 7, "input": ["a"], "tags": ["t"]}, 3], [("7", ["a"]), ("2", 3)]),
    ],
)
def test_cases_of_all_shapes(given, found):
    run = evaluate(given, lambda case: "ok")
    assert [(cell.case.id, cell.input) for cell in run] == found


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_cases_from_a_table(library):
    frame = pytest.importorskip(library).DataFrame(
        {
            "id": ["a", "b"],
            "input.text": ["x", "y"],
            "expected.answer_should_include": ["x", None],
            "tags": ["t, u", None],
            "metadata.lang": ["de", "en"],
            "group": [1, 1],
        }
    )
    first, second = (cell.case for cell in evaluate(frame, lambda case: "ok"))
    assert (first.id, first.input, first.tags, first.metadata, first.group) == (
        "a", {"text": "x"}, ["t", "u"], {"lang": "de"}, "1",
    )  # fmt: skip
    assert (first.expected.answer_should_include, second.expected.answer_should_include) == (["x"], [])
    assert second.tags == []


def test_a_column_that_says_nothing_of_a_case_is_refused():
    pandas = pytest.importorskip("pandas")
    assert problems(pandas.DataFrame({"inpt": ["a"]}), agents.upper, evaluators=passes) == [
        "cases: expected a column 'input' or 'input.…', found none",
        "cases['inpt']: unknown column; did you mean \"input\"? (known: id, input, tags, group, description, note, "
        "input.…, expected.…, metadata.…)",
    ]


FILES = {
    "cases.jsonl": '{"id": "a", "input": "x"}\n\n{"input": "y"}\n',
    "cases.json": '[{"id": "a", "input": "x"}, {"input": "y"}]',
    "cases.yaml": "cases:\n  - {id: a, input: x}\n  - y\n",
    "cases.csv": 'id,input,tags\na,x,"t,u"\n,y,\n',
}


@pytest.mark.parametrize("name", FILES)
def test_cases_from_files(name, tmp_path):
    (tmp_path / name).write_text(FILES[name])
    assert [(cell.case.id, cell.input) for cell in evaluate(tmp_path / name)] == [("a", "x"), ("2", "y")]
    assert len(evaluate(str(tmp_path / name), limit=1)) == 1


def test_the_cases_of_a_suite_file(tmp_path):
    write_suite(tmp_path)
    run = evaluate(tmp_path / "eval.yaml", lambda case: case.input["word"])
    assert [cell.output for cell in run] == ["a", "b"]


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


# Evaluators


def test_expectations_choose_the_evaluators():
    cases = [
        ew.Case("a", "x", expected=ew.Expected(answer_should_include=["X"])),
        {"id": "b", "input": "y", "expected": {"must_call_tools": ["look"]}},
    ]
    run = ew.evaluate(cases, agents.upper, out=None)
    assert {cell.case_id: cell.status for cell in run} == {"a": "pass", "b": "fail"}
    assert set(run.cell("a").results) == {"contains_text", "tool_called"}


def test_a_case_that_expects_nothing_is_refused_beside_one_that_does():
    cases = [ew.Case("a", "x", expected=ew.Expected(answer_should_include=["X"])), ew.Case("b", "y")]
    assert "nothing is expected of 'b'" in problems(cases, agents.upper)[0]


def test_evaluators_of_all_shapes():
    @ew.evaluator(name="half", threshold=0.6)
    def scored(output):
        return 0.5, "only half"

    @ew.evaluator
    async def later(output, results):
        return results["loud"].passed

    run = evaluate(
        ["a"],
        evaluators=["answered", ew.Evaluator("contains_text", all_of=["A"], name="has"), agents.loud, scored, later],
    )
    [cell] = run
    assert {name: result.passed for name, result in cell.results.items()} == {
        "answered": True, "has": True, "loud": True, "half": False, "later": True,
    }  # fmt: skip
    assert (cell.status, cell.reasons) == ("fail", ["half: only half"])
    assert scored("x") == (0.5, "only half")


def test_an_evaluator_that_raises_leaves_the_cell_without_a_verdict():
    def cannot(output):
        raise RuntimeError("no idea")

    [cell] = evaluate(["a"], evaluators=[cannot, passes])
    assert (cell.status, cell.results["passes"].passed) == ("error", True)
    assert "no idea" in cell.error


def test_a_judge_is_an_llm_judge():
    judge = ew.Judge("gpt-5", "It is polite.", "It is short.", name="polite", samples=3)
    assert (judge.type, judge.name) == ("llm_judge", "polite")
    assert judge.config == {"model": "gpt-5", "nl_assertions": ["It is polite.", "It is short."], "samples": 3}


def test_a_judge_without_a_key_is_told_before_the_run(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert (
        "OPENAI_API_KEY is not set" in problems(["a"], agents.upper, evaluators=ew.Judge("gpt-5", "It is polite."))[0]
    )


# Running


def test_trials_and_variants_make_cells():
    run = evaluate(system={"a": agents.upper, "b": lambda text, trial: f"{text}{trial}"}, trials=2)
    assert [(cell.case_id, cell.variant, cell.trial) for cell in run][:5] == [
        ("1", "a", 0), ("1", "a", 1), ("1", "b", 0), ("1", "b", 1), ("2", "a", 0),
    ]  # fmt: skip
    assert run.cell("2", "b", 1).output == "two1"
    assert len(run) == 12


def test_tags_limit_and_seed_choose_cases():
    cases = [{"id": str(i), "input": "x", "tags": ["even" if i % 2 == 0 else "odd"]} for i in range(20)]
    chosen = [cell.case.id for cell in evaluate(cases, tags=["odd"], limit=3)]
    drawn = [cell.case.id for cell in evaluate(cases, tags=["odd"], limit=3, seed=1)]
    assert chosen == ["1", "3", "5"]
    assert drawn == [cell.case.id for cell in evaluate(cases, tags=["odd"], limit=3, seed=1)] != chosen
    assert all(int(name) % 2 for name in drawn)


def test_on_cell_is_called_once_for_each_cell_in_the_callers_thread():
    seen = []
    run = evaluate(on_cell=lambda cell: seen.append((cell.case_id, cell.status, threading.get_ident())))
    assert sorted(seen) == [(cell.case_id, "pass", threading.get_ident()) for cell in run]


def test_on_cell_of_aevaluate_is_called_in_the_loop():
    async def main():
        here, seen = asyncio.current_task().get_loop(), []
        await ew.aevaluate(
            CASES,
            agents.upper,
            evaluators=passes,
            out=None,
            on_cell=lambda _: seen.append(asyncio.get_running_loop() is here),
        )
        return seen

    assert asyncio.run(main()) == [True] * 3


@pytest.mark.parametrize("system", [agents.upper, agents.later])
def test_cells_are_stored_before_on_cell_hears_of_them(tmp_path, system):
    heard, stored = [], []

    def hear(cell):
        (verdicts,) = tmp_path.glob("*/verdicts.jsonl")
        heard.append(cell.case_id)
        stored.append(len(verdicts.read_bytes().splitlines()))

    cases = [str(number) for number in range(40)]
    asyncio.run(ew.aevaluate(cases, system, evaluators=passes, out=tmp_path, concurrency=8, on_cell=hear))
    assert [number for number, there in enumerate(stored, 1) if there < number] == []
    assert len(heard) == 40


def test_what_on_cell_raises_ends_the_run(tmp_path):
    def refuses(cell):
        raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        evaluate([str(i) for i in range(200)], concurrency=1, on_cell=refuses, out=tmp_path)
    [folder] = tmp_path.iterdir()
    assert ew.open_run(folder).name == "upper"


def test_retries_are_further_attempts():
    calls = []

    async def late_at_first(text):
        calls.append(text)
        if len(calls) == 1:
            await asyncio.sleep(60)
        return text

    run = evaluate(["a"], late_at_first, timeout=0.1, retries=1)
    assert run.passed
    assert len(calls) == 2


def test_equal_errors_stop_the_run(tmp_path):
    def broken(text):
        raise RuntimeError("no key")

    run = evaluate([str(i) for i in range(60)], broken, concurrency=1, out=tmp_path, name="n")
    assert (run.summary.status, len(run)) == ("partial", 20)
    assert run.stopped.startswith(
        "the first 20 cells all ended in the same error: RuntimeError: no key in test_evaluate"
    )
    assert not run.passed
    assert len(evaluate([str(i) for i in range(60)], broken, concurrency=1, stop_after_equal_errors=None)) == 60


def test_other_errors_or_one_success_do_not_stop_it():
    def differs(text):
        raise RuntimeError(text)

    def starts_well(text):
        if text != "0":
            raise RuntimeError("no key")
        return text

    cases = [str(i) for i in range(30)]
    for system in (differs, starts_well):
        run = evaluate(cases, system, concurrency=1)
        assert (len(run), run.stopped) == (30, None)


def test_a_run_of_fewer_cells_is_complete():
    run = evaluate(["a", "b"], lambda text: None)
    assert (run.summary.status, run.stopped) == ("complete", None)


def test_streaming_and_leaving_early(tmp_path):
    cases = [str(i) for i in range(100)]

    async def main():
        async with ew.stream(cases, agents.later, evaluators=passes, out=tmp_path, concurrency=1) as cells:
            return await anext(cells)

    assert asyncio.run(main()).status == "pass"
    [folder] = tmp_path.iterdir()
    run = ew.open_run(folder)
    assert 0 < len(run) < 100
    assert "cells were not run" in run.stopped
    resumed = ew.resume(run)
    assert (len(resumed), resumed.stopped) == (100, None)


def test_the_stream_raises_what_the_run_raises(tmp_path):
    (tmp_path / "file").write_text("")

    async def main():
        async with ew.stream(["a"], agents.upper, evaluators=passes, out=tmp_path / "file" / "runs") as cells:
            async for _ in cells:
                pass

    with pytest.raises((ew.StorageError, ew.InputError)):
        asyncio.run(main())


def test_no_signal_handlers_and_no_changed_process(capsys):
    import os
    import sys

    before = (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGALRM), sys.stdout, os._exit, dict(os.environ))
    seen = []

    def looks(text):
        seen.append((signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGALRM)))
        return text

    evaluate(["a"], looks)
    after = (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGALRM), sys.stdout, os._exit, dict(os.environ))
    assert after == before
    assert seen == [before[:2]]


# Suites


def write_suite(folder):
    (folder / "cases.yaml").write_text(
        "cases:\n  - {id: a, input: {word: a}, tags: [smoke]}\n  - {id: b, input: {word: b}}\n"
    )
    (folder / "eval.yaml").write_text(
        "eval: {name: suite}\ndataset: {type: yaml, path: cases.yaml}\n"
        "systems:\n  - {name: one, adapter: python_function, target: 'api.agents:picks'}\n"
        "  - {name: two, adapter: python_function, target: 'api.agents:picks', word: w}\n"
        "evaluators: [{name: has, type: contains_text, config: {all_of: [a]}}]\n"
        "output: {type: local_files, path: own}\n"
    )


@pytest.fixture
def suite(tmp_path, monkeypatch):
    write_suite(tmp_path)
    monkeypatch.chdir(tmp_path)
    return ew.load("eval.yaml")


def test_a_suite_runs_with_its_own_systems_evaluators_and_folder(suite, tmp_path):
    run = ew.evaluate(suite)
    assert (run.name, run.variants, run.path.parent) == ("suite", ["one", "two"], tmp_path / "own")
    assert [cell.output for cell in run] == ["a -", "a w", "b -", "b w"]


def test_a_suite_is_narrowed_and_changed(suite):
    run = ew.evaluate(suite, "two", tags=["smoke"], out=None, name="other", trials=2)
    assert [(cell.case_id, cell.variant, cell.trial) for cell in run] == [("a", "two", 0), ("a", "two", 1)]
    assert run.name == "other"
    run = ew.evaluate(suite, {"mine": lambda text: text["word"]}, evaluators=passes, limit=1, out=None)
    assert [(cell.variant, cell.output, list(cell.results)) for cell in run] == [("mine", "a", ["passes"])]


def test_a_variant_that_a_suite_has_not_is_refused_with_the_nearest(suite):
    assert problems(suite, "tow") == [
        "system: no system 'tow'; did you mean \"two\"?: expected 'module:callable' or one of one, two"
    ]


def test_load_says_what_is_wrong(tmp_path):
    (tmp_path / "eval.yaml").write_text("eval: {name: x}\nsystms: []\n")
    with pytest.raises(ew.InputError) as raised:
        ew.load(tmp_path / "eval.yaml")
    assert any("systms" in str(problem) for problem in raised.value.problems)
    with pytest.raises(ew.InputError, match="unknown format 'natve'; did you mean"):
        ew.load(tmp_path / "eval.yaml", format="natve")


def test_the_plan_notes_where_functions_are_found(tmp_path):
    run = evaluate(["a"], agents.upper, evaluators=agents.loud, out=tmp_path)
    plan = json.loads((run.path / "plan.json").read_text())
    assert plan["variants"][0]["config"]["target"] == "api.agents:upper"
    assert plan["evaluators"][0]["config"] == {"function": "api.agents:loud"}


def test_a_misspelt_key_of_an_evaluator_is_reported_where_it_is_written():
    with pytest.raises(ew.InputError, match=r"Evaluator\('contains_text'\).*'all_fo'; did you mean \"all_of\""):
        ew.Evaluator("contains_text", all_fo=["a"])
    with pytest.raises(ew.InputError, match=r'\'rubrik\'; did you mean "rubric"'):
        ew.Judge("gpt-test", rubrik="The answer is polite.")
