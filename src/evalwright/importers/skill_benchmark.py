"""Benchmarks of Agent Skills, as skill-creator stores them: `benchmark.json`, or the gradings of one iteration."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from evalwright.errors import InputError
from evalwright.files.numbers import is_number
from evalwright.importers.imported_records import Imported, ImportFindings, Read
from evalwright.importers.record_values import dictionaries
from evalwright.importers.sources import ImportNotes, json_document
from evalwright.importers.token_counts import recorded_milliseconds
from evalwright.importers.traces import TraceImporter
from evalwright.importers.transcript import Transcript

__all__ = ["SkillBenchmarks"]

_BENCHMARK, _GRADING, _METADATA = "benchmark.json", "grading.json", "eval_metadata.json"
_RUN = re.compile(r"run-(\d+)")


def read(files: Sequence[Path], reading: ImportFindings) -> Iterator[Imported]:
    """The runs of the files. A folder's benchmark.json contains all that its gradings do."""
    whole = [file for file in files if file.name == _BENCHMARK]
    gradings = [file for file in files if file.name == _GRADING]
    for file in whole or gradings or files:
        try:
            document = json_document(file, reading.mistakes)
        except InputError as error:
            for problem in error.problems:
                reading.mistakes.add(file, problem.message)
            continue
        benchmark = document if isinstance(document, dict) else {}
        if isinstance(benchmark.get("runs"), list):
            yield from _runs(file, benchmark, reading)
        elif isinstance(benchmark.get("expectations"), list):
            yield _grading(file, benchmark, reading.notes)
        else:
            reading.mistakes.add(file, "expected the runs of a benchmark, or the expectations of a grading")


def _runs(file: Path, document: Mapping[str, Any], reading: ImportFindings) -> Iterator[Imported]:
    about = document.get("metadata")
    if isinstance(about, dict) and isinstance(about.get("skill_name"), str):
        reading.name = about["skill_name"]
    for i, run in enumerate(document["runs"]):
        result = run.get("result") if isinstance(run, dict) else None
        if not isinstance(result, dict) or "eval_id" not in run or not isinstance(run.get("configuration"), str):
            reading.mistakes.add(file, "expected a run with eval_id, configuration and result", key=f"runs[{i}]")
            continue
        folder = file.parent / f"eval-{run['eval_id']}"
        prompt = str(_beside(folder / _METADATA).get("prompt") or run.get("eval_name") or "")
        number = run.get("run_number")
        trial = number - 1 if isinstance(number, int) and number > 0 else None
        yield _record(file, str(run["eval_id"]), run["configuration"], trial, prompt, {**run, **result}, reading.notes)


def _grading(file: Path, document: Mapping[str, Any], notes: ImportNotes) -> Imported:
    """One grading, identified by its place: `eval-ID/VARIANT/run-N/grading.json`, where the last folder may be
    missing.

    Times and tokens may be in `timing.json` beside it, the id of the eval in the `eval_metadata.json` of its folder.
    """
    run = _RUN.fullmatch(file.parent.name)
    variant = file.parent.parent if run else file.parent
    summary, timing = document.get("summary"), document.get("timing")
    took = {**_beside(file.parent / "timing.json"), **(timing if isinstance(timing, dict) else {})}
    values = {
        "tokens": took.get("total_tokens"),
        **document,
        **(summary if isinstance(summary, dict) else {}),
        "time_seconds": took.get("executor_duration_seconds", took.get("total_duration_seconds")),
    }
    trial = int(run[1]) - 1 if run else None
    about = _beside(variant.parent / _METADATA)
    eval_id = about.get("eval_id")
    case = str(eval_id) if isinstance(eval_id, str | int) else variant.parent.name.removeprefix("eval-")
    return _record(file, case, variant.name, trial, str(about.get("prompt") or ""), values, notes)


def _beside(file: Path) -> Mapping[str, Any]:
    """What a file beside a grading says; empty if there is none."""
    try:
        document = json_document(file)
    except InputError:
        return {}
    return document if isinstance(document, dict) else {}


def _record(
    file: Path, case: str, variant: str, trial: int | None, prompt: str, values: Mapping[str, Any], notes: ImportNotes
) -> Imported:  # fmt: skip
    talk = Transcript()
    talk.latency_ms = recorded_milliseconds(values.get("time_seconds"), notes, unit=1000)
    rate = _number(values.get("pass_rate"))
    numbers = {"pass_rate": rate, "tokens": _number(values.get("tokens"))}
    talk.custom = {name: number for name, number in numbers.items() if number is not None}
    if rate is not None and values.get("total") != 0:
        talk.custom["reward"] = 1.0 if rate >= 1 else 0.0
    scores = [
        {
            "name": str(dictionary.get("text", "")),
            "passed": dictionary["passed"] if isinstance(dictionary.get("passed"), bool) else None,
            "score": None,
            "reason": dictionary.get("evidence"),
        }
        for dictionary in dictionaries(values.get("expectations"))
    ]
    origin = {"imported_from": {"file": file.name, "format": "skill-benchmark"}, "recorded_scores": scores}
    return Imported(file, case, {"user_message": prompt}, talk.trace(variant, origin), trial=trial)


def _number(value: Any) -> float | None:
    return float(value) if is_number(value) else None


class SkillBenchmarks(TraceImporter):
    """A `benchmark.json` of skill-creator, or a folder with the gradings of one iteration."""

    read: ClassVar[Read] = staticmethod(read)
