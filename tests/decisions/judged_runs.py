"""Runs with a judge, and human labels of their answers."""

from __future__ import annotations

from evalwright.decisions.calibration import calibrate
from evalwright.model.calibration import JudgeCalibration, Label
from evalwright.model.protocols import RunReader
from evalwright.model.trace import Output, TraceError
from evalwright.scoring.judged_answers import judged_answers
from evalwright.testing import MemoryStore, a_case, a_plan, a_result, a_trace


def run_of(*verdicts, variants=("v",), answer="the same", group_of=0) -> RunReader:
    """One case a verdict: `passed`, or `(passed, score)`, or None for an error; or a list, one a trial.

    With `group_of`, so many cases are of one group.
    """
    run = MemoryStore().create(a_plan(), [a_case()], {})
    for variant in variants:
        for number, given_verdicts in enumerate(verdicts):
            for trial, verdict in enumerate(given_verdicts if isinstance(given_verdicts, list) else [given_verdicts]):
                cell = {"case_id": f"c{number}", "variant_name": variant, "trial": trial}
                group = {"group": f"g{number // group_of}"} if group_of else {}
                run.append_trace(a_trace(output=Output(answer), **cell, **group))
                passed, score = verdict if isinstance(verdict, tuple) else (bool(verdict), None)
                error = TraceError("bad_reply", "?") if verdict is None else None
                run.append_results([a_result(evaluator="judge", passed=passed, score=score, error=error, **cell)])
    return run


def labels(*words, variant="v", **fields):
    return [Label(f"c{n}", "judge", variant, passed=w, **fields) for n, w in enumerate(words) if w is not None]


def measured(run: RunReader, given_labels, threshold=None) -> JudgeCalibration:
    return calibrate("judge", given_labels, judged_answers(run, ["judge"]), threshold)
