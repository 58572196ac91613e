"""`inspect`, `compare`, `report` and `list`, on runs that are made once."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from acceptance.projects import EVAL, Project, project, run_of


def test_inspect_shows_every_cell_with_answer_and_reasons(made: Project) -> None:
    ended = made.evalwright("inspect", run_of(made, "a"))
    assert ended.code == 0
    assert "✓ pass  a1 · v" in ended.out
    assert "✗ fail  b1 · w" in ended.out
    assert "! error  c1 · v" in ended.out
    assert "polite  missing: 'thanks'" in ended.out
    assert ended.out.endswith("8 shown\n")


def test_inspect_narrows_to_a_case_and_a_variant(made: Project) -> None:
    out = made.evalwright("inspect", run_of(made, "a"), "--case", "b1", "--variant", "w").out
    assert out.endswith("1 shown\n")
    assert "answer      no" in out


def test_inspect_shows_failed_cells_only(made: Project) -> None:
    out = made.evalwright("inspect", run_of(made, "a"), "--failed").out
    assert out.endswith("3 shown\n")
    assert "a1 ·" not in out


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (["--case", "ghost"], "no case 'ghost' in the run"),
        (["--case", "a11", "--failed"], "no case 'a11' in the run; did you mean \"a1\"?"),
        (["--variant", "z"], "no variant 'z' in the run (there are: v, w)"),
    ],
)
def test_inspect_names_what_the_run_does_not_have(made: Project, asked: list[str], message: str) -> None:
    ended = made.evalwright("inspect", run_of(made, "a"), *asked)
    assert (ended.code, ended.out, ended.err) == (0, "no traces match\n", f"{message}\n")


def test_inspect_names_a_case_that_the_run_does_not_have_by_its_index(made: Project, tmp_path: Path) -> None:
    run = shutil.copytree(run_of(made, "a"), tmp_path / "indexed")
    made.evalwright("index", run)
    said = [made.evalwright("inspect", run, "--case", case, "--variant", "z").err for case in ("a11", "a1")]
    variant = "no variant 'z' in the run (there are: v, w)\n"
    assert said == [f"no case 'a11' in the run; did you mean \"a1\"?\n{variant}", variant]


def test_a_case_without_failures_is_no_mistake(made: Project) -> None:
    ended = made.evalwright("inspect", run_of(made, "a"), "--case", "a1", "--failed")
    assert (ended.code, ended.out, ended.err) == (0, "no traces match\n", "")


def test_a_verdict_that_the_results_contradict_is_named_by_every_reader(made: Project, tmp_path: Path) -> None:
    run = shutil.copytree(run_of(made, "a"), tmp_path / "edited")
    file = run / "verdicts.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for line in lines:
        if (line["case_id"], line["variant_name"]) == ("b1", "w"):
            line["status"] = "pass"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    inspected = made.evalwright("inspect", run, "--case", "b1", "--variant", "w").out
    assert "verdict     the results say fail" in inspected
    text = "1 stored verdict differs from the results, by which cells are counted: b1 of w (pass, by results fail)"
    assert text in made.evalwright("report", run).out
    made.evalwright("index", run)
    assert text in made.evalwright("report", run).out
    assert "differs" not in made.evalwright("report", run_of(made, "a")).out


def test_results_that_are_missing_are_said_alike_by_every_reader(made: Project, tmp_path: Path) -> None:
    run = shutil.copytree(run_of(made, "a"), tmp_path / "cut")
    (run / "results.jsonl").write_text("")
    note = "results: those of 6 finished cells are missing; re-evaluate restores them"
    inspected = made.evalwright("inspect", run)
    assert inspected.out.count("its results are missing: the cell is not counted") == 6
    assert (inspected.code, inspected.err.strip()) == (2, note)
    reports = [made.evalwright("report", run)]
    made.evalwright("index", run)
    reports.append(made.evalwright("report", run))
    assert [(report.code, report.err.strip()) for report in reports] == [(3, note)] * 2
    assert all(f"cannot be read: {note}" in report.out for report in reports)
    made.evalwright("re-evaluate", run)
    assert "results: those of" not in made.evalwright("report", run).out


def test_inspect_says_that_a_case_was_not_run(made: Project, tmp_path: Path) -> None:
    run = shutil.copytree(run_of(made, "a"), tmp_path / "unfinished")
    for name in ("traces", "results", "verdicts"):
        file = run / f"{name}.jsonl"
        file.write_text("".join(line for line in file.read_text().splitlines(keepends=True) if '"b1"' not in line))
    ended = made.evalwright("inspect", run, "--case", "b1")
    assert (ended.code, ended.out) == (0, "no traces match\n")
    assert "case 'b1': no cell was run yet (evalwright resume" in ended.err


def test_inspect_cuts_long_texts_and_says_by_how_much(made: Project) -> None:
    out = made.evalwright("inspect", run_of(made, "b"), "--case", "only-b", "--variant", "v").out
    assert "x" * 400 + "… (+1,600 characters)" in " ".join(out.split())


def test_inspect_shows_long_texts_when_asked(made: Project) -> None:
    ended = made.evalwright("inspect", run_of(made, "b"), "--case", "only-b", "--no-truncate")
    assert "x" * 2000 in ended.out


@pytest.fixture(params=["traces", "results", "verdicts"])
def damaged(made: Project, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A finished run of which the second line of a file cannot be read; the file's name is that of its folder."""
    run = shutil.copytree(run_of(made, "a"), tmp_path / request.param)
    file = run / f"{request.param}.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text(lines[0] + '{"case_id": \n' + "".join(lines[2:]))
    return run


def test_what_is_readable_is_shown_and_what_is_not_is_named(made: Project, damaged: Path, tmp_path: Path) -> None:
    line = f"{damaged.name}.jsonl:2: "
    if damaged.name != "verdicts":  # which inspect derives from the other two
        ended = made.evalwright("inspect", damaged)
        assert (ended.code, line in ended.err) == (2, True)
        assert "shown\n" in ended.out
    for format_ in ("markdown", "json", "junit", "html"):
        ended = made.evalwright("report", damaged, "--format", format_)
        assert (ended.code, line in ended.err, line in ended.out) == (3, True, True), format_
    ended = made.evalwright("report", damaged, "--github")
    assert (ended.code, f"cannot be read: {line}" in ended.err) == (3, True)
    ended = made.evalwright("report", damaged, "--format", "html", "--out", f"{tmp_path}/pages/")
    assert (ended.code, line in ended.err) == (3, True)
    pages = [path.read_text() for path in (tmp_path / "pages").rglob("*.html")]
    assert any(f"cannot be read: {line}" in page for page in pages)


def test_nothing_is_decided_over_records_that_cannot_be_read(made: Project, damaged: Path) -> None:
    line = f"{damaged.name}.jsonl:2: "
    for pair in ((run_of(made, "a"), damaged), (damaged, run_of(made, "a"))):
        ended = made.evalwright("compare", *pair, "--json")
        assert (ended.code, line in ended.err, line in ended.out) == (3, True, True)
        ended = made.evalwright("decide", *pair, "--variant", "v", "--margin", "0.9", "--allow-changed", "--json")
        decision = json.loads(ended.out)
        assert (ended.code, decision["verdict"], decision["exit_code"]) == (3, "undecided", 3)
        assert any(line in warning for warning in decision["warnings"])
        # no number of a decision is taken from verdicts
        assert ("unreadable records" in decision["reasons"]) == (damaged.name != "verdicts")
        assert made.evalwright("drift", pair[1], "--baseline", pair[0]).code == 3
    ended = made.evalwright("report", run_of(made, "a"), "--compare", damaged)
    assert (ended.code, line in ended.err) == (3, True)


@pytest.mark.parametrize(
    ("scores", "options", "code", "said"),
    [
        ((0.9, 0.5), (), 0, "win   +0.250  e0\ntie   +0.000  e1\n1 won, 0 lost, 1 tied; mean change +0.125 over 2 "),
        ((0.5, 0.5), (), 1, "loss  -0.150  e0\n"),
        ((0.5, 0.5), ("--threshold", "0.2"), 1, "tie   -0.150  e0\n"),
        ((), (), 0, ""),
    ],
)
def test_result_files_are_compared_case_by_case(
    tmp_path: Path, scores: tuple[float, ...], options: tuple[str, ...], code: int, said: str
) -> None:
    for name, numbers in (("a", (0.65, 0.5)), ("b", scores)):
        lines = [json.dumps({"eval_id": f"e{i}", "score": number}) + "\n" for i, number in enumerate(numbers)]
        (tmp_path / f"{name}.jsonl").write_text("".join(lines))
    ended = Project(tmp_path).evalwright("compare", "a.jsonl", "b.jsonl", *options)
    assert (ended.code, ended.out[: len(said)], "no case in common" in ended.err) == (code, said, not scores)


def test_reports_show_the_metadata_of_the_suite(tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "thanks"}, EVAL + "metadata: {team: blue-1}\n")
    run = made.run()
    assert "metadata:\n  team: blue-1\n" in (run / "summary.yaml").read_text()
    shown = {kind: made.evalwright("report", run, "--format", kind).out for kind in ("markdown", "json", "html")}
    assert [kind for kind, text in shown.items() if "blue-1" not in text] == []


def test_a_summary_that_cannot_be_read_leaves_nothing_out(made: Project, tmp_path: Path) -> None:
    run = shutil.copytree(run_of(made, "a"), tmp_path / "run")
    (run / "summary.yaml").write_text("{")
    ended = made.evalwright("report", run)
    assert (ended.code, "summary.yaml: " in ended.err) == (0, True)
    assert "cannot be read" not in ended.out


def test_compare_names_what_changed(made: Project) -> None:
    ended = made.evalwright("compare", run_of(made, "a"), run_of(made, "b"), "--allow-changed")
    assert ended.code == 0
    assert "Changed cases, worse: 1\n  ✗ a1 · v\n" in ended.out
    assert "Changed cases, better: 1\n  ✓ b1 · w\n" in ended.out
    assert "A only: 2\n    only-a · v\n    only-a · w\n" in ended.out
    assert "B only: 2\n    only-b · v\n    only-b · w\n" in ended.out


def test_compare_says_how_sure_it_is(made: Project) -> None:
    out = made.evalwright("compare", run_of(made, "a"), run_of(made, "b"), "--allow-changed").out
    line = next(line for line in out.splitlines() if line.startswith("  v ") and " pp [" in line)
    assert "(n=3)" in line
    assert "1.000" in line.split()
    assert "v: no change shown, −50.0 pp [−100.0, +100.0], p 1.000, 2 cases" in out  # the table may have no room for it


def test_the_change_of_a_rate_is_that_of_the_cases_in_both_runs(made: Project) -> None:
    ended = made.evalwright("compare", run_of(made, "a"), run_of(made, "b"), "--json", "--allow-changed")
    document = json.loads(ended.out)["variants"][0]
    assert document["delta"]["pass_rate_delta"] == pytest.approx(-1 / 2)
    assert (document["delta"]["n"], document["decision"]["difference"]) == (2, pytest.approx(-1 / 2))


def test_cases_that_ask_something_else_are_named_and_not_compared(made: Project) -> None:
    ended = made.evalwright("compare", run_of(made, "a"), run_of(made, "b"), "--json")
    variant = json.loads(ended.out)["variants"][0]
    assert (variant["delta"]["n"], variant["delta"]["p_value"]) == (0, None)
    assert variant["decision"]["identity"]["cases_changed"] == ["a1", "b1"]


def test_one_case_that_got_worse_by_chance_fails_nothing(made: Project) -> None:
    runs = run_of(made, "a"), run_of(made, "b")
    assert made.evalwright("compare", *runs, "--fail-on-regression", "--allow-changed").code == 0


def test_a_run_compared_with_itself_has_no_regression(made: Project) -> None:
    run = run_of(made, "a")
    assert made.evalwright("compare", run, run, "--fail-on-regression").code == 0


def test_a_gate_over_cases_none_of_which_was_measured_twice_is_undecided(made: Project) -> None:
    ended = made.evalwright("compare", run_of(made, "a"), run_of(made, "b"), "--fail-on-regression")
    assert (ended.code, "undecided" in ended.out) == (3, True)


def test_two_runs_without_anything_in_common_are_no_success(made: Project) -> None:
    ended = made.evalwright("compare", run_of(made, "a"), run_of(made, "b"))
    assert (ended.code, "no case was judged in both runs" in ended.out) == (3, True)


def test_two_result_files_without_a_case_in_common_are_warned_of(made: Project, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"test_id": name, "score": 0.5}) + "\n")
    ended = made.evalwright("compare", tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    assert (ended.code, ended.out) == (0, "")
    assert "the two files have no case in common: nothing was compared" in ended.err


def test_report_writes_markdown_to_a_file(made: Project, tmp_path: Path) -> None:
    ended = made.evalwright("report", run_of(made, "a"), "--out", tmp_path / "report.md")
    assert ended.code == 0
    assert "| `v` | 100.0% |" in (tmp_path / "report.md").read_text()


def test_report_writes_json_to_stdout(made: Project) -> None:
    document = json.loads(made.evalwright("report", run_of(made, "a"), "--format", "json").out)
    assert len(document["cells"]) == 8


def test_an_unknown_format_lists_the_known_ones(made: Project) -> None:
    ended = made.evalwright("report", run_of(made, "a"), "--format", "markdwn")
    assert ended.code == 2
    assert 'did you mean "markdown"? (registered: ' in ended.err


def test_a_report_does_not_need_the_summary(made: Project, tmp_path: Path) -> None:
    run = shutil.copytree(run_of(made, "a"), tmp_path / "run")
    (run / "summary.yaml").unlink()
    ended = made.evalwright("report", run, "--format", "json")
    assert json.loads(ended.out)["summary"]["variants"][0]["pass_rate"] == 1.0


@pytest.fixture
def foreign(made: Project, tmp_path: Path) -> Path:
    """A run as upstream evalh leaves it: without a plan, cases and verdicts, its dataset gone."""
    run = shutil.copytree(run_of(made, "a"), tmp_path / "foreign")
    for name in ("plan.json", "cases.jsonl", "verdicts.jsonl"):
        (run / name).unlink()
    config = (run / "config.yaml").read_text()
    (run / "config.yaml").write_text(config.replace("cases.jsonl", "gone.jsonl"))
    return run


def test_a_folder_of_upstream_can_be_inspected(made: Project, foreign: Path) -> None:
    ended = made.evalwright("inspect", foreign, "--failed")
    assert (ended.code, ended.out.endswith("3 shown\n")) == (0, True)


def test_a_folder_of_upstream_can_be_compared(made: Project, foreign: Path) -> None:
    ended = made.evalwright("compare", foreign, run_of(made, "b"))
    assert "Changed cases, worse: 1\n  ✗ a1 · v\n" in ended.out
    assert "was not checked: no hashes" in ended.out


def test_a_folder_of_upstream_can_be_reported(made: Project, foreign: Path) -> None:
    ended = made.evalwright("report", foreign)
    assert "- `b1` `w`\n  - `polite: missing: 'thanks'" in ended.out


def test_a_folder_of_upstream_is_listed(made: Project, foreign: Path) -> None:
    assert made.evalwright("list", "runs", foreign.parent).out.splitlines()[1].endswith("v 100.0%, w 66.7%")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["view", "a", "--only", "changed", "--limit-cells", "3"], "--only, --limit-cells: needs --bundle DIR"),
        (["view", "a", "--bundle", "pages", "--port", "3"], "--port: not with --bundle, which writes files"),
        (["view", "RUN", "--no-open", "--cell", "NOPE"], "--cell: no case 'NOPE' in the run"),
        (["view", "a", "--no-open", "--host", ""], "--host: expected an address, found nothing"),
        (["view", "a", "--no-open", "--token", ""], "--token: expected a text, found nothing"),
        (["compare", "RUN", "RUN", "--threshold", "0.1"], "--threshold: is for result files, and these are runs"),
    ],
)
def test_options_without_effect_or_value_are_refused(made: Project, words: list[str], said: str) -> None:
    ended = made.evalwright(*(run_of(made, "a") if word == "RUN" else word for word in words))
    assert (ended.code, said in ended.err) == (2, True)
    assert not (made.folder / "pages").exists()
