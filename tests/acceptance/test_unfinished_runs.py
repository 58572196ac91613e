"""Decisions about runs that are not finished: cells that were not run are missing, and never a pass."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

import evalwright as ew
from acceptance.projects import Project
from acceptance.tabled import decided, ran, tabled

STOPPING = """
import os, signal
def answer(case, variant):
    if case["id"] == os.environ.get("STOP_AT"):
        os.kill(os.getpid(), signal.SIGINT)
    return {"final_answer": "thanks"}
"""
MISSING = "B is partial: 5 of 8 cells not run"


@pytest.fixture
def made(tmp_path: Path) -> Project:
    return tabled(tmp_path)


def test_whatever_judges_an_interrupted_run_says_how_much_of_it_is_missing(made: Project) -> None:
    whole = ran(made, "1x8")
    (made.folder / "tabled.py").write_text(STOPPING)
    part = made.folder / made.evalwright("run", "eval.yaml", "--quiet", STOP_AT="c002").last_line
    for command in (["compare"], ["compare", "--json"], ["decide"], ["decide", "--json"]):
        assert MISSING in made.evalwright(*command, whole, part).out, command
        assert MISSING.replace("B", "A", 1) in made.evalwright(*command, part, whole).out, command
        assert "partial" not in made.evalwright(*command, whole, whole).out, command
    assert MISSING in made.evalwright("drift", part, "--baseline", whole).out
    assert MISSING in (part / "drift.yaml").read_text()
    for name in ("markdown", "html"):
        assert MISSING in made.evalwright("report", part, "--format", name, "--compare", whole).out, name
    alone = {
        "markdown": "**Partial: 5 of 8 cells have not been run.**",
        "html": "Partial: 5 of 8 cells have not been run.",
        "json": '"cells_missing": 5',
        "junit": '<error message="partial: 5 of 8 cells not run" type="error" />',
        "github": "::warning title=cells::partial: 5 of 8 cells not run",
    }
    for name, said in alone.items():
        assert said in made.evalwright("report", part, "--format", name).out, name
    assert MISSING in ew.decide(whole, part).variants[0].warnings
    assert f"warning: {MISSING}" in str(ew.decide(whole, part))
    assert MISSING in ew.compare(whole, part).warnings
    assert f"warning: {MISSING}" in str(ew.compare(whole, part))


def stopped(made: Project, at: str, *flags: str) -> Path:
    """The suite of the last `ran`, with a system that always passes and interrupts its run at a case."""
    (made.folder / "tabled.py").write_text(STOPPING)
    return made.folder / made.evalwright("run", "eval.yaml", "--quiet", *flags, STOP_AT=at).last_line


def test_missing_cells_of_cases_whose_names_are_masked_are_found(made: Project) -> None:
    ran(made, "1x12")
    cases = made.folder / "cases.jsonl"
    cases.write_text(cases.read_text().replace('"id": "c', '"id": "hunter2hunter2 c'))
    suite = made.folder / "eval.yaml"
    suite.write_text(suite.read_text().replace('"tabled:answer"', '"tabled:answer", config: {key: "${MY_KEY}"}'))
    (made.folder / "tabled.py").write_text(STOPPING)
    runs = []
    for stop in ("never", "hunter2hunter2 c005"):
        ended = made.evalwright("run", "eval.yaml", "--quiet", STOP_AT=stop, MY_KEY="hunter2hunter2")
        runs.append(made.folder / ended.last_line)
    _, decision = decided(made, *runs)
    assert [decision["errors"][side]["not_run"] for side in "ab"] == [0, 6]
    assert (decision["identity"]["a_only"], decision["errors"]["all_failed"]["difference"]) == ([], -0.5)


def test_cells_that_were_not_run_leave_a_decision_open(made: Project) -> None:
    a = ran(made, "1x50 0x10")
    b = stopped(made, "c029")
    code, decision = decided(made, a, b, "--margin", "0.2")
    assert (code, decision["verdict"], decision["reasons"]) == (3, "undecided", ["partial"])
    assert (decision["n"], decision["difference"], decision["ci"][0] > -0.2) == (30, 0, True)
    errors = decision["errors"]
    assert [errors[side]["not_run"] for side in "ab"] == [0, 30]
    assert [errors[name]["verdict"] for name in ("all_failed", "all_passed")] == ["undecided", "ship"]
    assert decision["clusters"] == []  # A's failures are in cases that B has not run: none of them is gone
    assert [errors["lowest"], errors["highest"]] == pytest.approx([-20 / 60, 10 / 60])
    said = made.evalwright("decide", a, b, "--margin", "0.2").out
    assert said.startswith("UNDECIDED (partial)")
    assert "A 0, B 0; not run A 0, B 30; all failed −33.3, all passed +16.7: another verdict" in " ".join(said.split())
    assert "next: the cells that were not run: evalwright resume RUN" in said
    # Where the data do not suffice, either, the cases that the run has come before others.
    said = made.evalwright("decide", a, b).out
    assert said.startswith("UNDECIDED  ")
    assert "next: the cells that were not run: evalwright resume RUN" in said
    # The other way round, B is whole and A is not.
    code, decision = decided(made, b, a, "--margin", "0.2")
    assert (code, decision["reasons"]) == (3, ["partial"])
    assert [decision["errors"][side]["not_run"] for side in "ab"] == [30, 0]


def test_a_decision_stands_if_no_verdict_of_the_missing_cells_could_change_it(made: Project) -> None:
    a = ran(made, "1x30 0x90")
    b = stopped(made, "c118")
    code, decision = decided(made, a, b)
    assert (code, decision["verdict"], decision["reasons"]) == (0, "ship", [])
    assert decision["errors"]["b"]["not_run"] == 1
    assert "not run A 0, B 1" in made.evalwright("decide", a, b).out


def test_a_regression_in_part_of_a_run_is_not_certain(made: Project) -> None:
    a, b = ran(made, "0x9 1x10"), stopped(made, "c010")
    assert made.evalwright("compare", b, a).code == 0
    for command in (["compare", b, a], ["drift", a, "--baseline", b]):
        assert made.evalwright(*command, "--fail-on-regression").code == 3, command
    assert "undecided: cells that were not run could turn the verdict" in made.evalwright("compare", b, a).out
    made.evalwright("resume", b)
    assert made.evalwright("compare", b, a, "--fail-on-regression").code == 1
    assert decided(made, b, a)[0] == 1


def test_a_variant_that_was_not_reached_is_not_decided_without_its_cells(made: Project) -> None:
    ran(made, "1x20")
    suite = made.folder / "eval.yaml"
    system = '{name: v, adapter: python_function, target: "tabled:answer"}'
    suite.write_text(suite.read_text().replace(f"[{system}]", f"[{system}, {system.replace('v,', 'w,')}]"))
    whole, part = made.run(), stopped(made, "c000")
    ended = made.evalwright("decide", whole, part, "--json")
    decisions = json.loads(ended.out)["decisions"]
    assert (ended.code, [decision["verdict"] for decision in decisions]) == (3, ["undecided", "undecided"])
    assert [decision["errors"]["b"]["not_run"] for decision in decisions] == [19, 20]


def test_trials_that_were_not_run_are_counted_by_case(made: Project) -> None:
    a = ran(made, "111x10")
    counting = (
        STOPPING.replace('case["id"] ==', "str(next(CALLS)) ==") + "import itertools\nCALLS = itertools.count(1)\n"
    )
    (made.folder / "tabled.py").write_text(counting)
    b = made.folder / made.evalwright("run", "eval.yaml", "--quiet", STOP_AT="14").last_line
    _, decision = decided(made, a, b)
    assert (decision["errors"]["b"]["not_run"], decision["n"]) == (30 - 14, 5)


def test_a_gate_of_an_unfinished_run_is_open_if_the_rest_could_turn_it(made: Project) -> None:
    made.evalwright("promote", ran(made, "1x50 0x10"))
    claims = "[{not_worse_than: baseline, margin: 0.2}, {at_least: 0.6}]"
    suite = made.folder / "eval.yaml"
    suite.write_text(f"{suite.read_text()}gate: {claims}\n")
    part = stopped(made, "c029")
    gate = yaml.safe_load((part / "summary.yaml").read_text())["gate"]
    assert (gate["passed"], gate["undecided"]) == (False, True)
    assert gate["reason"] == "cells that were not run could turn it"
    assert [one["undecided"] for one in gate["parts"]] == [True, True]
    made.evalwright("resume", part)
    assert yaml.safe_load((part / "summary.yaml").read_text())["gate"]["passed"] is True


def test_cases_that_were_not_chosen_are_not_missing(made: Project) -> None:
    whole = ran(made, "1x60")
    for flags in (["--limit", "40"], ["--case", "c00*", "--case", "c01*"], ["--shard", "1/2"]):
        part = made.folder / made.evalwright("run", "eval.yaml", "--quiet", *flags).last_line
        code, decision = decided(made, whole, part, "--margin", "20pp")
        assert (code, decision["verdict"], decision["errors"]["b"]["not_run"]) == (0, "ship", 0), flags
