"""Results of tau2-bench: a `results.json` with its simulations in it, or in the folder `simulations` beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from evalwright.files.plain import mapping_or_empty
from evalwright.importers.blocks import texts_of
from evalwright.importers.document_parts import document_bytes, items_of, object_parts
from evalwright.importers.imported_records import Imported, ImportFindings, Read
from evalwright.importers.record_values import dictionaries
from evalwright.importers.sources import ImportNotes, Mistakes, json_document, json_value, mended, stem
from evalwright.importers.token_counts import (
    Tokens,
    recorded_dollars,
    recorded_milliseconds,
    recorded_time,
    token_count,
)
from evalwright.importers.traces import TraceImporter
from evalwright.importers.transcript import Transcript, arguments_of
from evalwright.model.trace import TraceError

__all__ = ["Tau2Results"]

_NOT_EVALUATED = ("infrastructure_error", "context_window_exceeded", "unexpected_error")
"""How simulations end that say nothing about the agent: tau2-bench leaves them out of its metrics, too."""
_SAID = ("communicate_info", "nl_assertions")
_REGULAR = ("agent_stop", "user_stop")
_CHECKS = (
    ("env_assertions", "env_assertion", "met", "reward", "message"),
    ("action_checks", "action", "action_match", "action_reward", ""),
    ("nl_assertions", "nl_assertion", "met", "", "justification"),
    ("communicate_checks", "info", "met", "", "justification"),
)
"""Lists of checks, and in each check its subject, whether it passed, its score and its reason."""
_ACTIONS: dict[str, Any] = {"name": "actions", "type": "tool_calls_match", "config": {"expected_from": "actions"}}


def read(files: Sequence[Path], reading: ImportFindings) -> Iterator[Imported]:
    """The simulations in the files, in their order."""
    runs = [_Run(file, _about(file)) for file in files]
    domains = {run.domain for run in runs}
    reading.name = domains.pop() if len(domains) == 1 else "tau2"
    called = Counter(name for name, _ in {(run.model, run.conditions) for run in runs})
    for run in runs:
        yield from run.records(f"{run.model} ({stem(run.file)})" if called[run.model] > 1 else run.model, reading)


def _about(file: Path) -> dict[str, Any]:
    """What was tested, and its tasks; nothing if they cannot be read, which is a mistake when simulations are."""
    with document_bytes(file) as data:
        try:
            parts = _parts(data)
            return {key: json_value(bytes(parts[key])) for key in ("info", "tasks") if key in parts}
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return {}


def _parts(data: memoryview, mistakes: Mistakes | None = None) -> dict[str, msgspec.Raw]:
    try:
        return object_parts(data)
    except msgspec.DecodeError as error:
        return object_parts(memoryview(mended(bytes(data), error, mistakes)))


class _Run:
    """One file of results: what was tested, and how."""

    def __init__(self, file: Path, about: Mapping[str, Any]) -> None:
        info = mapping_or_empty(about.get("info"))
        agent, user = mapping_or_empty(info.get("agent_info")), mapping_or_empty(info.get("user_info"))
        self.file = file
        self.domain: str = str(mapping_or_empty(info.get("environment_info")).get("domain_name") or "tau2")
        self.model: str = str(agent.get("llm") or agent.get("implementation") or "recorded")
        self.conditions: bytes = msgspec.json.encode([agent, user.get("llm")], order="sorted")
        """Runs that differ in these are no trials of each other, though they may be of one model."""
        self._tasks = {str(task.get("id")): task for task in dictionaries(about.get("tasks"))}

    def records(self, variant: str, reading: ImportFindings) -> Iterator[Imported]:
        for key, simulation in self._simulations(reading):
            if not isinstance(simulation, dict) or simulation.get("task_id") is None:
                reading.mistakes.add(self.file, "expected a simulation with a task_id", key=key)
            elif not isinstance(simulation.get("messages"), list):
                reading.notes.lose("simulations without messages, such as those of voices")
            else:
                record = self._record(simulation, variant, reading.notes)
                if record.expected and record.trace and "reward" in record.trace.metrics.custom:
                    reading.evaluators = [_ACTIONS]
                yield record

    def _simulations(self, reading: ImportFindings) -> Iterator[tuple[str, Any]]:
        key = ""
        with document_bytes(self.file) as data:
            try:
                parts = _parts(data, reading.mistakes)
                key = "simulations"
                for position, item in enumerate(items_of(parts.get("simulations"))):
                    key = f"simulations[{position}]"
                    yield key, json_value(bytes(item), reading.mistakes)
            except RecursionError:
                reading.mistakes.add(self.file, "is nested too deeply", key=key)
                return
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                reading.mistakes.add(self.file, f"cannot be read: {error}", key=key)
                return
        if "simulations" not in parts:
            for file in sorted((self.file.parent / "simulations").glob("*.json")):
                yield file.name, json_document(file, reading.mistakes)

    def _record(self, simulation: Mapping[str, Any], variant: str, notes: ImportNotes) -> Imported:
        task = str(simulation["task_id"])
        talk = Transcript()
        for message in dictionaries(simulation["messages"]):
            _message(talk, message, notes)
        _outcome(talk, simulation, notes)
        scores = [*_scores(mapping_or_empty(simulation.get("reward_info")))]
        extra = {
            "imported_from": {"file": self.file.name, "format": "tau2", "id": simulation.get("id")},
            **({"recorded_scores": scores} if scores else {}),
        }
        trial = simulation.get("trial")
        known = mapping_or_empty(self._tasks.get(task))
        criteria = mapping_or_empty(known.get("evaluation_criteria"))
        more = {"user_scenario": known.get("user_scenario"), **{key: criteria.get(key) for key in _SAID}}
        actions = _actions(criteria)
        return Imported(
            self.file,
            f"{self.domain}/{task}",
            {"user_message": talk.user_message or ""},
            talk.trace(variant, extra),
            trial if isinstance(trial, int) else None,
            {"facts": {"actions": actions}} if actions else {},
            {"domain": self.domain, **{key: value for key, value in more.items() if value}},
            record=simulation,
        )


def _message(talk: Transcript, message: Mapping[str, Any], notes: ImportNotes) -> None:
    at, text, calls = (
        recorded_time(message.get("timestamp"), notes),
        texts_of(message.get("content"), notes),
        message.get("tool_calls"),
    )
    talk.at(at)
    match message.get("role"):
        case "assistant":
            turn = talk.turn(at=at)
            if text:
                turn.add_text(text)
            for call in dictionaries(calls):
                talk.calls_in(turn, str(call.get("name")), call.get("id"), arguments_of(call.get("arguments")), at)
            usage = mapping_or_empty(message.get("usage"))
            counts = (token_count(usage.get(f"{kind}_tokens"), notes) for kind in ("prompt", "completion"))
            talk.tokens += Tokens(*counts)
        case "tool" if message.get("requestor") == "user":
            notes.lose("results of calls by the simulated user")
        case "tool" if isinstance(message.get("tool_messages"), list):
            for dictionary in dictionaries(message["tool_messages"]):
                _message(talk, {"role": "tool", **dictionary}, notes)
        case "tool":
            talk.result(message.get("id"), text, at=at, failed=bool(message.get("error")))
        case "user":
            if number := len([*dictionaries(calls)]):
                notes.lose("calls by the simulated user", number)
            if text or not number:
                talk.user(text)
        case _:
            talk.system(text)


def _outcome(talk: Transcript, simulation: Mapping[str, Any], notes: ImportNotes) -> None:
    talk.at(recorded_time(simulation.get("start_time"), notes))
    talk.at(recorded_time(simulation.get("end_time"), notes))
    talk.latency_ms = recorded_milliseconds(simulation.get("duration"), notes, unit=1000)
    # 0 is also what tau2-bench writes for a model whose price it does not know
    talk.tokens.cost = recorded_dollars(simulation.get("agent_cost"), notes) or None
    if paid := recorded_dollars(simulation.get("user_cost"), notes):
        talk.custom["user_cost_usd"] = paid
    reward = mapping_or_empty(simulation.get("reward_info"))
    for name, value in {"reward": reward.get("reward"), **mapping_or_empty(reward.get("reward_breakdown"))}.items():
        if isinstance(value, int | float):
            talk.custom[name] = float(value)
    ended = simulation.get("termination_reason")
    if ended in _NOT_EVALUATED:
        message = mapping_or_empty(simulation.get("info")).get("error")
        talk.error = TraceError(str(ended), str(message or "the simulation was not evaluated"))
        talk.custom.pop("reward", None)
    elif ended is not None and ended not in _REGULAR:
        talk.extra["stopped"] = ended


def _scores(reward: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    checked = mapping_or_empty(reward.get("db_check"))
    if checked:
        yield _score("db_check", checked.get("db_match"), checked.get("db_reward"), None)
    for listed, subject, passed, score, reason in _CHECKS:
        for dictionary in dictionaries(reward.get(listed)):
            about = dictionary.get(subject)
            about = about.get("name") or about.get("func_name") if isinstance(about, dict) else about
            yield _score(f"{subject}: {about}", dictionary.get(passed), dictionary.get(score), dictionary.get(reason))


def _score(name: str, passed: Any, score: Any, reason: Any) -> dict[str, Any]:
    number = score if isinstance(score, int | float) else None
    return {"name": name, "passed": passed if isinstance(passed, bool) else None, "score": number, "reason": reason}


def _actions(criteria: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The reference calls of the agent; the user may have some, too."""
    return [
        {"name": call.get("name"), "arguments": arguments_of(call.get("arguments"))}
        for call in dictionaries(criteria.get("actions"))
        if call.get("requestor", "assistant") == "assistant"
    ]


class Tau2Results(TraceImporter):
    """Results of tau2-bench."""

    read: ClassVar[Read] = staticmethod(read)
