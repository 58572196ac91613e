"""Further work on a stored run: its remaining cells, or other evaluators on its traces."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evalwright.api.cells import Cell
from evalwright.api.evaluators import EvaluatorLike, specs_of
from evalwright.api.places import Passed
from evalwright.api.problems import refused
from evalwright.api.runs import Run, run_of
from evalwright.api.work import Listener, in_thread
from evalwright.errors import InputError, Problem
from evalwright.model.plan import EvaluatorSpec, PassCriteria
from evalwright.model.suite import Suite

if TYPE_CHECKING:
    from evalwright.run.locations import Place
    from evalwright.run.outcomes import Outcome

__all__ = ["re_evaluate", "resume"]


def resume(
    run: Run | str | os.PathLike[str],
    *,
    retry_errors: bool = False,
    on_cell: Callable[[Cell], None] | None = None,
    trust_run: bool = False,
) -> Run:
    """Run the unfinished cells of an interrupted run. Finished cells stay as they are.

    Args:
        run: The run, or its folder.
        retry_errors: Also run again the cells whose system ended in an error.
        on_cell: Called once for each cell that finishes, in the caller's thread.
        trust_run: Use the code, addresses and variables that the run names, even if it was made elsewhere.

    Returns:
        The finished run.

    Raises:
        InputError: it cannot be resumed: another process works on it, it was made elsewhere, or a system is a function
            that cannot be imported here; the message says which one to pass to `evaluate(..., resume=True)`.
        StorageError: a record could not be written.
        KeyboardInterrupt: as in `evaluate`.
    """
    stored = run_of(run)

    def work(listener: Listener) -> Outcome:
        from evalwright.run import resumption
        from evalwright.run.origin import Trust

        trust = Trust(stored._suite, run=trust_run)
        if retry_errors:
            return resumption.retry(_where(stored), watch=listener.watch, trust=trust)
        return resumption.resume(_where(stored), listener.watch, trust=trust)

    _, listener = in_thread(work, stored._objects, on_cell, _secrets(stored))
    return Run(stored._place, listener.stopped, stored._objects, stored._suite)


def re_evaluate(
    run: Run | str | os.PathLike[str],
    evaluators: EvaluatorLike | Sequence[EvaluatorLike] | None = None,
    *,
    replace: bool = False,
    trust_run: bool = False,
) -> Run:
    """Evaluate the stored traces again; the systems are not called.

    Args:
        run: The run, or its folder. Its results and verdicts are replaced.
        evaluators: Evaluators in addition to the run's own, whose results are kept; one with the name of an
            evaluator of the run replaces it. None: all of the run's own evaluators, once more.
        replace: Only `evaluators` judge; the run's own are dropped.
        trust_run: Use the code, addresses and variables that the run names, even if it was made elsewhere.

    Returns:
        The run with its new verdicts.

    Raises:
        InputError: evaluators that cannot be used, or a run that was made elsewhere; the run is as it was.
        StorageError: a record could not be written; the run is as it was.
    """
    stored = run_of(run)
    places, problems = Passed(), list[Problem]()
    places.objects.update(stored._objects)
    specs = None if evaluators is None else specs_of(evaluators, places, problems)
    if replace and specs == [] and not problems:
        problems.append(refused("evaluators", "nothing would be judged: expected at least one evaluator, found none"))
    if problems:
        raise InputError(problems)

    def work(listener: Listener) -> Outcome:
        from evalwright.run.re_evaluation import re_evaluate

        if specs is None:
            return re_evaluate(_where(stored), watch=listener.watch, trust_run=trust_run)
        suite = _judged_by(stored, specs)
        if replace:
            return re_evaluate(_where(stored), suite=suite, watch=listener.watch, trust_run=trust_run)
        for spec in specs[:-1]:
            re_evaluate(_where(stored), add=spec.name, suite=suite, watch=listener.watch, trust_run=trust_run)
        return re_evaluate(_where(stored), add=specs[-1].name, suite=suite, watch=listener.watch, trust_run=trust_run)

    if specs != []:
        in_thread(work, places.objects, None, _secrets(stored))
    return Run(stored._place, None, places.objects, stored._suite)


def _judged_by(run: Run, specs: list[EvaluatorSpec]) -> Suite:
    plan = run._plan
    return Suite(
        name=plan.name,
        dialect=plan.dialect,
        source=Path(plan.config_path),
        cases=[],
        variants=plan.variants,
        evaluators=specs,
        pass_criteria=PassCriteria(errored_evaluators="error"),
    )


def _secrets(run: Run) -> Mapping[str, str]:
    return {} if run._suite is None else run._suite.secrets


def _where(run: Run) -> Path | Place:
    """Runs on disk are looked up again, with the secrets of their suite; one in memory is used as it is."""
    return run._place if run.path is None else run.path
