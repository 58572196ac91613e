"""`evalwright audit`: a run in, mutants caught and survived out."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from acceptance.projects import EVAL, Project, project, rows


@pytest.fixture
def made(tmp_path: Path) -> Project:
    return project(tmp_path, {"a": "thanks for order 1", "b": "many thanks, for order 2", "c": "no"})


def test_the_tables_fit_eighty_columns(made: Project) -> None:
    ended = made.evalwright("audit", made.run(), COLUMNS="80")
    assert (ended.code, ended.err) == (0, "suite: eval.yaml, as the run stored it\n")
    assert ended.out.startswith("shop  10 mutants of 2 traces\nCaught: ")
    assert re.search(r"^  answer emptied +100\.0% +34\.2–100\.0% +2 +0$", ended.out, re.MULTILINE)
    assert "  2 × other numbers in the answer\n      a · v  thanks for order 2\n" in ended.out
    assert max(map(len, ended.out.splitlines())) <= 80


def test_an_answer_that_was_emptied_is_shown_as_empty(tmp_path: Path) -> None:
    never = EVAL.replace("all_of: [thanks]", "none_of: [swearword]")
    made = project(tmp_path, {"a": "thanks"}, never)
    assert "  1 × answer emptied\n      a · v  (empty)\n" in made.evalwright("audit", made.run()).out


def test_json_has_every_survivor(made: Project) -> None:
    report = json.loads(made.evalwright("audit", made.run(), "--json").out)
    survived = [mutation for mutation in report["mutations"] if mutation["survived"]]
    assert len(report["survivors"]) == sum(mutation["survived"] for mutation in survived) > 0
    assert report["survivors"][0].keys() == {"case_id", "variant_name", "trial", "mutation", "change"}


def test_the_records_are_not_touched(made: Project) -> None:
    run = made.run()
    before = [rows(run, f"{name}.jsonl") for name in ("traces", "results", "verdicts")]
    made.evalwright("audit", run)
    assert [rows(run, f"{name}.jsonl") for name in ("traces", "results", "verdicts")] == before


CHECK = """
def check(output):
    if not output:
        raise ValueError(os.environ["SHOP_API_KEY"])
    return True
"""


def test_errors_of_evaluators_end_with_3_and_show_no_secret(tmp_path: Path) -> None:
    code = '  - {name: code, type: python_function, config: {function: "agent:check"}}\n'
    made = project(tmp_path, {"a": "thanks"}, EVAL.replace("output:", f"{code}output:"))
    agent = tmp_path / "agent.py"
    agent.write_text(agent.read_text() + CHECK)
    run = made.run()
    ended = made.evalwright("audit", run, SHOP_API_KEY="sesame-open-7")
    text = " ".join(ended.out.split())
    assert (
        ended.code,
        "no verdict on 1 mutant, because an evaluator had an error: code: ***MASKED*** in agent.py" in text,
    ) == (3, True)
    assert "sesame" not in ended.out + ended.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["eval.yaml"], "is neither a run folder nor a SQLite file with runs"),
        (["runs"], "is not a run folder"),
        (["RUN", "--budget", "1"], "--budget: no model is called without --judges"),
        (["RUN", "--limit", "0"], "expected a whole number of at least 1"),
    ],
)
def test_mistakes_are_said(made: Project, arguments: list[str], said: str) -> None:
    run = made.run()
    ended = made.evalwright("audit", *[str(run) if argument == "RUN" else argument for argument in arguments])
    assert (ended.code, said in ended.err, ended.out) == (2, True, "")


def test_a_run_in_which_nothing_passed_cannot_be_audited(tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "no"})
    ended = made.evalwright("audit", made.run())
    assert (ended.code, "passed: there is no answer to make mutants of" in ended.err) == (2, True)
