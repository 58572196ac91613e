"""Assertions that compare the outputs of one test: `select-best` and `max-score`."""

import json
from pathlib import Path

import pytest

from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from evalwright.run.options import RunOptions
from evalwright.run.re_evaluation import re_evaluate
from evalwright.run.resumption import resume, retry
from evalwright.run.start import run_suite
from formats.promptfoo.runs import Ran, run, write

JUDGE = """
import json, pathlib, re
def call_api(prompt, options, context):
    with pathlib.Path(__file__).with_name("asked").open("a") as calls:
        calls.write(json.dumps(prompt) + "\\n")
    texts = re.findall(r'index=."(\\d+).">.n(.*?).n</Text>', prompt)
    return {"output": pathlib.Path(__file__).with_name("says").read_text() or max(texts, key=lambda t: len(t[1]))[0]}
"""
BEST = {"type": "select-best", "value": "the longest {{q}}", "provider": "file://judge.py"}
CONFIG = {
    "prompts": ["a {{q}}", "longest {{q}}", "mid {{q}}"],
    "providers": ["echo"],
    "tests": [
        {"vars": {"q": "one"}, "assert": [BEST, {"type": "contains", "value": "one"}]},
        {"vars": {"q": "two"}, "assert": [{"type": "contains", "value": "mid", "weight": 2}, {"type": "max-score"}]},
    ],
}


def asked(folder: Path) -> list[str]:
    return [json.loads(line) for line in (folder / "asked").read_text().splitlines()]


def test_one_output_of_each_test_keeps_its_outcome_and_the_others_fail(tmp_path):
    ran = run(tmp_path, CONFIG, judge__py=JUDGE, says="")
    assert ran.statuses == ["fail", "pass", "fail", "fail", "fail", "pass"]
    assert [verdict.score for verdict in ran.verdicts.values()] == [0, 1, 0, 0, 0, 1]
    [prompt] = asked(tmp_path)
    assert "the longest one" in prompt
    judged = [row for row in ran.rows if row.evaluator_type == "select-best"]
    assert [row.passed for row in judged] == [False, True, False]
    assert sum("judge_calls" in row.detail for row in judged) == 1
    again = Ran(re_evaluate(ran.outcome.run_dir))
    assert again.statuses == ran.statuses
    assert len(asked(tmp_path)) == 2


def test_the_members_of_a_set_count_as_assertions_of_their_own(tmp_path):
    """Of these columns, the second has two of four assertions, and the first one."""
    members = [{"type": "contains", "value": text} for text in ("longest", "longest one", "nothing of these")]
    assertions = [{"type": "starts-with", "value": "a"}, {"type": "assert-set", "assert": members}]
    ran = run(tmp_path, {**CONFIG, "tests": [{"vars": {"q": "one"}, "assert": [*assertions, {"type": "max-score"}]}]})
    assert [row.passed for row in ran.rows if row.evaluator_type == "max-score"] == [False, True, False]


def test_a_choice_that_is_none_is_an_error_of_all(tmp_path):
    ran = run(tmp_path, CONFIG, judge__py=JUDGE, says="either 0 or 2")
    assert ran.statuses == ["error"] * 3 + ["fail", "fail", "pass"]
    assert ran.outcome.exit_code == 3
    (tmp_path / "says").write_text("2")
    assert Ran(re_evaluate(ran.outcome.run_dir)).statuses == ["fail", "fail", "pass", "fail", "fail", "pass"]


def lines_of(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def keep(path: Path, kept: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in kept))


@pytest.mark.parametrize("with_verdict", [0, 1, 2])
def test_a_run_that_was_cut_off_between_the_cells_of_a_test_is_completed(tmp_path, with_verdict):
    """Whatever a crash left: a cell that has its verdict keeps it, and the others get the same choice."""
    config = {**CONFIG, "tests": CONFIG["tests"][:1]}
    ran = run(tmp_path, config, judge__py=JUDGE, says="")
    folder = ran.outcome.run_dir
    verdicts = lines_of(folder / "verdicts.jsonl")[:with_verdict]
    names = [verdict["variant_name"] for verdict in verdicts]
    keep(folder / "verdicts.jsonl", verdicts)
    keep(
        folder / "results.jsonl",
        [line for line in lines_of(folder / "results.jsonl") if line["variant_name"] in names],
    )
    keep(folder / "traces.jsonl", lines_of(folder / "traces.jsonl")[: max(1, with_verdict)])
    (tmp_path / "says").write_text("0")  # who asks the judge again gets another answer
    again = Ran(resume(folder))
    assert again.statuses == (["fail", "pass", "fail"] if with_verdict else ["pass", "fail", "fail"])
    assert again.outcome.summary.cells_missing == 0
    assert len(asked(tmp_path)) == (1 if with_verdict else 2)


def test_an_output_that_is_missing_makes_the_comparison_an_error_until_it_is_there(tmp_path):
    provider = (
        "import pathlib\ndef call_api(prompt, options, context):\n"
        "    return {'output': pathlib.Path(__file__).with_name('out').read_text()}\n"
    )
    config = {
        "prompts": ["{{q}}"],
        "providers": ["echo", "file://p.py"],
        "tests": [{"vars": {"q": "one"}, "assert": [{"type": "contains", "value": "one"}, {"type": "max-score"}]}],
    }
    ran = run(tmp_path, config, p__py=provider)
    assert ran.statuses == ["error", "error"]
    assert "no answer of python:p.py:default to compare with" in str(ran.verdicts["test-0", "echo", 0].reasons)
    (tmp_path / "out").write_text("something")
    again = Ran(retry(ran.outcome.run_dir))
    assert again.statuses == ["pass", "fail"]


def test_columns_that_a_test_is_not_meant_for_are_not_compared(tmp_path):
    assertions = [{"type": "icontains", "value": "m"}, {"type": "max-score", "value": {"method": "sum"}}]
    test = {"vars": {"q": "x"}, "prompts": ["p0", "p2"], "assert": assertions}
    prompts = [{"raw": f"{text} {{{{q}}}}", "label": f"p{i}"} for i, text in enumerate(("a", "b", "m"))]
    assert run(tmp_path, {**CONFIG, "prompts": prompts, "tests": [test]}).statuses == ["fail", "skip", "pass"]


@pytest.mark.parametrize(
    ("prompts", "assertions", "said"),
    [
        (1, [{"type": "select-best", "value": "x"}], "there is one column"),
        (2, [{"type": "max-score"}], "needs another assertion"),
        (2, [{"type": "assert-set", "assert": [{"type": "max-score"}]}], "cannot be in a set"),
        (2, [{"type": "not-select-best", "value": "x"}], "unknown assertion type 'not-select-best'"),
        (2, [{"type": "select-best"}], "select-best needs a value"),
    ],
)  # fmt: skip
def test_a_comparison_that_could_never_be_judged_is_refused(tmp_path, prompts, assertions, said):
    config = {"prompts": CONFIG["prompts"][:prompts], "providers": ["echo"], "tests": [{"assert": assertions}]}
    with pytest.raises(InputError, match=said):
        load_suite(write(tmp_path, config))


def test_trials_are_compared_each_for_itself_and_in_any_order(tmp_path):
    config = {**CONFIG, "evaluateOptions": {"repeat": 2, "maxConcurrency": 3}}
    outcome = run_suite(
        load_suite(write(tmp_path, config, judge__py=JUDGE, says="")), RunOptions(out=tmp_path / "runs")
    )
    assert sum(variant.cases_passed for variant in outcome.summary.variants) == 2
    assert len(asked(tmp_path)) == 2
