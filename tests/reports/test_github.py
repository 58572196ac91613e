"""Annotations and code quality: what CI services read of a run."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pytest

from evalwright.model.cell import cell_key
from evalwright.model.result import CaseVerdict
from evalwright.model.summary import GateOutcome, GatePart
from evalwright.registry import load
from evalwright.reports.context import CaseLine, ReportContext
from evalwright.testing import a_verdict
from reports.runs import ERRORED, FAILED, HOSTILE, stored, summary, variant

PLACES = {"c3": CaseLine("evals/a,b:c.yaml", 14)}


def annotations(*verdicts: CaseVerdict, context: ReportContext = ReportContext(), **fields: Any) -> list[str]:  # noqa: B008
    text = load("reports", "github")().render(stored(*verdicts), summary(**fields), context)
    return text.splitlines()


def test_each_cell_that_did_not_pass_is_at_the_line_of_its_case() -> None:
    context = ReportContext(places=PLACES, link="https://e.org/b")
    page = f"https://e.org/b/runs/run/cells/{cell_key('c3', 'new', 0)}.html"
    verdict = a_verdict(
        case_id="c3", variant_name="new", status="fail", run_id="run", reasons=["says: 100 %", "fast: 3 s"]
    )
    assert annotations(verdict, ERRORED, a_verdict(), context=context) == [
        "::error file=evals/a%2Cb%3Ac.yaml,line=14,title=c3 · new (1 of 2 trials)::says: 100 %25%0Afast: 3 s%0A" + page,
        "::warning title=c7 · old (1 of 2 trials)::timeout: no answer%0A"
        f"https://e.org/b/runs//cells/{cell_key('c7', 'old', 0)}.html",
    ]


def test_the_tenth_of_a_kind_counts_the_rest() -> None:
    verdicts = [a_verdict(case_id=f"c{i:02}", case_index=i, status="fail") for i in range(51)]
    lines = annotations(*reversed(verdicts))
    assert [line.partition("title=")[2].partition(" ")[0] for line in lines[:9]] == [f"c{i:02}" for i in range(9)]
    assert lines[9:] == ["::error title=evalwright::and 42 more cells failed"]


def test_no_kind_has_more_annotations_than_github_shows() -> None:
    failing = [a_verdict(case_id=f"c{i:02}", case_index=i, status="fail") for i in range(30)]
    erring = [a_verdict(case_id=f"e{i:02}", case_index=i, status="error") for i in range(30)]
    gate = GateOutcome(False, [GatePart("pass_rate", False, 0.5, "gte", 0.9, 40)])
    lines = annotations(*failing, *erring, gate=gate, cells_missing=3, warnings=[f"w{i}" for i in range(51)])
    assert Counter(line.partition(" ")[0] for line in lines) == {"::error": 10, "::warning": 10, "::notice": 10}
    assert [line for line in lines if "::and " in line] == [
        "::error title=evalwright::and 22 more cells failed",
        "::warning title=evalwright::and 22 more cells without a verdict",
        "::notice title=evalwright::and 42 more warnings",
    ]


@pytest.mark.parametrize(("undecided", "kind"), [(False, "error"), (True, "warning")])
def test_a_gate_that_did_not_pass_is_the_first_annotation(undecided: bool, kind: str) -> None:
    part = GatePart("pass_rate", False, 0.5, "gte", 0.9, 40)
    line, *_ = annotations(ERRORED, gate=GateOutcome(False, [part], "half of it", undecided=undecided))
    assert re.fullmatch(rf"::{kind} title=gate::(failed|undecided); half of it; missed: pass_rate 0.5, .*", line)


@pytest.mark.parametrize("name", ["github", "codequality", "sonar"])
def test_a_score_below_1_is_no_failure_in_a_suite_that_has_only_scores(name: str) -> None:
    text = load("reports", name)().render(stored(FAILED, ERRORED), summary(scored=True))
    assert ("c3" in text, "c7" in text) == (False, True)


def test_the_trials_of_a_case_share_an_annotation() -> None:
    said = [{"status": "fail", "reasons": [f"trial {trial + 1}"]} for trial in (0, 1)]
    verdicts = [
        a_verdict(case_id=f"c{i:02}", case_index=i, variant_name="new", trial=trial, **said[trial])
        for i in range(12)
        for trial in (0, 1)
    ]
    lines = annotations(*reversed(verdicts[1:]))
    assert re.findall(r"title=(c\d\d .*?)::(.*)", "\n".join(lines))[:2] == [
        ("c00 · new (1 of 2 trials)", "trial 2"),
        ("c01 · new (2 of 2 trials)", "trial 1"),
    ]
    assert lines[8:] == [
        "::error title=c08 · new (2 of 2 trials)::trial 1",
        "::error title=evalwright::and 6 more cells failed",
    ]


def test_data_makes_no_command_of_its_own() -> None:
    hostile = f"{HOSTILE}\r\n::set-output name=x::y,file=z"
    lines = annotations(
        a_verdict(case_id=hostile, variant_name=hostile, status="fail", reasons=[hostile]),
        warnings=[hostile],
        variants=[variant(hostile)],
    )
    assert len(lines) == 2
    assert all(re.match(r"::(error|notice) title=[^:,]*::", line) for line in lines)
    assert "\x1b" not in "".join(lines)


def test_gitlab_gets_an_entry_for_each_cell_that_did_not_pass() -> None:
    passed, again = a_verdict(case_id="ok"), a_verdict(case_id="z", trial=1, status="fail", reasons=["no"])
    text = load("reports", "codequality")().render(
        stored(ERRORED, FAILED, passed, again), summary(), ReportContext(places=PLACES)
    )
    *entries, of_trial = json.loads(text)
    assert of_trial["description"] == "z · v1 · trial 2: no"
    assert [
        (entry["severity"], entry["location"]["path"], entry["location"]["lines"]["begin"]) for entry in entries
    ] == [
        ("critical", "eval.yaml", 1),
        ("major", "evals/a,b:c.yaml", 14),
    ]
    assert entries[1]["description"] == "c3 · new: says_hello: missing 'hello'"
    assert len({one["fingerprint"] for one in entries}) == 2


def test_sonarqube_gets_an_issue_for_each_cell_that_did_not_pass_and_the_rules_of_all() -> None:
    text = load("reports", "sonar")().render(
        stored(ERRORED, FAILED, a_verdict(case_id="ok")), summary(), ReportContext(places=PLACES)
    )
    document = json.loads(text)
    place = {"filePath": "evals/a,b:c.yaml", "textRange": {"startLine": 14}}
    assert [issue["ruleId"] for issue in document["issues"]] == ["error", "fail"]
    assert document["issues"][0]["primaryLocation"]["filePath"] == "eval.yaml"
    assert document["issues"][1]["primaryLocation"] == {"message": "c3 · new: says_hello: missing 'hello'", **place}
    rules = {rule["id"]: (rule["severity"], rule["impacts"][0]["severity"]) for rule in document["rules"]}
    of_cells = {"fail": ("MAJOR", "MEDIUM"), "borderline": ("MINOR", "LOW"), "error": ("CRITICAL", "HIGH")}
    of_run = dict.fromkeys(["gate", "cells"], ("CRITICAL", "HIGH"))
    assert rules == {**of_cells, **of_run, "warning": ("INFO", "LOW")}


def test_warnings_are_entries_and_issues_at_the_suite() -> None:
    warned = summary(warnings=["nothing reads this key", "nothing was judged"])
    entries = json.loads(load("reports", "codequality")().render(stored(a_verdict()), warned))
    assert [(entry["description"], entry["severity"]) for entry in entries] == [
        ("nothing reads this key", "info"), ("nothing was judged", "info"),
    ]  # fmt: skip
    assert len({entry["fingerprint"] for entry in entries}) == 2
    issues = json.loads(load("reports", "sonar")().render(stored(a_verdict()), warned))["issues"]
    place = {"filePath": "eval.yaml", "textRange": {"startLine": 1}}
    assert issues[1] == {"ruleId": "warning", "primaryLocation": {"message": "nothing was judged", **place}}


@pytest.mark.parametrize(("undecided", "severity"), [(False, "major"), (True, "critical")])
def test_a_gate_that_did_not_pass_and_missing_cells_come_first_though_every_cell_passed(
    undecided: bool, severity: str
) -> None:
    part = GatePart("pass_rate", False, 0.5, "gte", 0.9, 40)
    failing = summary(gate=GateOutcome(False, [part], "half of it", undecided=undecided), cells_missing=3)
    entries = json.loads(load("reports", "codequality")().render(stored(a_verdict()), failing))
    assert [entry["severity"] for entry in entries] == [severity, "critical"]
    assert re.fullmatch(r"gate: (failed|undecided); half of it; missed: pass_rate 0\.5, .*", entries[0]["description"])
    assert "3 of" in entries[1]["description"]
    issues = json.loads(load("reports", "sonar")().render(stored(a_verdict()), failing))["issues"]
    assert [issue["ruleId"] for issue in issues] == ["gate", "cells"]
    assert "half of it" in issues[0]["primaryLocation"]["message"]


def test_problems_of_two_suites_are_two_in_gitlab() -> None:
    gate = GateOutcome(False, [GatePart("pass_rate", False, 0.5, "gte", 0.9, 40)])
    failing = summary(gate=gate, warnings=["nothing reads this key"])
    contexts = [ReportContext(suite=file, places=PLACES) for file in ("shop.yaml", "bank.yaml", "shop.yaml")]
    reports = [load("reports", "codequality")().render(stored(FAILED), failing, context) for context in contexts]
    shop, bank, shop_again = ([entry["fingerprint"] for entry in json.loads(text)] for text in reports)
    assert shop == shop_again
    assert len({*shop, *bank}) == 6, "a gate, a warning and a cell of each"


def test_a_gate_that_passed_is_no_entry() -> None:
    passing = summary(gate=GateOutcome(True, [GatePart("pass_rate", True, 0.95, "gte", 0.9, 40)]))
    assert json.loads(load("reports", "codequality")().render(stored(a_verdict()), passing)) == []


def test_a_run_without_failures_has_no_issues() -> None:
    assert json.loads(load("reports", "sonar")().render(stored(a_verdict()), summary()))["issues"] == []
