"""Runs a suite from Python, as `letta_evals.run_suite` does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalwright.files import yaml
from evalwright.formats.letta import FORMAT
from evalwright.formats.letta.rows import metrics_record, row_of
from evalwright.formats.letta.suite import read
from evalwright.formats.letta.surface.progress import LISTENER, Listener, ProgressStyle
from evalwright.formats.letta.surface.specs import section
from evalwright.formats.loading import load_suite
from evalwright.formats.shared.python_errors import as_the_original
from evalwright.model.plan import Plugin
from evalwright.model.suite import Suite
from evalwright.run.options import RunOptions
from evalwright.run.outcomes import Outcome
from evalwright.run.start import run_suite_here
from evalwright.run.stored_run import open_run
from evalwright.stores.ordered import OrderedCells

__all__ = ["Runner", "RunnerResult", "SuiteSpec", "as_fields", "run_suite"]


@dataclass
class RunnerResult:
    """The outcome of a suite: `results`, `metrics` and `run_statistics` are those of the original's files.

    Their keys are also attributes. With several runs, `results` has the rows of all, distinguished by `run` (from 1).
    """

    suite: str
    config: dict[str, Any]
    results: list[dict[str, Any]]
    metrics: dict[str, Any]
    gates_passed: bool
    run_statistics: dict[str, Any] | None = None
    run_dir: Path = field(default_factory=Path)


class SuiteSpec:
    """A suite as data, with the sections of its file as attributes. Its paths are relative to `base_dir`."""

    def __init__(self, data: Mapping[str, Any] | None = None, base_dir: Path | str | None = None, **keys: Any) -> None:
        self._data = {**(data or {}), **keys}
        self._folder = Path(base_dir or ".")
        self._file = self._folder / "suite.yaml"

    @classmethod
    def from_yaml(
        cls, yaml_data: Mapping[str, Any], base_dir: Path | str | None = None, suite_path: Path | str | None = None
    ) -> SuiteSpec:
        """The content of a suite's file, `suite_path`. Raises ValueError with every mistake.

        No code is imported until it is run.
        """
        suite = cls(yaml_data, base_dir)
        if suite_path is not None:
            suite._file = Path(suite_path)
        suite.load(to_run=False)
        return suite

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name == "base_dir":
            return self._folder
        return section(name, self._data.get(name))

    def load(self, **options: Any) -> Suite:
        """Raises ValueError for a suite that cannot be run."""
        with as_the_original():
            document = yaml.parse(yaml.dump(self._data).encode(), str(self._file), "true_false")
            return read(self._file, document, {}, **options)


class Runner:
    """Runs a suite that was assembled in Python."""

    def __init__(
        self,
        suite: SuiteSpec,
        max_concurrent: int = 15,
        progress_callback: Any = None,
        *,
        output_path: Path | None = None,
        target: str | None = None,
        allow_outside: Sequence[Path] = (),
        **_letta: Any,
    ) -> None:
        """Raises ValueError for in-memory results to be re-evaluated: `run_suite` reads those in a folder."""
        if _letta.get("cached_results") is not None:
            raise ValueError("cached_results: expected None; run_suite(..., cached_results_path=DIR) replays results")
        self._suite, self._width, self._callback = suite, max_concurrent, progress_callback
        self._options = {"output": output_path, "target": target, "allow_outside": allow_outside}

    async def run(self) -> RunnerResult:
        return await _listened_to(
            self._callback, lambda: self._suite.load(**self._options), RunOptions(concurrency=self._width)
        )


async def run_suite(
    suite_path: Path | str,
    max_concurrent: int = 15,
    *,
    custom_progress_callback: Any = None,
    progress_style: Any = "none",
    cached_results_path: Path | None = None,
    output_path: Path | None = None,
    num_runs: int | None = None,
    target: str | None = None,
    allow_outside: Sequence[Path] = (),
    **_letta: Any,
) -> RunnerResult:
    """Run a suite and return its results; with `output_path` they are also written there, in the original's files.

    Agents and a progress callback are called in the caller's event loop. Cancelling the call stops the run, which can
    be resumed; so does an exception of the callback, which is raised here. Addresses and keys of a Letta server are
    accepted but not needed. Raises FileNotFoundError, and ValueError for a suite that cannot be run or for both a
    callback and a style.
    """
    if custom_progress_callback is not None and ProgressStyle(progress_style) is not ProgressStyle.NONE:
        raise ValueError("expected a progress callback or a progress style, found both")
    settings = {
        "cached": cached_results_path, "target": target, "output": output_path, "trials": num_runs,
        "allow_outside": allow_outside,
    }  # fmt: skip
    options = RunOptions(trials=num_runs, concurrency=max_concurrent)

    def load() -> Suite:
        with as_the_original(Path(suite_path)):
            return load_suite(Path(suite_path), FORMAT.name, options=settings)

    return await _listened_to(custom_progress_callback, load, options)


async def _listened_to(callback: Any, load: Callable[[], Suite], options: RunOptions) -> RunnerResult:
    if callback is None:
        return await _run(load, options)
    listener = Listener(callback)
    token = LISTENER.set(listener)
    listener.emit("start")
    running, listening = asyncio.create_task(_run(load, options)), asyncio.create_task(listener.work())
    listening.add_done_callback(lambda _: running.cancel())  # before the run's end, only a callback that raised is done
    result = None
    try:
        result = await running
        return result
    finally:
        LISTENER.reset(token)
        listener.emit("stop")  # as in the original, a display ends before the result is shown
        if result is not None:
            listener.emit("suite_completed", result)
        listener.end()
        await listening


async def _run(load: Callable[[], Suite], options: RunOptions) -> RunnerResult:
    suite = await asyncio.to_thread(load)
    if LISTENER.get() is not None:
        suite.mirrors = [*suite.mirrors, Plugin("letta_progress", {})]
    outcome = await run_suite_here(suite, options)
    return await asyncio.to_thread(_result, suite.name, suite.document, outcome)


class _Fields(dict[str, Any]):
    """Plain data whose keys are also attributes, as in the original's models."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"there is no {name!r} (there are: {', '.join(self)})") from None


def as_fields(value: Any) -> Any:
    """Plain data whose mappings have their keys as attributes."""
    if isinstance(value, dict):
        return _Fields((key, as_fields(item)) for key, item in value.items())
    return [as_fields(item) for item in value] if isinstance(value, list) else value


def _result(name: str, config: dict[str, Any], outcome: Outcome) -> RunnerResult:
    native = outcome.summary.native or {}
    gate = outcome.summary.gate
    statistics = native.get("statistics")
    runs = [native[f"run_{run}"] for run in range(1, statistics["num_runs"] + 1)] if statistics else [native]
    metrics = [metrics_record(numbers) for numbers in runs]
    if statistics:
        statistics = {**statistics, "individual_run_metrics": metrics}
    passed = gate.passed if gate is not None else True
    return RunnerResult(
        name, config, list(_rows(outcome)), as_fields(metrics[-1]), passed, as_fields(statistics), outcome.run_dir
    )


def _rows(outcome: Outcome) -> Iterator[dict[str, Any]]:
    """What the original writes for each sample, by run, model and place in the dataset."""
    reader, plan = open_run(outcome.address)
    variants = sorted(plan.variants, key=lambda variant: variant.name)
    with closing(reader), OrderedCells(reader) as cells:
        for trial in range(plan.run.trials):
            for variant in variants:
                for trace, results in cells.of(variant.name, trial):
                    row = row_of(plan, variant, reader.case(trace.case_index or 0), trace, results)
                    yield as_fields({**row.older(str)["result"], "run": trial + 1})
