"""Evaluators that compare the answers to a case: for all cases, or for those alone that name one."""

import json
from pathlib import Path
from typing import ClassVar

import msgspec
import pytest

from evalwright import built_in
from evalwright.errors import EvaluatorError, TargetError
from evalwright.model.plan import EvaluatorSpec, RunSettings, Variant
from evalwright.model.result import Evaluation
from evalwright.model.suite import Suite
from evalwright.model.trace import Answer, Output
from evalwright.run.re_evaluation import re_evaluate
from evalwright.run.resumption import resume, retry
from evalwright.run.start import run_suite
from evalwright.testing import a_case
from run.suites import PROJECT, SAYS_DONE

LONGEST = EvaluatorSpec("longest", "longest_answer")
called: list[tuple[str, str]] = []


class Named:
    """Answers with the name of the variant, and with nothing to what has no answer."""

    def __init__(self, variant: Variant) -> None:
        self._name = variant.name

    async def run(self, case, trial):
        called.append((case.id, self._name))
        if (case.id, self._name) == ("half", "a"):
            raise TargetError("no answer")
        return Answer(output=Output(final_answer=f"done by {self._name}"))


class Longest(msgspec.Struct, frozen=True):
    """The longest answer passes; it knows of some cases that it cannot tell."""

    compares: ClassVar[bool] = True

    def evaluate(self, case, trace):
        raise AssertionError("it is asked about all answers together")

    async def compare(self, case, cells):
        if case.id == "unclear":
            raise EvaluatorError("all are alike")
        if case.id == "endless":
            raise TimeoutError
        longest = max(len(trace.output.final_answer) for trace, _ in cells)
        detail = {"compared": [trace.variant_name for trace, _ in cells]}
        return [Evaluation(len(trace.output.final_answer) == longest, detail=detail) for trace, _ in cells]


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    monkeypatch.setitem(built_in.KINDS["targets"], "named", f"{__name__}:Named")
    monkeypatch.setitem(built_in.KINDS["evaluators"], "longest_answer", f"{__name__}:Longest")
    called.clear()


def compared(folder: Path, *, alone: bool, ids: tuple[str, ...] = ("c0", "c1")) -> Path:
    """A run of two variants; with `alone` only the first case has its answers compared."""
    own = [LONGEST, SAYS_DONE]
    suite = Suite(
        name="compared",
        dialect="evalh",
        source=PROJECT / "eval.yaml",
        cases=[a_case(id=id, evaluators=own[i:] if alone else None) for i, id in enumerate(ids)],
        variants=[Variant(name, "named") for name in ("a", "bb")],
        evaluators=[] if alone else own,
        evaluators_by_case=alone,
        run=RunSettings(),
        out=folder / "runs",
    )
    return run_suite(suite).run_dir


def rows(run: Path, name: str) -> dict[tuple[str, ...], dict]:
    """The last record of each cell, of results also by evaluator."""
    lines = map(json.loads, (run / f"{name}.jsonl").read_text().splitlines())
    return {
        (row["case_id"], row["variant_name"], *([row["evaluator"]] if name == "results" else [])): row for row in lines
    }


def verdicts(run: Path) -> dict[tuple[str, ...], str]:
    return {cell: row["status"] for cell, row in rows(run, "verdicts").items()}


@pytest.mark.parametrize("alone", [True, False])
def test_a_cell_is_compared_with_those_beside_it_also_when_it_goes_on_or_is_judged_again(tmp_path, alone):
    run = compared(tmp_path, alone=alone)
    first = verdicts(run)
    assert first == {
        ("c0", "a"): "fail",
        ("c0", "bb"): "pass",
        ("c1", "a"): "pass" if alone else "fail",
        ("c1", "bb"): "pass",
    }

    for name, key in (("results", "longest"), ("verdicts", "")):  # a crash left one of two answers without its verdict
        lines = (run / f"{name}.jsonl").read_bytes().splitlines(keepends=True)
        cut = [line for line in lines if not all(word in line for word in (b'"c0"', b'"bb"', key.encode()))]
        (run / f"{name}.jsonl").write_bytes(b"".join(cut))
    assert ("c0", "bb") not in verdicts(run)
    called.clear()
    resume(run)
    assert (verdicts(run), called) == (first, [])
    assert rows(run, "results")["c0", "bb", "longest"]["detail"]["compared"] == ["a", "bb"]

    retry(run, evaluator_failures=True)
    failed = {"c0"} if alone else {"c0", "c1"}
    assert sorted(called) == [(case, variant) for case in sorted(failed) for variant in ("a", "bb")]
    assert verdicts(run) == first
    re_evaluate(run)
    assert verdicts(run) == first
    assert rows(run, "results")["c0", "a", "longest"]["detail"]["compared"] == ["a", "bb"]


def test_an_answer_without_one_to_compare_it_with_is_not_judged_and_what_failed_is_not_compared(tmp_path):
    run = compared(tmp_path, alone=False, ids=("half",))
    stored_rows = rows(run, "results")
    assert [cell for cell in stored_rows if cell[2] == "longest"] == [("half", "bb", "longest")]
    assert "no answer of a to compare with" in stored_rows["half", "bb", "longest"]["error"]["message"]
    assert verdicts(run) == {("half", "a"): "error", ("half", "bb"): "error"}


def test_a_comparison_that_fails_is_an_error_of_all_that_it_compares(tmp_path):
    stored_rows = rows(compared(tmp_path, alone=False, ids=("unclear", "endless")), "results")
    errors = {
        cell: row["error"] for (*cell, name), row in stored_rows.items() for cell in [tuple(cell)] if name == "longest"
    }
    assert [(cell, error["type"]) for cell, error in sorted(errors.items())] == [
        (("endless", "a"), "timeout"),
        (("endless", "bb"), "timeout"),
        (("unclear", "a"), "evaluator_error"),
        (("unclear", "bb"), "evaluator_error"),
    ]
    assert "all are alike" in errors["unclear", "bb"]["message"]
