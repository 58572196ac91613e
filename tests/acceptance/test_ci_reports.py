"""Reports for pull requests and CI, made of real runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from acceptance.projects import EVAL, Project, outputs, project
from evalwright.model.cell import cell_key

CASES = {f"c{i}": "thanks" for i in range(14)}
EVIL = "</details> `x` ```\n````\n@everyone #12 <img src=x> | ![i](http://e.org)"


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Path, Path]:
    """A project whose second run is worse in twelve cases, one of them with a hostile answer."""
    folder = tmp_path_factory.mktemp("two")
    (folder / ".git").mkdir()
    made = project(folder, {name: {"do": "thanks", "after": f"no {name}"} for name in CASES}, EVAL)
    agent = folder / "agent.py"
    before = made.run("--out", "a")
    answers = {"c0": EVIL, "c12": "thanks", "c13": "thanks"}
    agent.write_text(
        f"ANSWERS = {answers!r}\n"
        "def run(case, variant):\n"
        "    return {'final_answer': ANSWERS.get(case['id'], case['input']['after'])}\n"
    )
    return made, before, made.run("--out", "b")


def test_a_comment_begins_with_the_decision_and_shows_the_worst_answers(two: tuple[Project, Path, Path]) -> None:
    made, before, after = two
    words = ("report", after, "--compare", before, "--link", "https://e.org/b/")
    text = made.evalwright(*words).out
    assert re.match(
        r"\*\*Worse by more than 2 pp: −85\.7 pp \[−\S+, −\S+\], 12 cases worse, 0 better \(p <0\.001\)\*\*\n", text
    ), text[:300]
    assert text.count("<details>") == text.count("</details>\n") == 10
    assert f"](<https://e.org/b/runs/{after.name}/cells/" in text
    folded = text.partition("<details>\n<summary>worse: <code>c0</code>")[2].partition("\n</details>")[0]
    assert "before:\n\n```text\nthanks\n```" in folded
    assert f"after:\n\n`````text\n{EVIL}\n`````" in text
    assert made.evalwright(*words).out == text, "the same data gives the same text"


def test_a_summary_that_goes_nowhere_is_said(two: tuple[Project, Path, Path]) -> None:
    made, _, after = two
    ended = made.evalwright("report", after, "--github", GITHUB_STEP_SUMMARY="", GITHUB_OUTPUT="")
    text = "neither $GITHUB_STEP_SUMMARY nor $GITHUB_OUTPUT is set: no job summary and no outputs are written"
    assert f"warning: {text}" in ended.err.splitlines()


def test_sections_that_do_not_fit_are_left_out_and_named(two: tuple[Project, Path, Path]) -> None:
    made, before, after = two
    text = made.evalwright("report", after, "--compare", before, "--limit-chars", "2000").out
    assert len(text) <= 2000
    last = text.splitlines()[-1]
    assert last.startswith("Left out to stay within 2,000 characters: Changed cases, Failures by reason, ")


def test_a_step_of_github_gets_annotations_summary_and_outputs(two: tuple[Project, Path, Path], tmp_path: Path) -> None:
    made, before, after = two
    (summary, output) = (tmp_path / "summary.md", tmp_path / "output")
    summary.write_text("# before\n")
    files = {"GITHUB_STEP_SUMMARY": str(summary), "GITHUB_OUTPUT": str(output)}
    ended = made.evalwright("report", after, "--github", "--compare", before, **files)
    assert ended.code == 0
    lines = [line for line in ended.err.splitlines() if line.startswith("::error ")]
    assert lines[0].startswith("::error file=cases.jsonl,line=1,title=regression%3A c0 · v::")
    assert lines[-1] == "::error title=evalwright::and 3 more cells failed"
    assert summary.read_text().startswith("# before\n**Worse by more than 2 pp: ")
    written = outputs(output)
    assert {name: written[name] for name in ("passed", "failed", "errors", "worse", "exit_code")} == {
        "passed": "2",
        "failed": "12",
        "errors": "0",
        "worse": "12",
        "exit_code": "1",
    }
    assert written["decision"].startswith("Worse by more than 2 pp: −85.7 pp")


def test_run_writes_them_itself_and_keeps_its_output(tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "thanks", "b": "no"})
    output = tmp_path / "output"
    ended = made.evalwright("run", "eval.yaml", "--github", "--json", GITHUB_OUTPUT=str(output))
    assert ended.code == 1
    assert ended.out.startswith('{"run_dir"')
    assert "::error file=cases.jsonl,line=2,title=b · v::polite: " in ended.err
    assert outputs(output)["exit_code"] == "1"
    assert outputs(output)["decision"].startswith("Failed: 1 cell did not pass; 50.0% [")


def test_a_summary_that_is_full_stays_as_it_is(two: tuple[Project, Path, Path], tmp_path: Path) -> None:
    made, _, after = two
    summary = tmp_path / "summary.md"
    summary.write_text("x" * 999_999)
    ended = made.evalwright("report", after, "--github", GITHUB_STEP_SUMMARY=str(summary))
    assert (ended.code, summary.stat().st_size) == (0, 999_999)
    assert "the job summary is full" in ended.err


@pytest.mark.parametrize("name", ["codequality", "sonar"])
def test_warnings_are_at_the_suite_within_its_repository(tmp_path: Path, name: str) -> None:
    (tmp_path / ".git").mkdir()
    made = project(tmp_path / "evals", {}, EVAL)
    unread = {"id": "c", "input": {"do": "thanks"}, "expected": {"contains": ["x"]}}
    (made.folder / "cases.jsonl").write_text(json.dumps(unread))
    run = made.run("--out", "a")
    report = json.loads(made.evalwright("report", run, "--format", name).out)
    paths = [
        entry["location"]["path"] if name == "codequality" else entry["primaryLocation"]["filePath"]
        for entry in (report if name == "codequality" else report["issues"])
    ]
    assert paths == ["evals/eval.yaml"]


def test_lines_of_files_that_have_changed_are_not_named(two: tuple[Project, Path, Path]) -> None:
    made, _, after = two
    cases = made.folder / "cases.jsonl"
    text = cases.read_text()
    cases.write_text("\n" + text)
    try:
        assert "file=" not in made.evalwright("report", after, "--format", "github").out
    finally:
        cases.write_text(text)
    assert "file=cases.jsonl,line=1," in made.evalwright("report", after, "--format", "github").out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--append"], "--append needs --out FILE"),
        (["--append", "--format", "json", "--link", "x"], "Error: --append needs --out FILE\nError: --link is not for"),
        (["--format", "json", "--link", "https://e.org"], "--link is not for --format json"),
        (["--format", "junit", "--compare", "x"], "--compare is not for --format junit"),
        (["--github", "--out", "x.md", "--format", "json"], "--format, --out: not with --github"),
        (["--compare", "nowhere"], "nowhere"),
    ],
)
def test_options_that_nothing_would_read_are_refused(
    two: tuple[Project, Path, Path], words: list[str], said: str
) -> None:
    made, _, after = two
    ended = made.evalwright("report", after, *words)
    assert ended.code == 2
    assert said in ended.err


@pytest.mark.parametrize(("options", "times"), [(["--append"], 2), ([], 1)])
def test_a_report_is_added_to_a_file_or_replaces_it(
    two: tuple[Project, Path, Path], tmp_path: Path, options: list[str], times: int
) -> None:
    made, _, after = two
    out = tmp_path / "all.md"
    for _ in range(2):
        assert made.evalwright("report", after, "--out", out, *options).code == 0
    assert out.read_text().count("**Failed: 12 cells did not pass; 14.3%") == times


def test_the_first_line_says_what_has_no_verdict(tmp_path: Path) -> None:
    made = project(tmp_path, {f"c{i}": "thanks" for i in range(4)}, EVAL)
    before = made.run("--out", "a")
    (tmp_path / "agent.py").write_text(
        "def run(case, variant):\n    assert case['id'] != 'c0'\n    return {'final_answer': 'thanks'}\n"
    )
    after = made.run("--out", "b")
    first = made.evalwright("report", after, "--compare", before).out.partition("\n")[0]
    assert "; without a verdict: 0 of A, 1 of B" in first


def test_the_largest_change_comes_first_with_trials_that_show_it(tmp_path: Path) -> None:
    """In the order of the suite: `c1` loses its last trial of three, the two behind it all."""
    made = project(tmp_path, dict.fromkeys(("c1", "c10", "c2"), "thanks"), EVAL)
    options = ("--trials", "3", "--concurrency", "1")
    before = made.run("--out", "a", *options)
    (tmp_path / "agent.py").write_text(
        "asked = []\n"
        "def run(case, variant):\n"
        "    asked.append(case['id'])\n"
        "    lost = case['id'] != 'c1' or asked.count('c1') == 3\n"
        "    return {'final_answer': 'no' if lost else 'thanks'}\n"
    )
    after = made.run("--out", "b", *options)
    text = made.evalwright("report", after, "--compare", before, "--link", "https://e.org").out
    assert re.findall("worse: <code>(.*?)<", text) == ["c10", "c2", "c1"]
    folded = text.partition("worse: <code>c1<")[2]
    assert "before, trial 1 of 3:\n\n```text\nthanks\n" in folded
    assert "after, trial 3 of 3:\n\n```text\nno\n" in folded
    assert f"/cells/{cell_key('c1', 'v', 2)}.html" in folded
    page = made.evalwright("report", after, "--compare", before, "--format", "html").out
    assert re.findall(r'<th scope="row"><a href="#[0-9a-f]+">(.*?)<', page)[:3] == ["c10", "c2", "c1"]
    assert f'href="#{cell_key("c1", "v", 2)}"' in page
    assert re.findall("trial 1 of 3</small> thanks|trial 3 of 3</small> no", page)[-1] == "trial 3 of 3</small> no"
    listed = made.evalwright("compare", before, after).out.partition("Changed cases, worse: 3")[2]
    assert re.findall(r"✗ (c\d+)", listed) == ["c2", "c10", "c1"]
