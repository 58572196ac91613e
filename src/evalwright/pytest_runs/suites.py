"""Cases of eval files in tests: `@pytest.mark.evalwright(dataset="cases.json")`."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from evalwright.errors import InputError, did_you_mean
from evalwright.files.masker import Masker
from evalwright.files.plain import plain
from evalwright.formats.loading import load_suite
from evalwright.model.plan import Plan, Variant
from evalwright.model.result import FAILED, CaseVerdict, EvaluationResult
from evalwright.model.snapshot import Case, Expected
from evalwright.model.suite import Suite
from evalwright.model.trace import Answer, Trace
from evalwright.pytest_runs.cells import TESTS_VARIANT
from evalwright.pytest_runs.recorder import Recorder
from evalwright.pytest_runs.spool import SpoolRecord, parts_of
from evalwright.reports.text import one_line
from evalwright.run.cells import RunState
from evalwright.run.loop import Job, work
from evalwright.run.models import live_models
from evalwright.run.options import RunOptions
from evalwright.run.plan import plan_of
from evalwright.run.selection import chosen_cases
from evalwright.scoring.tally import Tally
from evalwright.session import Session
from evalwright.stores.memory import MemoryStore
from evalwright.targets.answers import answer_of

__all__ = ["CaseErrored", "CaseFailed", "CaseUnderTest", "LoadedSuite", "cases_of", "marked"]

_LONGEST = 300
_ANSWER_KEYS = {"final_answer", "structured", "thinking", "tool_calls", "tool_results", "messages", "metrics"}


class CaseFailed(AssertionError):
    """A case did not pass; the message names each check that it failed."""


class CaseErrored(Exception):
    """A case could not be judged, so it neither passed nor failed."""


def marked(marker: pytest.Mark, folder: Path, root: Path) -> tuple[Path, str | None]:
    """The file and the format that a marker names; the file is searched for beside the test, then in the root folder.

    Raises InputError for arguments that the marker does not accept.
    """
    arguments = dict(marker.kwargs)
    if len(marker.args) == 1 and "dataset" not in arguments:
        arguments["dataset"] = marker.args[0]
    elif marker.args:
        raise InputError("evalwright(...): expected one dataset")
    unknown = sorted(arguments.keys() - {"dataset", "dialect"})
    if unknown or not isinstance(arguments.get("dataset"), (str, os.PathLike)):
        near = did_you_mean(unknown[0], ["dataset", "dialect"]) if unknown else ""
        what = f"unknown argument {unknown[0]!r}{near}" if unknown else f"dataset is {arguments.get('dataset')!r}"
        raise InputError(f"evalwright(...): {what}; expected dataset (a path) and optionally dialect=")
    named = Path(arguments["dataset"])
    path = next((candidate for base in (folder, root) if (candidate := base / named).exists()), folder / named)
    return path, arguments.get("dialect")


def cases_of(path: Path, dialect: str | None) -> tuple[LoadedSuite, list[Case]]:
    """The suite in a file and its cases. Raises InputError with every mistake."""
    suite = load_suite(path, dialect)
    return LoadedSuite(suite), list(chosen_cases(suite, RunOptions(allow_empty=None)))


class LoadedSuite:
    """A suite whose cases are tested one by one."""

    secrets: dict[str, str]

    def __init__(self, suite: Suite) -> None:
        self.secrets, self._environment = suite.secrets, suite.environment
        self._plan = plan_of(suite, RunOptions())
        self._plan.mirrors, self._plan.gate = [], None

    def under_test(self, case: Case, recorder: Recorder | None) -> CaseUnderTest:
        return CaseUnderTest(self, case, recorder)

    def run(self, case: Case) -> list[SpoolRecord]:
        """The cells of a case: every variant and trial, called and judged as in any run."""
        return self._worked_cases(self._plan, case)

    def judge(self, case: Case, trace: Trace) -> list[SpoolRecord]:
        """The cell of a case whose answer is already known."""
        recorded = msgspec.structs.replace(case, recorded=msgspec.Raw(msgspec.json.encode(trace)))
        settings = msgspec.structs.replace(self._plan.run, trials=1, baseline_variant=None, pools={})
        variants = [Variant(TESTS_VARIANT, "replay")]
        plan = msgspec.structs.replace(self._plan, variants=variants, run=settings, workspace=None)
        records = self._worked_cases(plan, recorded)
        for record in records:
            record.case.recorded = case.recorded
            record.trace.extra = {k: v for k, v in record.trace.extra.items() if k not in ("source", "replayed_from")}
        return records

    def _worked_cases(self, plan: Plan, case: Case) -> list[SpoolRecord]:
        plan = msgspec.structs.replace(plan, run_id="case", cases_total=1)
        writer = MemoryStore().create(plan, [case], {})
        state = RunState(total=1)
        models = partial(live_models, plan, None, Masker.of(self.secrets, os.environ), state)
        with Session(models=models, environment=self._environment):
            if work(Job(plan, writer, Tally.of(plan), state)):
                raise KeyboardInterrupt
        results: dict[tuple[str, int], list[EvaluationResult]] = {}
        for row in writer.results(EvaluationResult):
            results.setdefault((row.variant_name, row.trial), []).append(row)
        traces = {(trace.variant_name, trace.trial): trace for trace in writer.traces(Trace)}
        records = []
        for verdict in writer.verdicts(CaseVerdict):
            key = (verdict.variant_name, verdict.trial)
            specs = case.evaluators if plan.evaluators_by_case else plan.evaluators
            own = msgspec.structs.replace(case, evaluators=specs)
            record = SpoolRecord("", 0, own, traces[key], results.get(key, []), verdict, plan.pass_criteria)
            record.trace.extra = {**record.trace.extra, "variant": key[0], "trial": key[1]}
            for part in parts_of(record):
                part.variant_name, part.trial = TESTS_VARIANT, 0
            records.append(record)
        return records


class CaseUnderTest:
    """What a test gets as `case`."""

    def __init__(self, suite: LoadedSuite, case: Case, recorder: Recorder | None) -> None:
        self._suite, self._case, self._recorder = suite, case, recorder
        self._started = datetime.now(UTC)

    def __repr__(self) -> str:
        return f"<case {self.id}>"

    @property
    def id(self) -> str:
        return self._case.id

    @property
    def key(self) -> str:
        """A name that is unique in the file."""
        return self._case.key

    @property
    def input(self) -> Any:
        """The input of the system; a copy."""
        return msgspec.to_builtins(self._case.input)

    @property
    def expected(self) -> Expected:
        return self._case.expected

    @property
    def metadata(self) -> dict[str, Any]:
        return self._case.metadata

    @property
    def extra(self) -> dict[str, Any]:
        """What else the case's format has, such as a pixie entry's `expectation`."""
        return self._case.extra

    @property
    def secrets(self) -> dict[str, str]:
        """Values of the suite that must not be shown."""
        return self._suite.secrets

    def copy(self) -> Case:
        return msgspec.structs.replace(self._case)

    def start(self) -> None:
        """The test's own code begins: an answer that is checked took the time from here on."""
        self._started = datetime.now(UTC)

    def check(self, output: Any) -> None:
        """Judge an answer with the evaluators of the file: a text or other JSON, or the mapping that a Python target
        returns (`final_answer`, `tool_calls`, ...).

        Raises CaseFailed, CaseErrored, and skips the test if every check was skipped.
        """
        self._conclude(_in_thread(lambda: self._suite.judge(self._case, self._trace(output))))

    def run(self) -> None:
        """Call the system of the file, for every variant and trial, and judge its answers; raises as `check` does."""
        self._conclude(_in_thread(lambda: self._suite.run(self._case)))

    async def acheck(self, output: Any) -> None:
        """`check` without blocking the event loop."""
        context = contextvars.copy_context()
        trace = self._trace(output)
        self._conclude(await asyncio.to_thread(context.run, self._suite.judge, self._case, trace))

    async def arun(self) -> None:
        """`run` without blocking the event loop."""
        self._conclude(await asyncio.to_thread(self._suite.run, self._case))

    def _trace(self, output: Any) -> Trace:
        now = datetime.now(UTC)
        answer = _answer(self._case, output)
        milliseconds = int((now - self._started).total_seconds() * 1000)
        trace = Trace(self.id, TESTS_VARIANT, self._started, now, milliseconds, self._case.input, answer.output)
        trace.messages, trace.metrics, trace.extra = answer.messages, answer.metrics, answer.extra
        trace.tool_calls, trace.tool_results = answer.tool_calls, answer.tool_results
        return trace

    def _conclude(self, records: Sequence[SpoolRecord]) -> None:
        statuses = {_status(record) for record in records}
        lines = "\n".join(line for record in records for line in _lines(self.id, record))
        message = Masker.of(self.secrets, os.environ).mask_text(lines)
        if self._recorder is not None:
            self._recorder.keep(records)
        if not statuses.isdisjoint(FAILED):
            raise CaseFailed(message)
        if not records or "error" in statuses:
            raise CaseErrored(message)
        if statuses == {"skip"}:
            pytest.skip(message)


def _answer(case: Case, output: Any) -> Answer:
    from evalwright.formats.pixie.target import observed_answer

    shown = case.extra.get("eval_input")
    if shown is None and isinstance(output, dict) and output.keys() & _ANSWER_KEYS:
        return answer_of(output)
    value = {"name": "output", "value": plain(output, "output", []), "purpose": "output"}
    return observed_answer({"eval_input": shown or []}, [value])


def _in_thread(call: Callable[[], list[SpoolRecord]]) -> list[SpoolRecord]:
    """A run has its own event loop, and a thread can have only one; Ctrl-C still ends the wait."""
    done: Future[list[SpoolRecord]] = Future()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            done.set_result(context.run(call))
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=work, daemon=True, name="evalwright-case").start()
    return done.result()


def _status(record: SpoolRecord) -> str:
    """The verdict; an error if only errors kept the case from passing, whatever its format makes of those."""
    open_rows = [row for row in record.results if not row.passed and not row.skipped]
    if record.verdict.status == "fail" and open_rows and all(row.error is not None for row in open_rows):
        return "error"
    return record.verdict.status


def _lines(name: str, record: SpoolRecord) -> list[str]:
    """The result of each check that did not pass, the case, and the answer.

    The reasons come first: pytest's short summary has room for the beginning, and names the case itself.
    """
    verdict, trace = record.verdict, record.trace
    if verdict.status == "pass":
        return []
    lines = []
    if trace.error is not None:
        lines.append(f"no answer: {trace.error.type}: {one_line(trace.error.message, _LONGEST)}")
    for row in record.results:
        status = row.status
        if status == "pass" or (status == "skip" and verdict.status != "skip") or trace.error is not None:
            continue
        score = "" if row.score is None else f" {row.score:.2f}"
        message = f"{row.error.type}: {row.error.message}" if row.error is not None else row.reason
        lines.append(f"{row.evaluator} {status}{score}: {one_line(message, _LONGEST)}")
    lines.append(f"  case {one_line(name, _LONGEST)}: {_status(record)}")
    if trace.error is None:
        lines.append(f"  answer: {one_line(str(trace.output.final_answer), _LONGEST)}")
    return lines
