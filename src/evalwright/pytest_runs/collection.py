"""Makes one run, like any other, from what the processes of a session left behind."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from evalwright.files.masker import Masker
from evalwright.model.plan import Plan, Plugin, Variant
from evalwright.model.snapshot import Case
from evalwright.pytest_runs.cells import CRITERIA, TESTS_VARIANT
from evalwright.pytest_runs.spool import SpoolPlace, parts_of, places_in, records_at
from evalwright.run.outcomes import Outcome
from evalwright.scoring.tally import Tally
from evalwright.stores.local_files import LocalFiles

__all__ = ["gathered", "session_plan"]


def session_plan(root: Path, started: datetime) -> Plan:
    """The plan of a session's run: one variant, and cases that bring their own evaluators."""
    return Plan(
        run_id=f"{started:%Y-%m-%dT%H-%M-%S}_pytest",
        name="pytest",
        dialect="pytest",
        started_at=started,
        config_path=str(root),
        config_hash=hashlib.sha256(os.fsencode(root)).hexdigest(),
        cases_total=0,
        variants=[Variant(TESTS_VARIANT, "in_test")],
        evaluators=[],
        pass_criteria=CRITERIA,
        evaluators_by_case=True,
        import_paths=[str(root)],
        seal="ours",  # like any run that this account makes, it can be resumed
    )


def gathered(folder: Path, runs: Path, root: Path, started: datetime) -> Outcome | None:
    """Make a run in `runs` from the cells in `folder`, which is then removed; None if it contains no cell.

    Raises StorageError; the folder then stays as it is, for the next session to gather.
    """
    places = places_in(folder)
    if not places:
        shutil.rmtree(folder, ignore_errors=True)
        return None
    plan = session_plan(root, started)
    rules = {repr(record.criteria): record.criteria for record in records_at(places)}
    if len(rules) == 1:
        (plan.pass_criteria,) = rules.values()
    plan.store = Plugin("local_files", {"path": str(runs)})
    store = LocalFiles(runs, Masker.of({}, os.environ))
    documents = {"config.yaml": b"pytest: {}\n", "config_hash.txt": plan.config_hash.encode() + b"\n"}
    with closing(store.create(plan, _cases(places), documents)) as writer:
        tally = Tally.of(plan)
        for index, record in enumerate(records_at(places)):
            trace, verdict = record.trace, record.verdict
            trace.case_index = verdict.case_index = index
            for row in parts_of(record):
                row.run_id = plan.run_id
            writer.append_trace(trace)
            writer.append_results(record.results)
            writer.append_verdict(verdict)
            tally.add(trace, record.results, verdict)
        summary = tally.summary(plan, datetime.now(UTC))
        writer.save_summary(summary)
        outcome = Outcome(writer.folder, plan, summary)
    shutil.rmtree(folder, ignore_errors=True)
    return outcome


def _cases(places: Sequence[SpoolPlace]) -> Iterator[Case]:
    for record in records_at(places):
        yield record.case
