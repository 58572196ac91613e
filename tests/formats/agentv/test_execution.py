"""What the section `execution` of a file and of a case decides."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from evalwright.model.result import CaseVerdict
from evalwright.model.suite import Suite
from evalwright.run.options import RunOptions
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run

COSTLY = "def said(asked):\n    return {'text': 'half', 'cost_usd': 0.4}\n"
HALF = [{"type": "contains", "value": "half"}, {"type": "contains", "value": "whole"}]


def load(folder: Path, execution: Any, *cases: dict[str, Any], **options: Any) -> Suite:
    (folder / "costly.py").write_text(COSTLY)
    targets = [{"name": "default", "provider": "python", "callable": "costly:said"}]
    (folder / "targets.yaml").write_text(json.dumps({"targets": targets}))
    tests = [{"id": str(i), "criteria": "c", "input": "x", "assertions": HALF, **case} for i, case in enumerate(cases)]
    text = json.dumps({"name": "suite", "execution": execution, "tests": tests})
    (folder / "a.eval.yaml").write_text(text.replace("Infinity", ".inf"))
    return load_suite(folder / "a.eval.yaml", options=options)


def statuses(suite: Suite) -> list[str]:
    reader, _ = open_run(run_suite(suite, RunOptions(out=suite.source.parent / "runs")).run_dir)
    return [verdict.status for verdict in sorted(reader.verdicts(CaseVerdict), key=lambda verdict: verdict.case_id)]


def test_a_threshold_decides_what_passes(tmp_path: Path) -> None:
    cases = ({}, {"execution": {"threshold": 0.6}}, {"execution": {"threshold": 0}})
    assert statuses(load(tmp_path, {}, *cases)) == ["fail", "fail", "pass"]
    assert statuses(load(tmp_path, {"threshold": 0.5}, *cases)) == ["pass", "fail", "pass"]
    assert statuses(load(tmp_path, {"threshold": 0.5}, *cases, threshold=0.9)) == ["fail", "fail", "pass"]


def test_a_budget_bounds_what_the_system_costs(tmp_path: Path) -> None:
    by_case = statuses(load(tmp_path, {"threshold": 0.5, "budget_usd": 0.7, "workers": 1}, {}, {}, {}, {}))
    assert by_case == ["pass", "pass", "error", "error"]  # not run, each with this reason


@pytest.mark.parametrize(
    ("execution", "said"),
    [
        ({"budget_usd": "lots"}, "budget_usd: expected a number above 0, found 'lots'"),
        ({"timeout_seconds": 0}, "timeout_seconds: expected a number above 0, found 0"),
        ({"timeout_seconds": float("inf")}, "timeout_seconds: expected a number above 0, found inf"),
        (["fast"], "execution: expected a mapping, found a list"),
        ({"threshold": 80}, "threshold: expected a number from 0 to 1, found 80"),
        ({"threshold": "0.5"}, "threshold: expected a number from 0 to 1, found '0.5'"),
        ({"trials": {"count": "two"}}, "trials: expected {count: a number of at least 1}, found a mapping"),
        ({"trials": 3}, "trials: expected {count: a number of at least 1}, found 3"),
    ],
)
def test_what_cannot_be_a_gate_is_refused(tmp_path: Path, execution: Any, said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        load(tmp_path, execution, {})


def test_a_case_whose_time_limit_is_infinite_is_an_error(tmp_path: Path) -> None:
    assert statuses(load(tmp_path, {}, {"execution": {"timeout_seconds": float("inf")}}, {})) == ["error", "fail"]


def test_a_case_whose_threshold_is_none_is_an_error(tmp_path: Path) -> None:
    assert statuses(load(tmp_path, {}, {"execution": {"threshold": "high"}}, {})) == ["error", "fail"]


def test_settings_of_trials_without_effect_are_warnings(tmp_path: Path) -> None:
    trials = {"count": 2, "strategy": "pass_at_k", "cost_limit_usd": 1}
    listed = [str(problem) for problem in load(tmp_path, {"trials": trials}, {}).warnings]
    assert any("execution.trials.strategy" in one and "strategy is not used" in one for one in listed)
    assert any("execution.trials.cost_limit_usd" in one and "nothing reads the key" in one for one in listed)
    assert load(tmp_path, {"trials": {"count": 2}}, {}).warnings == []
