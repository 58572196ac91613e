"""What is most likely not meant stays visible from the start of a run to its last report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acceptance.projects import Ended, Project, project

KEY, NEAREST = "answer_should_inclde", 'did you mean "answer_should_include"?'


@pytest.fixture
def doubtful(tmp_path: Path) -> Project:
    """A suite that passes, with a misspelt key in its second case."""
    made = project(tmp_path, {"a": "thanks"})
    second = {"id": "b", "input": {"do": "thanks"}, "expected": {KEY: ["zebra"]}}
    with (tmp_path / "cases.jsonl").open("a") as cases:
        cases.write(json.dumps(second) + "\n")
    return made


def told(text: str) -> bool:
    return "cases.jsonl:2" in text and KEY in text and NEAREST in text


def test_the_start_and_the_end_of_a_run_tell_the_warning(doubtful: Project) -> None:
    ended = doubtful.evalwright("run", "eval.yaml")
    assert ended.code == 0
    assert told(ended.err)
    assert told(ended.out)


def test_also_a_quiet_run_tells_it(doubtful: Project) -> None:
    ended = doubtful.evalwright("run", "eval.yaml", "--quiet")
    assert told(ended.err)
    assert len(ended.out.splitlines()) == 1


def test_a_dry_run_tells_it(doubtful: Project) -> None:
    assert told(doubtful.evalwright("run", "eval.yaml", "--dry-run").err)


def test_the_stored_run_and_its_reports_keep_it(doubtful: Project) -> None:
    run = doubtful.run()
    assert KEY in (run / "summary.yaml").read_text()
    for form in ("markdown", "html", "json", "junit"):
        text = doubtful.evalwright("report", run, "--format", form).out
        assert "cases.jsonl:2" in text
        assert KEY in text, form


@pytest.mark.parametrize("command", ["resume", "retry", "re-evaluate"])
def test_later_work_on_the_run_keeps_it(doubtful: Project, command: str) -> None:
    run = doubtful.run()
    (run / "summary.yaml").unlink()
    ended = doubtful.evalwright(command, run, "--json")
    assert told(warnings_of(ended))
    assert KEY in (run / "summary.yaml").read_text()


def warnings_of(ended: Ended) -> str:
    return "\n".join(json.loads(ended.out)["summary"]["warnings"])


def test_a_mistake_in_every_case_is_told_once_and_hides_no_other(tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "thanks"})
    cases = [{"id": f"c{i}", "input": {"do": "thanks"}, "expcted": {}} for i in range(1500)]
    cases[1200]["tgas"] = ["b"]
    (tmp_path / "cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases))
    warnings = json.loads(made.evalwright("run", "eval.yaml", "--json").out)["summary"]["warnings"]
    assert [line.partition("  ")[0] for line in warnings] == [f"cases.jsonl:{line}" for line in (1, 2, 3, 1201)]
    assert warnings[2].endswith("(and in 1,497 more places)")


def test_a_part_that_nothing_reads_is_counted_without_reading_all_cases_again(tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "thanks"})
    case = {"input": {"do": "thanks"}, "expected": {"must_modify_files": ["a"]}}
    (tmp_path / "cases.jsonl").write_text("".join(json.dumps({"id": f"c{i}", **case}) + "\n" for i in range(1500)))
    warnings = json.loads(made.evalwright("run", "eval.yaml", "--json").out)["summary"]["warnings"]
    assert warnings == [
        "cases.jsonl:1  expected.must_modify_files  no evaluator of this suite reads this key "
        "(and in 1,499 more places)"
    ]


def test_more_warnings_than_a_run_keeps_are_counted(tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "thanks"})
    cases = [{"id": f"c{i}", "input": {"do": "thanks"}, f"key{i}": 1} for i in range(1200)]
    (tmp_path / "cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases))
    ended = made.evalwright("run", "eval.yaml", "--json")
    assert "... and 51 more lines of warnings" in ended.err
    warnings = json.loads(ended.out)["summary"]["warnings"]
    assert len(warnings) == 101
    assert warnings[-1] == "… and at least 1,100 more"
    checked = json.loads(made.evalwright("validate", "eval.yaml", "--json").out)["warnings"]
    assert len(checked) == 1001
    assert (checked[-1]["message"], checked[-1]["more"]) == ("a problem of yet another kind", 199)


def test_a_run_without_cases_is_not_called_passed(tmp_path: Path) -> None:
    made = project(tmp_path, {})
    ended = made.evalwright("run", "eval.yaml", "--allow-empty")
    assert (ended.code, "nothing was judged: there was no cell to run" in ended.out) == (0, True)
    run = ended.out.splitlines()[-1]
    report = made.evalwright("report", run).out
    assert report.startswith("**Not judged: there was no cell to run**")
    assert "warning" in report.lower()
