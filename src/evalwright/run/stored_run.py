"""Reading a stored run: its plan, cases and secrets, including folders that another program wrote."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from evalwright.errors import InputError, Problem
from evalwright.model.cell import OfCase
from evalwright.model.plan import EvaluatorSpec, Plan, Variant
from evalwright.model.protocols import RunReader
from evalwright.model.snapshot import Case, snapshot
from evalwright.model.trace import Trace
from evalwright.registry import NATIVE, formats, resolve
from evalwright.run.locations import Place, find_run
from evalwright.session import hide

if TYPE_CHECKING:
    from evalwright.model.suite import Suite

__all__ = ["PLAN_LOST", "CaseOf", "case_finder", "has_lost_its_plan", "open_run", "plan_of_run", "revealed"]

PLAN_LOST = "its plan.json is missing: restore it, or copy the whole folder again"
"""Of a run of ours that is not taken for another program's."""
CaseOf = Callable[[Trace], Case]
"""The case to which a trace belongs. Raises InputError if it is gone."""


def open_run(run: Path | Place) -> tuple[RunReader, Plan]:
    """Open a stored run for reading; returns it with its plan. Also reads folders written by the original evalh."""
    place = find_run(run)
    reader = place.store.read(place.run_id)
    return reader, plan_of_run(reader)


def plan_of_run(reader: RunReader) -> Plan:
    """The stored plan, or one made from what another program left: a folder's `config.yaml`, or records."""
    if reader.plan is not None:
        return reader.plan
    if not Path(reader.location).is_dir():
        return _plan_of_records(reader)
    from evalwright.run.options import RunOptions
    from evalwright.run.plan import plan_of

    plan = plan_of(_foreign_suite(reader), RunOptions())
    plan.run_id = Path(reader.location).name
    stored = reader.summary()
    if stored is not None:
        plan.cases_total, plan.started_at = stored.cases_total, stored.started_at
    return plan


def _plan_of_records(reader: RunReader) -> Plan:
    """What the records themselves tell: enough to show and compare them."""
    cases: set[str] = set()
    variants: dict[str, None] = {}
    evaluators: dict[str, str] = {}
    started = None
    for trace in reader.traces(_TraceMark):
        cases.add(trace.case_key)
        variants[trace.variant_name] = None
        started = min(started or trace.started_at, trace.started_at)
    for result in reader.results(_ResultMark):
        evaluators.setdefault(result.evaluator, result.evaluator_type)
    if started is None:
        raise InputError(f"{reader.location} was not written by evalwright and has no traces")
    run_id = Path(reader.location).name
    return Plan(
        run_id=run_id,
        name=run_id.partition("_")[2] or run_id,
        dialect=NATIVE,
        started_at=started,
        config_path="",
        config_hash="",
        cases_total=len(cases),
        variants=[Variant(name, "") for name in variants],
        evaluators=[EvaluatorSpec(name, kind) for name, kind in evaluators.items()],
    )


class _TraceMark(OfCase, gc=False):
    variant_name: str
    started_at: datetime


class _ResultMark(msgspec.Struct, gc=False):
    evaluator: str
    evaluator_type: str = ""


def case_finder(run: RunReader, plan: Plan, suite: Suite | None = None) -> CaseOf:
    """Finds the case of a trace: by position in our own runs, by id in others', whose cases come from a suite.

    Raises InputError for another program's database without a suite.
    """
    if run.plan is None:
        return _by_id({case.id: case for case in _foreign_cases(run, suite)}, run.location)

    def by_position(trace: Trace) -> Case:
        index = trace.case_index
        case = run.case(index) if index is not None and 0 <= index < plan.cases_total else None
        if case is not None and trace.case_id == case.id and trace.occurrence == case.occurrence:
            return case
        # An id that contains a secret is masked in the trace, and unmasked in the plan's cases.
        if case is None or trace.case_key != run.mask(case.key):
            raise InputError(f"{run.location}: the case {trace.case_key!r} of a trace is not among its cases")
        return case

    return by_position


def _by_id(cases: dict[str, Case], location: str) -> CaseOf:
    def find(trace: Trace) -> Case:
        try:
            return cases[trace.case_id]
        except KeyError:
            raise InputError(f"{location}: the case {trace.case_id!r} of a trace is gone from the dataset") from None

    return find


def has_lost_its_plan(reader: RunReader) -> bool:
    """Whether it is a run of ours without a plan: it still has its cases, which evalh does not keep."""
    return reader.plan is None and next(iter(reader.cases()), None) is not None


def _foreign_suite(reader: RunReader) -> Suite:
    try:
        for suite_format in formats():
            if (
                suite_format.adopt_run is not None
                and (suite := resolve(suite_format.adopt_run)(Path(reader.location))) is not None
            ):
                read_suite: Suite = suite
                return read_suite
    except InputError:
        if not has_lost_its_plan(reader):
            raise
        raise InputError(Problem(reader.location, PLAN_LOST)) from None
    raise InputError(Problem(reader.location, "was not written by evalwright, and has no config.yaml"))


def _foreign_cases(reader: RunReader, suite: Suite | None) -> list[Case]:
    if not Path(reader.location).is_dir():
        if suite is None:
            raise InputError(f"{reader.location} keeps neither cases nor evaluators: name its suite with --suite FILE")
        return [snapshot(case) for case in suite.cases]
    return [snapshot(case) for case in _foreign_suite(reader).cases]


def revealed(reader: RunReader, secrets: Mapping[str, str]) -> dict[str, str]:
    """Give a stored run the secrets that it names; these and its suite's are masked on the screen, too."""
    reveal = getattr(reader, "reveal", None)  # older stores of other packages fill them in by themselves
    revealed: dict[str, str] = {} if reveal is None else reveal({**os.environ, **secrets})
    hide({**secrets, **revealed})
    return revealed
