"""`decide` and `plan`: a verdict with its exit code, and everything behind it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import evalwright as ew
from acceptance.projects import Project
from acceptance.tabled import SUITE, decided, ran, tabled


@pytest.fixture
def made(tmp_path: Path) -> Project:
    return tabled(tmp_path)


def test_a_clear_win_ships_and_a_clear_loss_does_not(made: Project) -> None:
    a, b = ran(made, "1x20 0x30"), ran(made, "1x50")
    code, decision = decided(made, a, b)
    assert (code, decision["verdict"], decision["exit_code"], decision["method"]) == (0, "ship", 0, "mcnemar")
    assert (decision["difference"], decision["n"], decision["reasons"]) == (0.6, 50, [])
    code, decision = decided(made, b, a)
    assert (code, decision["verdict"]) == (1, "dont")


def test_the_first_line_says_the_verdict_and_all_fits_eighty_columns(made: Project) -> None:
    a, b = ran(made, "111x20 101x30"), ran(made, "111x22 110x20 e01x8")
    ended = made.evalwright("decide", a, b, "--guard", "latency=+900000%", "--slices", "metadata.lang", COLUMNS="80")
    lines = ended.out.splitlines()
    assert lines[0].startswith("UNDECIDED  B − A = ")
    assert lines[0].endswith("50 cases × 3 trials")
    assert [line.split()[0] for line in lines[1:3]] == ["A", "B"]
    assert [run.name in line for run, line in zip((a, b), lines[1:3], strict=True)] == [True, True]
    assert max(map(len, lines)) <= 80
    assert "B 8 (target 8)" in ended.out
    assert "  error rate +5.3 pp [" in ended.out  # share of trials that erred, with its interval
    assert "whatever they" in ended.out
    strict = made.evalwright("decide", a, b, "--errors", "strict", COLUMNS="80").out
    assert "errors strict" in strict  # no default is hidden that is not kept
    assert "latency" in ended.out
    assert ended.code == 3
    bounds = "errors: A 0, B 8 (target 8); all failed "
    assert bounds in made.evalwright("drift", b, "--baseline", a).out.replace("`", "")
    for name in ("markdown", "html"):
        page = made.evalwright("report", b, "--compare", a, "--format", name).out.replace("`", "")
        assert bounds in page, name
    compared = made.evalwright("compare", a, b, COLUMNS="80").out.splitlines()
    assert any(line.startswith("errors in ") for line in compared)
    assert "change, 80% interval" in made.evalwright("compare", a, b, "--alpha", ".2").out
    assert max(len(line) for line in compared if not line.startswith(("A  /", "B  /"))) <= 80  # the runs' folders


def test_claims_that_do_not_fit_side_by_side_stand_below_each_other(made: Project) -> None:
    a = ran(made, "1x1")
    lines = made.evalwright("decide", a, a, "--margin", "0.1pp", COLUMNS="80").out.splitlines()
    assert [line for line in lines if "p = 1.00" in line] == [
        "  not worse than −0.1 pp   not shown (p = 1.00)",
        "  better   not shown (p = 1.00)",
    ]


def test_what_it_would_take_is_of_the_claim_that_is_open(made: Project) -> None:
    a, b = ran(made, "11x14 10x40"), ran(made, "11x20 10x32 00x2")
    more = [decided(made, a, b, *flags)[1]["next"] for flags in ([], ["--better"], ["--population", "suite"])]
    assert [one["claim"] for one in more] == ["not worse", "better", "not worse"]  # type: ignore[index]
    assert more[1]["cases"] > more[0]["cases"] > 54  # type: ignore[index]
    assert (more[2]["cases"], more[2]["trials"] > 2) == (54, True)  # type: ignore[index]
    assert 'cases × 2 for "not worse" at 80 % if +3.7 holds' in made.evalwright("decide", a, b).out
    _, one_group = decided(made, a, b, "--group", "shop")
    assert (one_group["reasons"], one_group["next"]) == (["units"], None)


def test_errors_that_could_turn_it_leave_it_undecided(made: Project) -> None:
    a, b = ran(made, "1x60"), ran(made, "1x48 ex12")
    code, decision = decided(made, a, b, "--margin", "0.15", "--alpha", "0.2")
    assert (code, decision["verdict"], decision["reasons"]) == (3, "undecided", ["errors"])
    assert decision["alpha"] == 0.2
    errors = decision["errors"]
    assert isinstance(errors, dict)
    assert (errors["b"], errors["same_verdict"]) == ({"target": 12, "evaluator": 0, "not_run": 0}, False)
    assert errors["all_failed"]["difference"] == pytest.approx(-0.2)
    code, decision = decided(made, a, b, "--margin", "0.15", "--errors", "fail")
    assert (decision["difference"], decision["n"]) == (pytest.approx(-0.2), 60)


def test_cases_of_one_run_alone_are_no_reason_of_a_difference(made: Project) -> None:
    a, b = ran(made, "1x20 0x10"), ran(made, "1x20 0x30")
    _, decision = decided(made, a, b)
    assert (decision["difference"], decision["n"]) == (0, 30)
    assert [(cluster["a"], cluster["b"]) for cluster in decision["clusters"]] == [(10, 10)]  # type: ignore[attr-defined]


@pytest.mark.slow("three runs, two decisions")
def test_a_case_that_asks_something_else_is_refused_or_left_out(made: Project) -> None:
    a, b = ran(made, "1x30"), ran(made, "1x30", question="another")
    refused = made.evalwright("decide", a, b)
    assert refused.code == 2
    assert "30 of 30 cases changed" in refused.err
    text = (made.folder / "cases.jsonl").read_text().replace("another", "q", 29)
    (made.folder / "cases.jsonl").write_text(text)
    code, decision = decided(made, a, made.run(), "--allow-changed")
    assert (code, decision["n"], decision["identity"]["cases_changed"]) == (3, 29, ["c029"])  # type: ignore[index]
    assert "1 of 30 cases changed: left out: c029" in str(decision["warnings"])


def test_a_broken_guard_forbids_what_the_rate_allows(made: Project) -> None:
    a, b = ran(made, "1x20 0x30"), ran(made, "1x50")
    code, decision = decided(made, a, b, "--guard", "evaluator:polite=+90pp")
    assert (code, decision["guards"][0]["state"]) == (1, "broken")  # type: ignore[index]
    assert "DON'T (guard evaluator:polite)" in made.evalwright("decide", a, b, "--guard", "evaluator:polite=+90pp").out
    ended = made.evalwright("decide", a, b, "--guard", "cost=-10%,evaluator:polite=-1pp").out
    assert "cost       undecided (−10 %)" in ended
    assert "holds (−1 pp)" in ended
    code, decision = decided(made, a, b, "--guard", "cost=+10%")
    assert (code, decision["reasons"], decision["guards"][0]["state"]) == (3, ["guard"], "undecided")  # type: ignore[index]


def test_slices_that_got_worse_are_named(made: Project) -> None:
    a = ran(made, "1x90")
    b = ran(made, " ".join("0x1 1x2" for _ in range(30)))
    _, decision = decided(made, a, b, "--slices", "metadata.lang")
    slices = {one["value"]: one for one in decision["slices"]}  # type: ignore[attr-defined]
    assert slices["es"]["difference"] == -1.0
    assert slices["es"]["p_holm"] < 1e-6
    assert slices["en"]["p_holm"] == 1.0


def labels(made: Project, name: str, *sides: tuple[str, str, int]) -> Path:
    """Labels of the first cases of a run: `("A", "1x20 0x5", 1)`, what people say of them in this order."""
    rows = ["case_id,evaluator,run,verdict"]
    for run, table, first in sides:
        words = [entry.partition("x") for entry in table.split()]
        outcomes = [word for word, _, times in words for _ in range(int(times))]
        rows += [f"c{first + i:03},polite,{run},{outcome}" for i, outcome in enumerate(outcomes)]
    (made.folder / name).write_text("\n".join(rows) + "\n")
    return Path(name)


@pytest.mark.slow("two runs, their labels, two decisions")
def test_labels_of_both_runs_can_turn_the_judges_verdict(made: Project) -> None:
    a, b = ran(made, "1x60 0x60"), ran(made, "1x80 0x40")
    assert decided(made, a, b)[1]["judge"] is None
    people = labels(made, "labels.csv", ("A", "1x60 0x60", 0), ("B", "0x6 1x60 0x54", 0))
    code, decision = decided(made, a, b, "--labels", str(people))
    assert (code, decision["verdict"], decision["reasons"]) == (3, "undecided", ["judge"])
    assert (decision["judge"]["labels"], decision["judge"]["evaluator"], decision["judge"]["method"]) == (
        240,
        "polite",
        "powered",
    )
    ended = made.evalwright("decide", a, b, "--labels", people)
    assert "UNDECIDED (judge)" in ended.out
    assert "240 labels: powered 0.0 pp" in ended.out
    assert max(map(len, ended.out.splitlines())) <= 80
    ended = made.evalwright("compare", a, b, "--labels", people, "--json")
    assert json.loads(ended.out)["variants"][0]["decision"]["judge"] == decision["judge"]
    for run, side, table in ((a, "A", "1x60 0x60"), (b, "B", "0x6 1x60 0x54")):  # kept, they need not be named
        made.evalwright("calibrate", run, "--labels", labels(made, "own.csv", (side, table, 0)))
    assert decided(made, a, b)[1]["judge"] == decision["judge"]


def test_all_mistakes_of_a_decision_are_told_at_once(made: Project) -> None:
    a, b = ran(made, "1x4"), ran(made, "1x4", "another question")
    wrong = [
        "--metric",
        "polit",
        "--variant",
        "w",
        "--guard",
        "costs=+10%,evaluator:polit=-1pp",
        "--slices",
        "metadata.x",
    ]
    (made.folder / "bad.csv").write_text("case_id,evaluator,run,verdict\nzzz,polite,B,pass\n")
    ended = made.evalwright("decide", a, b, *wrong, "--labels", "bad.csv")
    assert (ended.code, ended.err.splitlines()[-1]) == (2, "7 problems")
    for said in (
        "no metric 'polit'",
        "no variant 'w' in both runs",
        "no 'costs'",
        "no 'evaluator:polit'",
        "no slices by 'metadata.x'",
        "no answer to a case 'zzz'",
        "4 of 4 cases changed between the runs",
    ):
        assert said in ended.err, said
    with pytest.raises(ew.InputError) as refused:
        ew.decide(a, b, metric="polit", variant="w", guards={"costs": "+10%"})
    assert all(said in str(refused.value) for said in ("polit", "'w'", "costs", "4 cases changed"))
    (made.folder / "only.csv").write_text("case_id,evaluator,run,verdict\nzzz,polite,B,pass\n")
    suite = made.folder / "eval.yaml"
    suite.write_text(suite.read_text().replace("thanks", "thank"))
    changed = made.run()
    ended = made.evalwright("compare", b, changed, "--group", "nothing", "--labels", "only.csv")
    for said in ("evaluator polite changed", "no case has 'nothing'", "no answer to a case 'zzz'"):
        assert said in ended.err, said


def test_several_labellers_of_both_runs_are_told_of(made: Project) -> None:
    a, b = ran(made, "1x3 0x3"), ran(made, "1x4 0x2")
    rows = [f"c00{i},polite,{run},{who},pass" for run in "AB" for who in ("ann", "bob") for i in range(3)]
    (made.folder / "two.csv").write_text("\n".join(["case_id,evaluator,run,labeller,verdict", *rows]))
    _, decision = decided(made, a, b, "--labels", "two.csv")
    assert any("judge polite: 2 labellers: the same label for 3 of 3 answers" in line for line in decision["warnings"])
    assert decision["judge"]["labels"] == 6


def test_mistakes_in_labels_of_two_runs_are_told_together(made: Project) -> None:
    a, b = ran(made, "1x3 0x3"), ran(made, "1x4 0x2")
    (made.folder / "bad.csv").write_text(
        "case_id,evaluator,run,verdict\nc003,polite,,pass\nc000,polite,,pass\nc001,polite,C,pass\nc001,polit,A,pass\n"
        "zzz,polite,,pass\n"
    )
    ended = made.evalwright("decide", a, b, "--labels", "bad.csv")
    assert ended.code == 2
    assert [line.split()[0].rpartition(":")[2] for line in ended.err.splitlines() if "bad.csv:" in line] == list("2456")
    assert "say which one the label is about, A or B" in ended.err
    assert "found 'C'" in ended.err
    assert "did you mean" in ended.err
    assert made.evalwright("decide", a, b, "--labels", "nowhere.csv").code == 2


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["--margin", "2"], "2pp or 0.02"),
        (["--margin", "2%"], "2pp or 0.02"),
        (["--margin", "2%", "--metric", "polite"], "a number in the units of polite"),
        (["--margin", "2", "--metric", "polite"], "less than the range of polite (1), found 2"),
        (["--metric", "polit"], 'did you mean "polite"'),
        (["--guard", "cots=+1%,cost=1"], 'did you mean "cost"'),
        (["--slices", "metadata.lng"], 'did you mean "metadata.lang"'),
        (["--variant", "w"], "no variant 'w' in both runs (A has "),
        (["--group", "town"], "no case has 'town'"),
        (["--alpha", "nan"], "below 1, found 'nan'"),
    ],
)
def test_mistakes_name_the_value_and_what_is_accepted(made: Project, flags: list[str], named: str) -> None:
    a = ran(made, "1x2")
    ended = made.evalwright("decide", a, a, *flags)
    assert (ended.code, ended.out) == (2, "")
    assert named in ended.err


@pytest.mark.slow("several plans")
def test_a_plan_says_what_a_difference_takes(made: Project) -> None:
    a = ran(made, "111x20 101x30")
    ended = made.evalwright("plan", "eval.yaml", "--detect", "30pp", "--from", a, "--json")
    document = json.loads(ended.out)
    assert (ended.code, document["cases"], document["reached"]) == (0, 50, True)
    assert {row["trials"] for row in document["rows"]} == {1, 3, 5}
    assert made.evalwright("plan", "eval.yaml", "--detect", "1pp").code == 1
    depends = made.evalwright("plan", "eval.yaml", "--detect", "20pp", "--json")
    assert (depends.code, json.loads(depends.out)["reached"]) == (0, None)


def test_a_plan_learns_from_two_runs_named_once_or_each(made: Project) -> None:
    a, b = ran(made, "1x4 0x4"), ran(made, "1x2 0x6")
    once = made.evalwright("plan", "eval.yaml", "--detect", "30pp", "--from", a, b, "--json")
    each = made.evalwright("plan", "eval.yaml", "--detect", "30pp", "--from", a, "--from", b, "--json")
    assert (once.out, once.code) == (each.out, each.code)
    assert once.out != ""
    refused = made.evalwright("plan", "eval.yaml", a, "--detect", "30pp")
    assert (refused.code, "behind --from RUN" in refused.err) == (2, True)


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["--detect", "3"], "--detect"),
        (["--detect", "3pp", "--trials", "0"], "--trials"),
        (["--detect", "3pp", "--trials", "1,10001"], "--trials: expected numbers from 1 to 10,000"),
        (["--detect", "3pp", "--trials", "1" + 26 * "0"], "--trials: expected numbers from 1 to 10,000"),
        (["--detect", "3pp", "--trials", "²"], "--trials: expected numbers from 1 to 10,000"),
        (["--detect", "3pp", "--metric", "q"], "--metric q needs --from RUN"),
    ],
)
def test_a_plan_refuses_what_could_be_read_in_two_ways(made: Project, flags: list[str], named: str) -> None:
    ran(made, "1x2")
    ended = made.evalwright("plan", "eval.yaml", *flags)
    assert (ended.code, ended.out) == (2, "")
    assert named in ended.err


@pytest.mark.slow("two runs for each kind of dataset")
@pytest.mark.parametrize("kind", ["jsonl", "yaml"])
def test_cases_of_a_group_are_one_unit_whatever_the_dataset(made: Project, kind: str) -> None:
    cases = [{"id": f"c{i}", "input": {"q": i}, "group": f"g{i // 10}"} for i in range(50)]
    text = "".join(json.dumps(c) + "\n" for c in cases) if kind == "jsonl" else json.dumps({"cases": cases})
    (made.folder / "cases.jsonl").write_text(text)
    (made.folder / "eval.yaml").write_text(SUITE.replace("TRIALS", "1").replace("type: jsonl", f"type: {kind}"))
    runs = []
    for failing in ((), range(10)):
        table = {case["id"]: "0" if i in failing else "1" for i, case in enumerate(cases)}
        (made.folder / "table.json").write_text(json.dumps(table))
        runs.append(made.run())
    _, decision = decided(made, *runs)
    assert (decision["units"], decision["verdict"]) == (5, "undecided")


def test_an_alpha_too_low_to_compute_with_is_refused(made: Project) -> None:
    run = ran(made, "1x8")
    for words in (["compare", run, run], ["decide", run, run], ["plan", "eval.yaml", "--detect", "10pp"]):
        ended = made.evalwright(*words, "--alpha", "1e-16")
        assert (ended.code, "of at least 1e-09 and below 1" in ended.err) == (2, True), words
        assert made.evalwright(*words, "--alpha", "1e-9").code != 4, words
    with pytest.raises(ew.InputError, match="alpha"):
        ew.decide(run, run, alpha=1e-16)
    with pytest.raises(ew.InputError, match="alpha: expected a number of at least 1e-09, found 1e-16"):
        ew.plan(80, detect=0.1, alpha=1e-16)
    gate = "gate: {not_worse_than: baseline, alpha: 1.0e-16}\n"
    (made.folder / "eval.yaml").write_text((made.folder / "eval.yaml").read_text() + gate)
    ended = made.evalwright("validate", "eval.yaml")
    assert (ended.code, "expected a number of at least 1e-09" in ended.err) == (2, True)


def test_all_mistakes_of_a_decision_are_named_at_once(made: Project) -> None:
    a, b = ran(made, "1x2"), ran(made, "1x2")
    ended = made.evalwright("decide", a, b, "--margin", "x", "--guard", "z=1", "--slices", "y", "--variant", "other")
    for mistake in ("found 'x'", "no 'z'", "no slices by 'y'", "no variant 'other'", "4 problems"):
        assert mistake in ended.err
    assert ended.code == 2


@pytest.mark.parametrize("command", ["decide", "compare"])
def test_both_runs_that_do_not_exist_are_named(made: Project, command: str) -> None:
    ended = made.evalwright(command, "first", "second")
    assert (ended.code, ended.err.count("does not exist")) == (2, 2)


def test_a_margin_and_a_level_that_cannot_be_are_named_at_once(made: Project) -> None:
    ended = made.evalwright("compare", "first", "second", "--margin", "x", "--alpha", "7")
    assert "found 'x'" in ended.err
    assert "found '7'" in ended.err
    assert ended.code == 2


def test_all_mistakes_of_a_plan_are_named_at_once(made: Project) -> None:
    ended = made.evalwright("plan", "nowhere.yaml", "--detect", "x", "--trials", "y", "--at-least", "3")
    for mistake in ("found 'x'", "found 'y'", "found '3'", "nowhere.yaml", "4 problems"):
        assert mistake in ended.err
    assert ended.code == 2
