"""Too few open files: fewer cells run at once, and no system is blamed."""

import asyncio
import errno
import os
import resource
import sys
from pathlib import Path
from typing import ClassVar

import pytest

from evalwright import built_in
from evalwright.model.plan import EvaluatorSpec, Variant
from evalwright.model.trace import Answer, Output, Trace
from evalwright.run.limits import new_loop
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run
from evalwright.session.open_files import has_run_out, room_for
from open_files import files
from run.suites import suite

SAYS = EvaluatorSpec("says", "contains_text", {"all_of": ["answer"]})


def open_now():
    return len([*Path("/dev/fd").iterdir()])


def test_the_soft_limit_is_raised_to_what_is_needed():
    with files(open_now() + 40):
        assert room_for(100, 8) == 100
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= open_now() + 800


def test_cells_wait_where_the_limit_cannot_be_raised(tmp_path, monkeypatch):
    variants = [Variant("main", "cli", {"command": ["/bin/sh", "-c", "sleep 0.02; echo answer"]})]
    made = suite(tmp_path, [0] * 60, evaluators=[SAYS], variants=variants, max_concurrency=60)
    with files(open_now() + 60):
        # As where the hard limit is as low, which a test could not undo.
        monkeypatch.setattr(resource, "setrlimit", lambda *_: None)
        outcome = run_suite(made)
        monkeypatch.undo()
    assert outcome.exit_code == 0
    [warning] = [line for line in outcome.summary.warnings if "files may be open" in line]
    assert "not 60" in warning


def test_a_loop_that_cannot_have_its_files_leaves_no_traceback(monkeypatch, collect):
    ignored = []
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)
    lowest_free = os.open(os.devnull, os.O_RDONLY)
    os.close(lowest_free)
    with files(lowest_free + 2), pytest.raises(OSError, match="Too many open files"):
        new_loop()
    collect()
    assert ignored == []


class Greedy:
    """Finds no file left as often as its case says."""

    calls: ClassVar[list[str]] = []

    def __init__(self, variant):
        pass

    async def run(self, case, trial):
        self.calls.append(case.id)
        await asyncio.sleep(0.01)  # meanwhile the other cells begin
        if self.calls.count(case.id) <= case.input["fails"]:
            raise RuntimeError("cannot connect") from OSError(errno.EMFILE, "Too many open files")
        return Answer(Output(final_answer="answer"))


@pytest.fixture
def greedy(monkeypatch):
    monkeypatch.setitem(built_in.KINDS["targets"], "greedy", f"{__name__}:Greedy")
    Greedy.calls.clear()
    return [Variant("main", "greedy", {})]


def test_a_call_that_found_no_file_left_is_made_again_when_another_has_ended(tmp_path, greedy):
    inputs = [{"fails": 1}, {"fails": 1}, {"fails": 0}]
    outcome = run_suite(suite(tmp_path, inputs, evaluators=[SAYS], variants=greedy, max_concurrency=3))
    assert outcome.exit_code == 0
    assert sorted(Greedy.calls) == ["c0", "c0", "c1", "c1", "c2"]


def test_where_there_is_nothing_to_wait_for_it_is_said_for_what_it_is(tmp_path, greedy):
    outcome = run_suite(suite(tmp_path, [{"fails": 9}] * 2, evaluators=[SAYS], variants=greedy, max_concurrency=2))
    traces = list(open_run(outcome.run_dir)[0].traces(Trace))
    assert (outcome.exit_code, [trace.error.type for trace in traces]) == (3, ["out_of_files"] * 2)
    assert "ulimit -n" in traces[0].error.message


def test_the_cause_is_found_behind_other_exceptions():
    full = OSError(errno.EMFILE, "Too many open files")
    error = RuntimeError("no connection")
    error.__context__, error.__suppress_context__ = ExceptionGroup("all failed", [ValueError(), full]), True
    assert has_run_out(error)
    assert not has_run_out(OSError(errno.ENOENT, "No such file"))
