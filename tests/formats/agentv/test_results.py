"""Runs as the original's result files."""

import json

import pytest

from evalwright.errors import InputError
from evalwright.formats.agentv.report import AgentvResults
from evalwright.formats.loading import load_suite
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run

SCORES = {"good": 0.9, "bad": 0.2}


@pytest.fixture
def lines(tmp_path):
    """Runs cases with composites of members that score as they are told; the lines by id."""

    def lines(*cases):
        (tmp_path / ".git").mkdir()
        targets = [{"name": "default", "provider": "mock", "response": "yes"}]
        broken = {"name": "broken", "provider": "cli", "command_template": "echo no >&2; exit 3"}
        (tmp_path / "targets.yaml").write_text(json.dumps({"targets": [*targets, broken]}))
        (tmp_path / "EVAL.yaml").write_text(json.dumps({"name": "suite", "evalcases": cases}))
        suite = load_suite(tmp_path / "EVAL.yaml", "agentv")
        suite.out = tmp_path / "runs"
        outcome = run_suite(suite)
        reader, plan = open_run(outcome.run_dir)
        reader.plan = plan
        text = AgentvResults().render(reader, outcome.summary)
        return [json.loads(line) for line in text.splitlines()]

    return lines


def judge(name, **more):
    said = json.dumps({"score": SCORES[name], "hits": [name], "misses": [], "reasoning": f"it is {name}"})
    return {"name": name, "type": "code_judge", "script": ["echo", said], **more}


def case(case_id, evaluators, **execution):
    return {"id": case_id, "expected_outcome": "x", "input": "hi", "execution": {"evaluators": evaluators, **execution}}


@pytest.fixture
def suite_with_output(tmp_path):
    """A suite whose results go to the place of a name."""
    (tmp_path / "targets.yaml").write_text(json.dumps({"targets": [{"name": "default", "provider": "mock"}]}))
    (tmp_path / "EVAL.yaml").write_text(json.dumps({"name": "suite", "evalcases": [case("a", [judge("good")])]}))

    def suite_with_output(name):
        suite = load_suite(tmp_path / "EVAL.yaml", "agentv", options={"output": tmp_path / name})
        suite.out = tmp_path / "runs"
        return suite

    return suite_with_output


def test_results_whose_file_has_a_name_too_long_are_refused_before_the_run(tmp_path, suite_with_output):
    with pytest.raises(InputError, match="name too long"):
        run_suite(suite_with_output("x" * 300))
    assert not (tmp_path / "runs").exists()


def test_results_take_the_place_of_a_link_that_leads_nowhere(tmp_path, suite_with_output):
    (tmp_path / "results.jsonl").symlink_to("results.jsonl")
    run_suite(suite_with_output("results.jsonl"))
    assert json.loads((tmp_path / "results.jsonl").read_text())["test_id"] == "a"


def test_a_case_is_a_line(lines):
    (line,) = lines(case("a", [judge("good", weight=3), judge("bad")]))
    assert (line["eval_id"], line["test_id"], line["dataset"], line["target"]) == ("a", "a", "suite", "default")
    assert (round(line["score"], 9), line["verdict"], line["hits"]) == (0.725, "borderline", ["good", "bad"])
    assert (line["candidate_answer"], line["reasoning"]) == ("yes", "good: it is good | bad: it is bad")
    assert [(r["name"], r["score"], r["weight"], r["verdict"]) for r in line["evaluator_results"]] == [
        ("good", 0.9, 3.0, "pass"),
        ("bad", 0.2, 1.0, "fail"),
    ]


def test_members_of_composites_are_results_in_theirs(lines):
    (line,) = lines(case("a", [{"name": "both", "type": "composite", "evaluators": [judge("good"), judge("bad")]}]))
    (both,) = line["evaluator_results"]
    assert [(r["name"], r["score"]) for r in both["evaluator_results"]] == [("good", 0.9), ("bad", 0.2)]


def test_an_answer_that_did_not_come_is_told_as_a_miss(lines):
    (line,) = lines(case("a", [judge("good")], target="broken"))
    assert (line["score"], line["verdict"], line["misses"]) == (0, "fail", ["Error: no (exit code 3)"])
    assert line["evaluator_results"] == []
    assert (line["error"], line["target"]) == ("no (exit code 3)", "broken")


def test_a_line_names_the_conversation_of_its_case(lines):
    first, second = lines({**case("a", [judge("good")]), "conversation_id": "talk"}, case("b", [judge("good")]))
    assert (first["conversation_id"], "conversation_id" in second) == ("talk", False)


def test_lines_have_the_order_of_the_cases(lines):
    found = lines(case("slow", [judge("good")]), case("b", [judge("good")]), case("c", [judge("good")]))
    assert [line["eval_id"] for line in found] == ["slow", "b", "c"]


def test_a_check_of_a_text_has_its_own_type(lines):
    checks = [("contains-any", ["x"]), ("regex", "x"), ("is-json", None)]
    (line,) = lines(case("a", [{"name": kind, "type": kind, "value": value} for kind, value in checks]))
    assert [row["type"] for row in line["evaluator_results"]] == ["contains-any", "regex", "is-json"]


def test_a_check_of_a_text_has_its_own_type_within_composites(lines):
    check = {"name": "c", "type": "contains-all", "value": ["x"]}
    inner = {"name": "inner", "type": "composite", "aggregator": {"type": "weighted_average"}, "evaluators": [check]}
    (line,) = lines(case("a", [{**inner, "name": "outer", "evaluators": [inner, {**check, "type": "contains-any"}]}]))
    (outer,) = line["evaluator_results"]
    nested, plain = outer["evaluator_results"]
    assert (nested["evaluator_results"][0]["type"], plain["type"]) == ("contains-all", "contains-any")
