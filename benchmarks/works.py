"""What the benchmarks do with evalwright: each function is one piece of work, through public interfaces only."""

from __future__ import annotations

import json
import resource
import shutil
import sys
import time
from collections import deque
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

__all__ = [
    "Clock",
    "bare_run",
    "compare_runs",
    "decode_only",
    "installed",
    "load_cases",
    "passes",
    "re_evaluate",
    "run_cases",
    "run_command",
    "sleep_only",
    "stored_run",
    "write_suite",
]

_WAIT = "    await asyncio.sleep({})\n"
_TARGET = """import asyncio


async def echo(case, variant):
{wait}    return {{"final_answer": case["input"]["prompt"]}}


async def worse(case, variant):
    silent = case["id"].endswith(("00", "20", "40", "60", "80"))
    return {{"final_answer": "" if silent else case["input"]["prompt"]}}
"""


class Clock:
    """Wall and CPU seconds (this process and the children it waited for) of a `with` block."""

    wall = cpu = 0.0

    def __enter__(self) -> Clock:
        self._wall, self._cpu = time.perf_counter(), _cpu()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall, self.cpu = time.perf_counter() - self._wall, _cpu() - self._cpu


def _cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def write_suite(
    folder: Path,
    cases: Path,
    checks: list[dict[str, Any]],
    *,
    concurrency: int = 32,
    seconds: float = 0.0,
    answer: str = "echo",
) -> Path:
    """An `eval.yaml` over a JSON Lines or YAML dataset, with a target that waits `seconds` and echoes the prompt.

    With `answer="worse"` it says nothing in every twentieth case.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "echo_target.py").write_text(_TARGET.format(wait=_WAIT.format(seconds) if seconds else ""))
    (folder / "seconds").write_text(str(seconds))
    suite = folder / "eval.yaml"
    document = {
        "eval": {"name": "bench"},
        "dataset": {"type": "yaml" if cases.suffix in (".yaml", ".yml") else "jsonl", "path": str(cases)},
        "systems": [{"name": "main", "adapter": "python_function", "target": f"echo_target:{answer}"}],
        "evaluators": checks,
        "run": {"max_concurrency": concurrency},
        "output": [{"type": "local_files", "path": str(folder / "runs")}],
    }
    suite.write_text(json.dumps(document))
    return suite


def _data_of(suite: Path) -> Path:
    """The folder of the suite's dataset: a suite reads nothing outside of its own folder unless that is allowed."""
    return Path(json.loads(suite.read_text())["dataset"]["path"]).resolve().parent


def load_cases(suite: Path) -> tuple[int, Clock]:
    """Load a suite and check every case of it."""
    from evalwright.formats.loading import load_suite

    with Clock() as clock:
        count = sum(1 for _ in load_suite(suite, "evalh", options={"allow_outside": [_data_of(suite)]}).cases)
    return count, clock


def run_cases(suite: Path) -> tuple[Path, Clock]:
    """Run a suite into a new run folder; its cases are read and checked inside of the clock."""
    from evalwright.formats.loading import load_suite
    from evalwright.run.start import run_suite
    from evalwright.session import Session

    loaded = load_suite(suite, "evalh", options={"allow_outside": [_data_of(suite)]})
    _import_parts_of(loaded)
    with Session(owns_process=True, stdout="keep"), Clock() as clock:  # as the command line works
        outcome = run_suite(loaded)
    return outcome.run_dir, clock


def _import_parts_of(suite: Any) -> None:
    """Import what a suite or a plan uses: clocks leave imports out."""
    import yaml  # noqa: F401 - summaries are written with it

    from evalwright.registry import load

    for spec in suite.evaluators:
        load("evaluators", spec.type)
    for variant in suite.variants:
        load("targets", variant.adapter)


def run_command(suite: Path) -> tuple[Path, Clock]:
    """The same as users run it, from the start of the command line to its exit."""
    from evalwright.cli import main

    sys.argv = ["evalwright", "run", str(suite), "--quiet", "--allow-outside", str(_data_of(suite))]
    with Clock() as clock, suppress(SystemExit):
        main()
    return max((suite.parent / "runs").iterdir()), clock


def re_evaluate(run_dir: Path) -> Clock:
    """Judge every stored trace of a run again."""
    from evalwright.run.re_evaluation import re_evaluate
    from evalwright.run.stored_run import open_run
    from evalwright.session import Session

    _import_parts_of(open_run(run_dir)[1])
    with Session(owns_process=True, stdout="keep"), Clock() as clock:  # as the command line works
        re_evaluate(run_dir)
    return clock


def compare_runs(before: Path, after: Path) -> tuple[Any, Clock]:
    """Compare two stored runs."""
    from evalwright.decisions.comparison import compare
    from evalwright.run.stored_run import open_run

    with Clock() as clock:
        comparison = compare(*open_run(before), *open_run(after))
    return comparison, clock


def stored_run(folder: Path, checks: list[dict[str, Any]], traces: Path) -> Path:
    """A run folder that holds the traces of a JSON Lines file and no judgements yet."""
    import msgspec

    from evalwright.model.plan import EvaluatorSpec, Plan, Variant
    from evalwright.model.snapshot import Case
    from evalwright.model.trace import Trace
    from evalwright.stores.local_files import LocalFiles

    decode = msgspec.json.Decoder(Trace).decode
    plan = Plan(
        run_id="stored",
        name="bench",
        dialect="evalh",
        started_at=datetime(2026, 3, 1, tzinfo=UTC),
        config_path="eval.yaml",
        config_hash="0" * 64,
        cases_total=0,
        variants=[Variant("main", "replay")],
        evaluators=[EvaluatorSpec(check["name"], check["type"], check.get("config", {})) for check in checks],
    )
    shutil.rmtree(folder, ignore_errors=True)
    with traces.open("rb") as file:
        cases = (Case(trace.case_id, trace.input) for trace in map(decode, file))
        writer = LocalFiles(folder).create(plan, cases, {})
        file.seek(0)
        for index, trace in enumerate(map(decode, file)):
            trace.run_id, trace.case_index = plan.run_id, index
            writer.append_trace(trace)
    writer.close()
    return Path(writer.location)


def decode_only(path: Path, kind: str) -> Clock:
    """Decode each line of a file of `cases` or `traces` and do nothing else.

    Cases are held, as by a program without streams, and as in the measurement from which the goal of W1 comes.
    """
    import msgspec

    from evalwright.model.snapshot import Case
    from evalwright.model.trace import Trace

    decode = msgspec.json.Decoder(Case if kind == "cases" else Trace).decode
    with Clock() as clock, path.open("rb") as file:
        records = map(decode, file)
        deque(records, maxlen=None if kind == "cases" else 0)
    return clock


def bare_run(cases: Path) -> Clock:
    """The least that an honest run does: decode each case, call an echo, check three things, write a line for each.

    Nothing is masked, limited, counted or kept in order, and no failure is caught.
    """
    import asyncio
    import os

    import msgspec

    from evalwright.model.snapshot import Case

    decode, encode = msgspec.json.Decoder(Case).decode, msgspec.json.Encoder().encode

    async def echo(case: Case) -> str:
        return str(case.input["prompt"])

    async def one(case: Case, turn: asyncio.Semaphore, traces: Any, results: Any) -> None:
        async with turn:
            started = time.time()
            answer = await echo(case)
            expected = case.expected
            facts = expected.facts if expected is not None else {}
            words = expected.answer_should_include if expected is not None else []
            passed = (answer == facts.get("answer"), all(word in answer for word in words), "order-" in answer)
            traces.write(
                encode({"case_id": case.id, "input": case.input, "output": answer, "started": started}) + b"\n"
            )
            for number, ok in enumerate(passed):
                results.write(encode({"case_id": case.id, "evaluator": number, "passed": ok, "at": started}) + b"\n")

    async def everything() -> None:
        turn = asyncio.Semaphore(32)
        with cases.open("rb") as file:
            listed = [decode(line) for line in file]
        folder = cases.with_suffix(".bare")
        folder.mkdir(exist_ok=True)
        with (folder / "traces").open("wb") as traces, (folder / "results").open("wb") as results:
            await asyncio.gather(*(one(case, turn, traces, results) for case in listed))
            for file in (traces, results):
                file.flush()
                os.fsync(file.fileno())

    with Clock() as clock:
        asyncio.run(everything())
    return clock


def installed() -> str:
    """Where evalwright is imported from, and whether that has byte code."""
    import importlib.util

    import evalwright

    place = Path(evalwright.__file__)
    has_code = Path(importlib.util.cache_from_source(str(place))).exists()
    return f"in {place.parent}, {'with' if has_code else 'WITHOUT'} byte code"


def sleep_only(suite: Path) -> Clock:
    """As many sleeps as a suite has cases, as many at once as it says, and nothing else."""
    import asyncio

    document = json.loads(suite.read_text())
    count = len(Path(document["dataset"]["path"]).read_bytes().splitlines())
    seconds = float((suite.parent / "seconds").read_text())
    left = iter(range(count))

    async def worker() -> None:
        for _ in left:
            await asyncio.sleep(seconds)

    async def everything() -> None:
        await asyncio.gather(*(worker() for _ in range(document["run"]["max_concurrency"])))

    with Clock() as clock:
        asyncio.run(everything())
    return clock


def passes(run_dir: Path) -> dict[str, int]:
    """How often each evaluator passed, counted from the stored records."""
    import msgspec

    class Row(msgspec.Struct):
        evaluator: str
        passed: bool
        error: Any

    counts: dict[str, int] = {}
    decode = msgspec.json.Decoder(Row).decode
    with (run_dir / "results.jsonl").open("rb") as file:
        for row in map(decode, file):
            counts[row.evaluator] = counts.get(row.evaluator, 0) + (row.passed and row.error is None)
    return counts
