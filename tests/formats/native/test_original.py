"""A suite that is read under the name of the original program is judged by its rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from evalwright.formats.native.suite import adopt_run
from formats.suites import SOUND, write


@pytest.mark.parametrize("dialect", [None, "native"])
def test_errors_are_neither_failures_nor_in_a_rate(tmp_path: Path, dialect: str | None) -> None:
    criteria = load_suite(write(tmp_path, SOUND), dialect).pass_criteria
    assert (criteria.errored_cases, criteria.errored_evaluators) == ("error", "error")


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ({}, ("count", "fail")),
        ({"pass_criteria": {"errored_evaluators": "error"}}, ("count", "error")),
        ({"pass_criteria": {"errored_cases": "evaluate"}}, ("evaluate", "fail")),
    ],
)
def test_evalh_counts_errors_as_not_passed(tmp_path: Path, written: dict[str, Any], read: tuple[str, str]) -> None:
    criteria = load_suite(write(tmp_path, {**SOUND, **written}), "evalh").pass_criteria
    assert (criteria.errored_cases, criteria.errored_evaluators) == read


def test_its_evaluators_judge_as_there_unless_the_suite_says_otherwise(tmp_path: Path) -> None:
    says = {"name": "says", "type": "contains_text", "config": {"field": "output.nope"}}
    strict = {"name": "strict", "type": "contains_text", "config": {"absent": "error"}}
    evaluators = load_suite(write(tmp_path, {**SOUND, "evaluators": [says, strict]}), "evalh").evaluators
    assert [spec.config["absent"] for spec in evaluators] == ["empty", "error"]


def test_what_a_run_of_the_original_did_not_keep_is_an_error_and_no_failure(tmp_path: Path) -> None:
    write(tmp_path, SOUND).rename(tmp_path / "config.yaml")
    suite = adopt_run(tmp_path)
    assert suite is not None
    assert suite.pass_criteria.errored_evaluators == "error"


def test_keys_that_its_evaluators_do_not_have_are_warnings(tmp_path: Path) -> None:
    noted = {"name": "noted", "type": "contains_text", "config": {"all_of": ["x"], "any_off": ["y"]}}
    suite = load_suite(write(tmp_path, {**SOUND, "evaluators": [noted]}), "evalh")
    assert "any_off" not in suite.evaluators[0].config
    (warning,) = suite.warnings
    assert (warning.key, warning.message) == (
        "evaluators.0.config.any_off",
        'nothing reads this key; did you mean "any_of"?',
    )
    with pytest.raises(InputError, match="unknown key 'any_off'"):
        load_suite(tmp_path / "eval.yaml", "native")
