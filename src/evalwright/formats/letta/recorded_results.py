"""Recorded results of Letta suites, to be evaluated without an agent."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from evalwright.errors import InputError, Problem
from evalwright.files.jsonl import decoded, lines_of
from evalwright.files.key_paths import as_written
from evalwright.files.paths import near_file, seen_from_here
from evalwright.files.plain import mapping_or_empty

__all__ = ["Cache", "read_cache"]

Recording = dict[str, Any]
"""`sample_id`, `input` (None if unknown), `model`, `trajectory`, `agent_id`, `usage`, `blocks`, and `error`: why there
is no trajectory, if the agent failed and the recording says so."""


_RUN = re.compile(r"run_\d+(\.jsonl)?\Z")


class Cache:
    """Recordings, looked up by sample and model."""

    def __init__(self) -> None:
        self._by_sample: dict[str, dict[str | None, Recording]] = {}

    def add(self, recording: Recording) -> None:
        self._by_sample.setdefault(str(recording["sample_id"]), {})[recording["model"]] = recording

    def __len__(self) -> int:
        return sum(map(len, self._by_sample.values()))

    def find(self, sample_id: str, model: str | None) -> Recording | None:
        """The recording of a sample with a model; without a model, the only one there is."""
        of_sample = self._by_sample.get(sample_id, {})
        if model in of_sample:
            return of_sample[model]
        return next(iter(of_sample.values())) if model is None and len(of_sample) == 1 else None

    def inputs(self, sample_id: str) -> list[Any]:
        """The inputs that were recorded for a sample, if they are known."""
        return [r["input"] for r in self._by_sample.get(sample_id, {}).values() if r["input"] is not None]


def read_cache(path: Path) -> Cache:
    """The results in a folder or file that letta-evals wrote, or in a run folder of ours. Raises InputError."""
    cache = Cache()
    for recording in _recordings(path):
        cache.add(recording)
    return cache


def _recordings(path: Path) -> Iterator[Recording]:
    shown = str(seen_from_here(path))
    if path.is_file():
        return _in_file(path, path.parent)
    if not path.is_dir():
        raise InputError(Problem(shown, f"there is no such file or folder of recorded results{near_file(path)}"))
    if (path / "plan.json").is_file():
        return _ours(path)
    if (path / "results.jsonl").is_file():
        return _in_file(path / "results.jsonl", path)
    files = sorted(p for p in path.rglob("*.jsonl"))
    runs = sorted({part for file in files for part in file.relative_to(path).parts if _RUN.match(part)})
    if len(runs) > 1:
        named = ", ".join(name.removesuffix(".jsonl") for name in runs)
        raise InputError(Problem(shown, f"contains several runs, expected one of them: {named}"))
    if not files:
        raise InputError(
            Problem(shown, "contains no recorded results: expected results.jsonl, or suite.json with *.jsonl")
        )
    return (recording for file in files for recording in _in_file(file, path))


def _in_file(file: Path, folder: Path) -> Iterator[Recording]:
    inputs = _inputs(folder / "suite.json") or _inputs(folder.parent / "suite.json")
    return _read(file, lambda record: _result(record, inputs))


def _read(file: Path, recording_of: Callable[[dict[str, Any]], Recording | None]) -> Iterator[Recording]:
    """The content of each line of a file. After the last line, raises InputError that lists every damaged one."""
    problems = []
    for number, line in lines_of(file):
        try:
            recording = recording_of(_object(line))
        except ValueError as error:
            problems.append(Problem(str(seen_from_here(file)), str(error), number))
            continue
        if recording is not None:
            yield recording
    if problems:
        raise InputError(problems)


def _object(text: bytes) -> dict[str, Any]:
    try:
        record = decoded(text)
    except ValueError as error:
        raise ValueError(f"malformed JSON: {error}") from None
    if not isinstance(record, dict):
        raise ValueError(f"expected an object, found {as_written(record)}")
    return record


def _result(record: dict[str, Any], inputs: dict[str, Any]) -> Recording | None:
    kind = record.get("type")
    if kind in ("header", "summary"):
        return None
    result = record.get("result") if kind == "result" else record
    if not isinstance(result, dict):
        raise ValueError(f"result: expected an object, found {as_written(result)}")
    return _recording(result, inputs)


def _inputs(suite: Path) -> dict[str, Any]:
    """Inputs by sample id, for the newer layout, whose result lines do not repeat them."""
    if not os.path.isfile(suite):
        return {}
    try:
        samples = _object(suite.read_bytes()).get("samples")
    except ValueError as error:
        raise InputError(Problem(str(seen_from_here(suite)), str(error))) from None
    named = samples if isinstance(samples, list) else []
    return {str(s.get("id")): s.get("input") for s in named if isinstance(s, dict)}


def _recording(result: dict[str, Any], inputs: dict[str, Any]) -> Recording:
    sample = mapping_or_empty(result.get("sample"))
    sample_id = result.get("sample_id", sample.get("sample_id", sample.get("id")))
    model = result.get("model_name", result.get("model_handle"))
    return {
        "sample_id": _id(sample_id),
        "input": sample.get("input", inputs.get(str(sample_id))),
        "model": model if isinstance(model, str) else None,
        "trajectory": _turns(result.get("trajectory")),
        "agent_id": result.get("agent_id"),
        "usage": result.get("agent_usage"),
        "blocks": _blocks(result.get("agent_state")),
        "error": None if result.get("trajectory") else _error(result.get("error")),
    }


def _id(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError(f"expected the id of a sample, found {as_written(value)}")
    return value


def _turns(trajectory: Any) -> list[list[dict[str, Any]]]:
    """A trajectory as it was recorded; one of another shape is damaged, and its rest is not used."""
    turns = [] if trajectory is None else trajectory
    if not isinstance(turns, list) or not all(
        isinstance(turn, list) and all(isinstance(message, dict) for message in turn) for turn in turns
    ):
        raise ValueError("trajectory: expected a list of turns, each a list of messages")
    return turns


def _error(record: Any) -> str | None:
    """Why the agent returned nothing; a failure in judging does not count."""
    if isinstance(record, dict) and record.get("category", "target") == "target":
        return str(record.get("message") or record)
    return record if isinstance(record, str) and record else None


def _blocks(state: Any) -> dict[str, str] | None:
    if not isinstance(state, dict):
        return None
    memory = state.get("memory")
    blocks = state.get("blocks") or (memory.get("blocks") if isinstance(memory, dict) else None) or []
    named = [block for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []
    return {str(block.get("label")): str(block.get("value") or "") for block in named}


def _ours(folder: Path) -> Iterator[Recording]:
    return _read(folder / "traces.jsonl", _read_trace)


def _read_trace(trace: dict[str, Any]) -> Recording:
    extra, error = mapping_or_empty(trace.get("extra")), mapping_or_empty(trace.get("error"))
    if trace.get("trial"):
        raise InputError("the recorded run contains several runs of each sample, expected one")
    return {
        "sample_id": _id(trace.get("case_id")),
        "input": trace.get("input"),
        "model": extra.get("model"),
        "trajectory": _turns(extra.get("turns")),
        "agent_id": extra.get("agent_id"),
        "usage": extra.get("usage"),
        "blocks": extra.get("blocks"),
        "error": error.get("message"),
    }
