"""From NorthStar records to cases with their recorded traces, streamed."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from evalwright.errors import EvalwrightError, FirstProblems, InputError, Problem
from evalwright.files.jsonl import has_each_key_once, lines_of
from evalwright.files.key_paths import bracketed
from evalwright.files.plain import plain
from evalwright.files.problems import ProblemKinds
from evalwright.files.strict_json import with_json_lines
from evalwright.formats.northstar.doubts import CaseDoubt, doubts_in
from evalwright.formats.northstar.ids import Occurrences, ambiguous_ids, oddities
from evalwright.formats.northstar.records import Record, parsed_line, records_of
from evalwright.formats.northstar.traces import take_trace, unread_trace_keys
from evalwright.model.conversation import (
    ConversationExpected,
    ExpectedArguments,
    StateTransition,
    TraceExpected,
)
from evalwright.model.recordings import RECORDING
from evalwright.model.snapshot import Case, Expected
from evalwright.model.trace import UNDATED, Metrics, Output, Trace, TraceError

if TYPE_CHECKING:
    from evalwright.formats.northstar.authored import EvalCase

__all__ = ["CASE_KEYS", "VARIANT", "Cases", "case_of", "expectations_of"]

VARIANT = "recorded"


class _Transition(StateTransition, forbid_unknown_fields=True):
    pass


class _Arguments(ExpectedArguments, forbid_unknown_fields=True):
    pass


class _TraceExpected(TraceExpected, forbid_unknown_fields=True, omit_defaults=True):
    allowed_state_transitions: list[_Transition] | None = None  # type: ignore[assignment]


class _Expected(ConversationExpected, forbid_unknown_fields=True, omit_defaults=True):
    tool_arguments: list[_Arguments] | None = None  # type: ignore[assignment]
    trace: _TraceExpected | None = None


class _Metrics(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    latency_ms: float | None = None
    cost_usd: float | None = None


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    """A record that needs no coercion, like nearly every one. All others are read by `EvalCase`."""

    id: str
    messages: list[dict[str, Any]]
    input: Any = None
    expected: _Expected = msgspec.field(default_factory=_Expected)
    metrics: _Metrics = msgspec.field(default_factory=_Metrics)
    metadata: dict[str, Any] = {}
    trace: dict[str, Any] | None = None


class _WrittenRecord(_Line, omit_defaults=True):
    """A record as it is decoded: encoded again, it has no key that was not there."""

    expected: _Expected | msgspec.UnsetType = msgspec.UNSET  # type: ignore[assignment]
    metrics: _Metrics | msgspec.UnsetType = msgspec.UNSET  # type: ignore[assignment]

    def filled(self) -> _Line:
        if self.expected is msgspec.UNSET:
            self.expected = _Expected()
        if self.metrics is msgspec.UNSET:
            self.metrics = _Metrics()
        return self


CASE_KEYS: tuple[str, ...] = _Line.__struct_fields__
"""What a record may have."""


class _Output(Output, omit_defaults=True):
    pass


class _SpentMetrics(Metrics, omit_defaults=True):
    pass


class _Recorded(Trace, omit_defaults=True):
    """A recorded trace is stored with its case: without what it leaves at its default, that takes a third less."""


_MALFORMED = "malformed_trace"
_MOST_ODDITIES = 100
_decode = msgspec.json.Decoder(_WrittenRecord).decode
_encode = msgspec.json.Encoder().encode


class Cases:
    """The cases of a file, re-iterable; each pass ends with every problem of the file."""

    def __init__(self, path: Path, *, lines: bool, strict: bool = False, must_expect: bool = False) -> None:
        self._path, self._lines, self._strict, self._must_expect = path, lines, strict, must_expect
        self._doubts = ProblemKinds()
        self.without_repeats: Path | None = None
        """The file, if the last pass has shown that no object in it has a key twice."""

    def unknown_keys(self) -> Iterable[Problem]:
        """Doubtful keys and values in the cases, as far as the last pass got."""
        return with_json_lines(self._doubts)

    def __iter__(self) -> Iterator[Case]:
        problems, occurrences = FirstProblems(str(self._path)), Occurrences(self._ambiguous)
        doubts = ProblemKinds()
        self._doubts = doubts
        try:
            for record, line, wrong in self._read():
                found = line
                if found is None:
                    if not wrong:
                        found, wrong = self._checked_record(record)
                    problems.add(*wrong)
                if found is None:
                    continue
                trace = _trace(found, UNDATED)
                for doubt in self._doubts_in(record, found, trace):
                    doubts.add(doubt)
                if not problems.count:
                    case = _case(found, trace) if line is not None else _parsed_case(found, trace)
                    case.occurrence = occurrences.of(case.id)
                    yield case
        except InputError as error:
            problems.add(*error.problems)
        if self._strict:
            problems.add(*self.oddities(), *doubts)
        if problems.count:
            raise InputError(with_json_lines(problems))

    def _read(self) -> Iterator[tuple[Record, _Line | None, list[Problem]]]:
        """Clean records of JSON Lines, as they are; all others as plain data or with their problems."""
        if not self._lines:
            for record in records_of(self._path, lines=False):
                yield record, None, []
            return
        once, self.without_repeats = True, None
        for index, (number, line) in enumerate(lines_of(self._path)):
            try:
                read = _decode(line)
                once = once and has_each_key_once(line, read)
                yield Record(None, index, number), read.filled(), []
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                once = False
                try:
                    yield Record(parsed_line(self._path, number, line), index, number), None, []
                except InputError as error:
                    yield Record(None, index, number), None, [*error.problems]
        if once:
            self.without_repeats = self._path

    def _doubts_in(self, record: Record, line: _Line, trace: Trace) -> Iterator[Problem]:
        doubts = doubts_in(line.messages, line.expected, must_expect=self._must_expect)
        for place, what in chain(doubts, _doubts_of_steps(line, trace)):
            key = bracketed((*record.at, *place))
            yield Problem(str(self._path), f"{what} (case {line.id!r})", record.line, key)

    def _checked_record(self, record: Record) -> tuple[_Line | None, list[Problem]]:
        from evalwright.formats.northstar.authored import checked  # the models of pydantic take long to import

        case, problems = checked(record, str(self._path))
        return (None if case is None else _line_of(case)), problems

    @cached_property
    def _ambiguous(self) -> set[int]:
        return ambiguous_ids(self._path, lines=self._lines)

    def oddities(self) -> list[Problem]:
        """The first rows whose ids do not distinguish them; with `strict` each pass ends by reporting them."""
        return list(islice(oddities(self._path, self._ambiguous, lines=self._lines), _MOST_ODDITIES))


def case_of(case: EvalCase) -> Case:
    """The canonical case of an authored one."""
    line = _line_of(case)
    return _parsed_case(line, _trace(line, datetime.now(UTC)))


def expectations_of(case: EvalCase) -> Case:
    """The canonical case of an authored one without its recorded run, which is judged along with it."""
    return Case(case.id, case.input, Expected(conversation=_line_of(case).expected), case.metadata)


def _line_of(case: EvalCase) -> _Line:
    expected = case.expected.model_dump(exclude_none=True)
    for limits in (expected, expected.get("trace", {})):
        limits.update({key: _finite(value) for key, value in limits.items() if isinstance(value, float)})
    return _Line(
        case.id,
        case.messages,
        case.input,
        msgspec.convert(expected, _Expected),
        _Metrics(_finite(case.metrics.latency_ms), _finite(case.metrics.cost_usd)),
        case.metadata,
        case.trace,
    )


def _finite(number: float | None) -> float | None:
    """Infinity as the largest finite number, which compares alike: stored as JSON it would become null."""
    return number if number is None or math.isnan(number) else max(-sys.float_info.max, min(sys.float_info.max, number))


def _case(line: _Line, trace: Trace) -> Case:
    """The case; data that cannot be stored is replaced visibly, or becomes the error of this case alone."""
    expected = Expected(conversation=line.expected)
    case = Case(line.id, line.input, expected, line.metadata)
    try:
        case.recorded = msgspec.Raw(_encode(trace))
        if line.input is not None:
            _encode(line.input)
        return case
    except (TypeError, ValueError, OverflowError, RecursionError):
        return _cleaned_case(line, trace.started_at)


def _parsed_case(line: _Line, trace: Trace) -> Case:
    """The case of a record in Python's own dialect of JSON, which allows NaN, infinities and lone surrogates."""
    return _case(line, trace) if _is_json(line) else _cleaned_case(line, trace.started_at)


def _is_json(line: _Line) -> bool:
    """Whether a run can store the record unchanged; measurements may be NaN, which counts as missing."""
    try:
        expected = msgspec.to_builtins(line.expected)
        parts = (line.id, line.messages, line.input, line.metadata, line.trace, expected)
        json.dumps(parts, allow_nan=False, ensure_ascii=False).encode()
        return True
    except (TypeError, ValueError, RecursionError):
        return False


def _cleaned_case(line: _Line, started: datetime) -> Case:
    """The case with its recorded parts made plain; an expectation that would change is the error of the case."""
    notes: list[str] = []
    changed: list[str] = []
    case_id = plain(line.id, "id", notes)
    try:
        plain(msgspec.to_builtins(line.expected), "expected", changed)
        if changed:
            raise ValueError(f"what is expected would be changed ({changed[0]})")
        clean = plain(msgspec.to_builtins(line), "case", notes)
        line = msgspec.convert(clean, _Line)
        trace = _trace(line, started)
        trace.extra["replaced"] = notes
        expected = Expected(conversation=line.expected)
        return Case(case_id, line.input, expected, line.metadata, recorded=msgspec.Raw(msgspec.json.encode(trace)))
    except (EvalwrightError, TypeError, ValueError, OverflowError, RecursionError) as error:
        trace = Trace(case_id, VARIANT, started, started, 0, None, Output())
        trace.error = TraceError("malformed_case", f"the case contains what JSON cannot hold: {error}")
        return Case(case_id, None, recorded=msgspec.Raw(msgspec.json.encode(trace)))


def _trace(line: _Line, started: datetime) -> Trace:
    """The trace without what follows from its messages: see `recorded_of`."""
    latency, cost = _measured_number(line.metrics.latency_ms), _measured_number(line.metrics.cost_usd)
    took = None if latency is None else int(latency)
    trace = _Recorded(
        line.id,
        VARIANT,
        started,
        started + timedelta(milliseconds=took) if took else started,
        took,
        None,
        _Output(),
        metrics=_SpentMetrics(cost_usd=cost),
        extra={RECORDING: {"messages": line.messages, "metrics": line.metrics}},
    )
    try:
        _take_steps(line, trace)
    except Exception as error:  # a problem of a trace is the error of its case
        trace.error = TraceError(_MALFORMED, str(error) or type(error).__name__)
    return trace


def _measured_number(number: float | None) -> float | None:
    """A number that totals and means can count; the original's evaluators compare any."""
    return number if number is not None and 0 <= number < 1e12 else None


def _take_steps(line: _Line, trace: Trace) -> None:
    payload = _given_trace(line)
    if payload and (run_id := _run_of(payload)) is not None:
        take_trace(payload, run_id, trace)


def _given_trace(line: _Line) -> dict[str, Any] | None:
    """The trace of a record; the original also reads one in its input."""
    if line.trace is None and isinstance(line.input, dict) and isinstance(line.input.get("trace"), dict):
        trace: dict[str, Any] = line.input["trace"]
        return trace
    return line.trace


def _run_of(payload: dict[str, Any]) -> Any:
    """The run of a trace that belongs to the case; None if there is none, and then no grader sees a trace."""
    run_id, runs = payload.get("run_id"), payload.get("runs")
    if run_id is None and isinstance(runs, list) and runs and isinstance(runs[0], dict):
        return runs[0].get("id")
    return run_id


def _doubts_of_steps(line: _Line, trace: Trace) -> Iterator[CaseDoubt]:
    """Problems of a record's trace: either the case becomes an error, or no grader reads the part."""
    place = ("trace",) if line.trace is not None else ("input", "trace")
    if trace.error is not None and trace.error.type == _MALFORMED:
        yield place, f"{trace.error.message}: the case will be an error"
    elif payload := _given_trace(line):
        if (run_id := _run_of(payload)) is None:
            yield place, "it has neither a run_id nor a first run with an id: no grader reads it"
        else:
            yield from (((*place, *inside), what) for inside, what in unread_trace_keys(payload, run_id))
