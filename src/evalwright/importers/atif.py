"""Trajectories of Harbor's Agent Trajectory Interchange Format, ATIF-v1.0 to v1.8, and trial folders of Harbor."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from evalwright.importers.blocks import texts_of
from evalwright.importers.imported_records import Imported, ImportFindings, Read
from evalwright.importers.placed_records import ImportRecord, placed_records
from evalwright.importers.record_values import described, dictionaries
from evalwright.importers.sources import ImportNotes, Mistakes, document, json_document, json_value, record_key, stem
from evalwright.importers.token_counts import Tokens, recorded_dollars, recorded_time, token_count
from evalwright.importers.traces import TraceImporter
from evalwright.importers.transcript import Transcript, arguments_of
from evalwright.model.trace import TraceError

__all__ = ["Atif"]

_VERSION = re.compile(r"ATIF-v1\.(\d+)")
_NEWEST = 8
_OF_AGENTS = ("tool_calls", "observation", "metrics", "reasoning_content")
"""Keys that only steps of the agent have; a step of the system may have an observation."""


def read(files: Sequence[Path], reading: ImportFindings) -> Iterator[Imported]:
    """The trajectories in the files; continuations are part of the trajectory that they continue."""
    trajectories = [file for file in files if not _belongs_to_a_trial(file)]
    continued = {_continuation(file) for file in trajectories}
    tasks: Counter[str] = Counter()
    for file in trajectories:
        if file in continued:
            continue
        for record in placed_records(file, reading.mistakes):
            trajectory = _trajectory_of(file, record, trajectories, reading)
            if trajectory is None:
                continue
            if (trial := _trial_of(file, reading.mistakes)) is not None:
                _apply(trajectory, trial, tasks)
            yield trajectory


def _belongs_to_a_trial(file: Path) -> bool:
    return file.name in ("result.json", "config.json") and (file.parent / "agent" / "trajectory.json").exists()


def _continuation(file: Path) -> Path | None:
    """The file that continues the trajectory in this one. What cannot be read is reported when it is read in full."""
    data = document(file)
    if b"continued_trajectory_ref" not in data:
        return None
    try:
        return _next(file, json_value(data))
    except (ValueError, RecursionError):
        return None


def _next(file: Path, document: Any) -> Path | None:
    named = document.get("continued_trajectory_ref") if isinstance(document, dict) else None
    return file.parent / named if isinstance(named, str) else None


def _trajectory_of(
    file: Path, record: ImportRecord, trajectories: list[Path], reading: ImportFindings
) -> Imported | None:
    """A record as a trajectory, with what the files say that continue it; None if something in it is wrong."""
    trajectory = _Trajectory(file, reading)
    read: list[Path] = []
    while (
        trajectory.read(record)
        and (following := trajectory.goes_on(trajectories)) is not None
        and following not in read
    ):
        read.append(following)
        record = ImportRecord(json_document(following, reading.mistakes))
    return None if len(reading.mistakes) else trajectory.record()


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a trajectory is, for the mistakes in it."""

    file: Path
    record: ImportRecord
    mistakes: Mistakes

    def add(self, message: str, key: str = "") -> None:
        self.mistakes.add(self.file, message, self.record.line, self.record.below(key))


class _Trajectory:
    """One trajectory, with its continuations."""

    def __init__(self, file: Path, reading: ImportFindings) -> None:
        self._file, self._mistakes, self._notes = file, reading.mistakes, reading.notes
        self._talk = Transcript()
        self._steps = Tokens()
        self._at = file
        self._first: dict[str, Any] = {}
        self._last: dict[str, Any] = {}
        """The record that was read last; its final metrics are those of everything up to its end."""

    def read(self, record: ImportRecord) -> bool:
        """Add a record; False for one that is no trajectory at all."""
        place, document = _Place(self._at, record, self._mistakes), record.value
        if not isinstance(document, dict):
            place.add(f"expected a trajectory, found {described(document)}")
            return False
        self._first, self._last = self._first or document, document
        _check_version(place, document, self._notes)
        self._steps += _read_steps(self._talk, place, document, "", self._notes)
        agents: set[Any] = set()
        for number, other in enumerate(dictionaries(document.get("subagent_trajectories"))):
            key = f"subagent_trajectories[{number}]"
            id = record_key(other.get("trajectory_id"))
            if id in agents:
                place.add(f"another subagent has the id {id!r}", f"{key}.trajectory_id")
            agents.add(id)
            below = Transcript()
            tokens = _read_steps(below, place, other, f"{key}.", self._notes)
            below.tokens = _final(other, self._notes) or tokens
            self._talk.subagent(str(id or _agent_of(other).get("name") or f"subagent {number + 1}"), below)
        self._steps += self._talk.tokens
        self._talk.tokens = Tokens()
        return True

    def goes_on(self, files: Sequence[Path]) -> Path | None:
        """The file that continues it, if it is among `files`."""
        following = _next(self._at, self._last)
        if following is None:
            return None
        if following not in files:
            message = f"goes on in {following.name}, which was not given"
            self._talk.extra.setdefault("warnings", []).append(message)
            self._notes.add_text(f"{self._at.name} {message}")
            return None
        self._at = following
        return following

    def record(self) -> Imported:
        document = self._first
        self._talk.tokens = _final(self._last, self._notes) or self._steps
        agent = _agent_of(document)
        extra = {
            "imported_from": {"file": self._file.name, "format": "atif"},
            "agent": {key: agent[key] for key in ("name", "version", "model_name") if agent.get(key) is not None},
        }
        id = document.get("trajectory_id") or document.get("session_id") or stem(self._file)
        question = {"user_message": self._talk.user_message or ""}
        return Imported(self._file, str(id), question, self._talk.trace("recorded", extra))


def _check_version(place: _Place, document: dict[str, Any], notes: ImportNotes) -> None:
    version = document.get("schema_version")
    read = _VERSION.fullmatch(version) if isinstance(version, str) else None
    if read is None:
        place.add(f"expected ATIF-v1.0 to ATIF-v1.{_NEWEST}, found {version!r}", "schema_version")
    elif int(read[1]) > _NEWEST:
        notes.add_text(
            f"{place.file.name} is of {version}, newer than ATIF-v1.{_NEWEST}: what is new in it is left out"
        )


def _agent_of(document: dict[str, Any]) -> dict[str, Any]:
    agent = document.get("agent")
    return agent if isinstance(agent, dict) else {}


def _read_steps(talk: Transcript, place: _Place, document: dict[str, Any], below: str, notes: ImportNotes) -> Tokens:
    """Add the steps to a conversation and return the sums of their metrics."""
    steps = document.get("steps")
    total = Tokens()
    if not isinstance(steps, list) or not steps:
        place.add("expected at least one step", f"{below}steps")
        return total
    for number, step in enumerate(steps):
        key = f"{below}steps[{number}]"
        if not isinstance(step, dict):
            place.add(f"expected a step, found {described(step)}", key)
            continue
        if step.get("step_id") is True or step.get("step_id") != number + 1:
            place.add(f"expected {number + 1}, found {step.get('step_id')!r}", f"{key}.step_id")
        at = recorded_time(step.get("timestamp"), notes)
        talk.at(at)
        text = texts_of(step.get("message"), notes)
        source = step.get("source")
        foreign = [name for name in _OF_AGENTS if step.get(name) and source != "agent"]
        if foreign and not (source == "system" and foreign == ["observation"]):
            place.add(f"only a step of the agent has {' and '.join(foreign)}", key)
            continue
        if source == "agent":
            _agent_step(talk, step, text, at, place, key, notes)
            if not step.get("is_copied_context"):  # counted in the trajectory that it was copied from
                total += _tokens(step.get("metrics"), "", notes)
        elif source == "user":
            talk.user(text)
        elif source == "system":
            talk.system(text)
            _results(talk, step, [], at, place, key, notes)
        else:
            place.add(f"expected system, user or agent, found {described(source)}", f"{key}.source")
    return total


def _agent_step(
    talk: Transcript,
    step: dict[str, Any],
    text: str,
    at: Any,
    place: _Place,
    key: str,
    notes: ImportNotes,
) -> None:
    turn = talk.turn(None, at, step.get("model_name") if isinstance(step.get("model_name"), str) else None)
    if text:
        turn.add_text(text)
    if step.get("reasoning_content"):
        turn.think(texts_of(step["reasoning_content"], notes))
    ids = []
    for call in dictionaries(step.get("tool_calls")):
        id = call.get("tool_call_id")
        ids.append(id)
        talk.calls_in(turn, str(call.get("function_name", "tool")), id, arguments_of(call.get("arguments")), at)
    _results(talk, step, ids, at, place, key, notes)


def _results(
    talk: Transcript, step: dict[str, Any], ids: list[Any], at: Any, place: _Place, key: str, notes: ImportNotes,
) -> None:  # fmt: skip
    observation = step.get("observation")
    for number, result in enumerate(
        dictionaries(observation.get("results") if isinstance(observation, dict) else None)
    ):
        call = result.get("source_call_id")
        if call is not None and call not in ids:
            place.add(f"{call!r} is not a call of this step", f"{key}.observation.results[{number}].source_call_id")
            continue
        content = result.get("content")
        shown = content if isinstance(content, dict) else texts_of(content, notes)
        if call is None and len(ids) == 1:
            call = ids[0]
        talk.result(call, shown, name="observation" if call is None else None, at=at)


def _final(document: dict[str, Any], notes: ImportNotes) -> Tokens | None:
    """The totals that the trajectory states."""
    metrics = document.get("final_metrics")
    tokens = _tokens(metrics, "total_", notes)
    return tokens if tokens != Tokens() else None


def _tokens(metrics: Any, prefix: str, notes: ImportNotes) -> Tokens:
    if not isinstance(metrics, dict):
        return Tokens()

    def number(key: str) -> int | None:
        return token_count(metrics.get(f"{prefix}{key}"), notes)

    return Tokens(
        number("prompt_tokens"),
        number("completion_tokens"),
        cache_read=number("cached_tokens"),
        cost=recorded_dollars(metrics.get(f"{prefix}cost_usd"), notes),
    )


def _trial_of(file: Path, mistakes: Mistakes) -> dict[str, Any] | None:
    """The outcome of the trial folder that a trajectory is in."""
    result = file.parent.parent / "result.json"
    if file.name != "trajectory.json" or file.parent.name != "agent" or not result.exists():
        return None
    trial = json_document(result, mistakes)
    if not isinstance(trial, dict):
        mistakes.add(result, f"expected the result of a trial, found {described(trial)}")
        return None
    return trial


def _apply(record: Imported, trial: dict[str, Any], tasks: Counter[str]) -> None:
    task = trial.get("task_name")
    if isinstance(task, str) and task:
        record.case_id, record.trial = task, tasks[task]
        tasks[task] += 1
    trace = record.trace
    if trace is None:
        return
    verifier = trial.get("verifier_result")
    rewards = verifier.get("rewards") if isinstance(verifier, dict) else None
    for name, value in (rewards if isinstance(rewards, dict) else {}).items():
        if isinstance(value, int | float):
            trace.metrics.custom[name] = float(value)
    error = trial.get("exception_info")
    if isinstance(error, dict):
        kind = str(error.get("exception_type") or "trial_error")
        trace.error = TraceError(kind, str(error.get("exception_message") or error.get("message") or kind))


class Atif(TraceImporter):
    """Harbor's trajectories, ATIF-v1.0 to v1.8, and its trial folders."""

    read: ClassVar[Read] = staticmethod(read)
