"""In how many processes stored traces are judged again."""

import os

import pytest

from evalwright.model.plan import EvaluatorSpec
from evalwright.run.re_evaluation import re_evaluate
from evalwright.run.start import run_suite
from run.suites import SAYS_DONE, suite

CALLED = EvaluatorSpec("called", "python_function", {"function": "verdicts:synchronous"})
forks: list[int] = []
os.register_at_fork(before=lambda: forks.append(os.getpid()))  # for good, as Python cannot take it back


@pytest.mark.parametrize(("evaluators", "expected"), [([SAYS_DONE], 0), ([SAYS_DONE, CALLED], 1)], ids=["look", "call"])
def test_few_looks_take_no_further_process(tmp_path, monkeypatch, evaluators, expected):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    made = run_suite(suite(tmp_path, ["done", "no", "done", "no"], evaluators=evaluators))
    forks.clear()
    assert re_evaluate(made.run_dir).notes == ["re-evaluated 4 traces"]
    assert len(forks) == expected
    assert re_evaluate(made.run_dir, processes=2).notes == ["re-evaluated 4 traces"]
    assert len(forks) == expected + 1
