"""Which lists of evaluators an AgentV case is judged by."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalwright.model.suite import Suite
from formats.agentv.newer_suites import HI, load, one

OTHER = {"name": "other", "type": "contains", "value": "other"}
SUITE = {"name": "suite", "type": "contains", "value": "suite"}


def used(suite: Suite) -> list[str]:
    return [spec["name"] for case in suite.cases for spec in case.evaluators or ()]


def unused(suite: Suite) -> list[str]:
    return [str(problem.key) for problem in suite.warnings if "is not used: there is" in problem.message]


@pytest.mark.parametrize(
    "head", [{"assertions": [SUITE]}, {"execution": {"assertions": [SUITE]}}, {"execution": {"evaluators": [SUITE]}}]
)
def test_a_case_may_do_without_the_evaluators_of_the_file(folder: Path, head: dict[str, Any]) -> None:
    assert used(load(folder, tests=[one(assertions=[HI])], **head)) == ["contains-hi", "suite"]
    alone = one(assertions=[HI], execution={"skip_defaults": True})
    assert used(load(folder, tests=[alone], **head)) == ["contains-hi"]


@pytest.mark.parametrize(
    ("case", "left"),
    [
        ({"assertions": [HI], "assert": [OTHER]}, "assert"),
        ({"assertions": [HI], "execution": {"evaluators": [OTHER]}}, "execution.evaluators"),
        ({"assert": [HI], "evaluators": [OTHER]}, "evaluators"),
    ],
)
def test_of_several_lists_of_a_case_the_newest_is_used(folder: Path, case: dict[str, Any], left: str) -> None:
    suite = load(folder, tests=[one(**case)])
    assert (used(suite), unused(suite)) == (["contains-hi"], [f"tests[0].{left}"])


def test_of_several_lists_of_a_file_the_newest_is_used(folder: Path) -> None:
    suite = load(folder, tests=[one(criteria="x")], execution={"evaluators": [OTHER]}, assertions=[HI])
    assert (used(suite), unused(suite)) == (["contains-hi"], ["execution.evaluators"])


@pytest.mark.parametrize("key", ["assert", "assertions"])
def test_assertions_below_execution_of_a_file_are_added_to_every_case(folder: Path, key: str) -> None:
    cases = [one(id="own", evaluators=[OTHER]), one(id="none", criteria="x")]
    suite = load(folder, tests=cases, execution={key: [{"type": "contains", "value": "suite"}]})
    assert used(suite) == ["other", "contains-suite", "contains-suite"]


def test_a_criterion_that_is_empty_is_none(folder: Path) -> None:
    assert used(load(folder, tests=[one(criteria="", assertions=[HI])])) == ["contains-hi"]


@pytest.mark.parametrize("case", [{"execution": {"evaluators": None}}, {"assert": None, "evaluators": None}])
def test_a_list_without_a_value_leaves_that_of_the_file(folder: Path, case: dict[str, Any]) -> None:
    cases = [one(expected_outcome="x", **case)]
    assert used(load(folder, evalcases=cases, execution={"evaluators": [SUITE]})) == ["suite"]


def test_of_several_lists_of_a_composite_the_newest_is_used(folder: Path) -> None:
    whole = {"type": "composite", "assertions": [HI], "evaluators": [OTHER], "aggregator": {"type": "weighted_average"}}
    suite = load(folder, tests=[one(assertions=[whole])])
    members = [spec["config"]["evaluators"] for case in suite.cases for spec in case.evaluators or ()]
    assert [member["name"] for member in members[0]] == ["contains-hi"]
    assert unused(suite) == ["tests[0].assertions[0].evaluators"]


def test_the_newer_name_of_a_program_that_judges_is_used(folder: Path) -> None:
    judge = {"type": "code-grader", "command": ["new"], "script": ["old"]}
    suite = load(folder, tests=[one(assertions=[judge, {**judge, "name": "b", "command": None}])])
    scripts = [spec["config"]["script"] for case in suite.cases for spec in case.evaluators or ()]
    assert scripts == [["new"], ["old"]]
