"""The files that letta-evals writes, made from a stored run; `--cached` reads them.

Suites with a gate: `header.json`, `results.jsonl` and `summary.json`; several runs are in `run_N` each, beside
`aggregate_stats.json`. Suites with a reward: `suite.json`, `<model>.jsonl` (with several runs `<model>/run_N.jsonl` and
`<model>/summary.json`) and `summary.json`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from evalwright.errors import InputError
from evalwright.files.durable import make_folder, must_be_writable, replace_lines, storage_error
from evalwright.files.yaml import parse
from evalwright.formats.letta import FORMAT
from evalwright.formats.letta.reward_summary import RunTally, summary_of
from evalwright.formats.letta.rows import SampleRow, masked, metrics_record, row_of, sample_fields
from evalwright.formats.letta.totals import REWARD
from evalwright.formats.letta.written_config import written_config
from evalwright.model.plan import Plan, Variant
from evalwright.model.protocols import RunReader
from evalwright.model.summary import RunSummary
from evalwright.stores.ordered import OrderedCells

__all__ = ["LettaResults"]

_HEADER, _RESULTS, _SUMMARY, _SUITE = "header.json", "results.jsonl", "summary.json", "suite.json"
_STATISTICS = "aggregate_stats.json"


class LettaResults:
    """Results as letta-evals writes them, in the folder `path`."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._folder = Path(config["path"])

    @classmethod
    def of_stored(cls, plan: Plan, folder: Path) -> LettaResults:
        """Raises InputError for a run of another format: it has neither samples nor submissions."""
        if plan.dialect != FORMAT.name:
            raise InputError(f"{FORMAT.title}'s files have samples, submissions and its own gate: only its suites do")
        return cls({"path": folder})

    @property
    def places(self) -> tuple[Path, ...]:
        return tuple(self._folder / name for name in (_HEADER, _RESULTS, _SUMMARY, _SUITE, _STATISTICS))

    def check(self) -> None:
        """Raises InputError if the folder cannot be written."""
        must_be_writable(self._folder / _HEADER)

    def write(self, run: RunReader, plan: Plan, summary: RunSummary, mask: Callable[[str], str]) -> None:
        writing = _Writing(self._folder, run, plan, summary.native or {}, mask)
        try:
            with OrderedCells(run) as cells:
                writing.rewarded(cells) if (plan.gate or {}).get("kind") == "reward" else writing.gated(cells)
        except OSError as error:
            raise storage_error("write", self._folder, error) from error


class _Writing:
    """One run going into one folder."""

    def __init__(
        self,
        folder: Path,
        run: RunReader,
        plan: Plan,
        native: Mapping[str, Any],
        mask: Callable[[str], str],
    ) -> None:
        self._folder, self._run, self._plan, self._mask = folder, run, plan, mask
        self._config = masked(_config(run, plan), mask)
        self._native = native
        self._several = "statistics" in native
        self._trials = range(plan.run.trials)
        self._variants = sorted(plan.variants, key=lambda variant: variant.name)

    def gated(self, cells: OrderedCells) -> None:
        """The layout of suites with a gate."""
        self._clear()
        for trial in self._trials:
            folder = self._folder / f"run_{trial + 1}" if self._several else self._folder
            rows = chain.from_iterable(self._rows(cells, variant, trial) for variant in self._variants)
            numbers = self._numbers(trial)
            _json(folder / _HEADER, {"type": "header", "suite": self._plan.name, "config": self._config})
            _lines(folder / _RESULTS, (row.older(self._mask, row.trace.case_index) for row in rows))
            passed = {"gates_passed": numbers["gates_passed"]}
            _json(folder / _SUMMARY, {"type": "summary", "metrics": _metrics(numbers), **passed})
        if self._several:
            each = [_metrics(self._numbers(trial)) for trial in self._trials]
            _json(self._folder / _STATISTICS, {**self._native["statistics"], "individual_run_metrics": each})

    def rewarded(self, cells: OrderedCells) -> None:
        """The layout of suites with a reward."""
        head = {"suite": self._plan.name, "config": self._config}
        samples = (masked(sample_fields(case), self._mask) for case in self._run.cases())
        _write(self._folder / _SUITE, _object(head, "samples", samples))
        models = [self._model(cells, variant) for variant in self._variants]
        _json(self._folder / _SUMMARY, {"suite": self._plan.name, "models": models})

    def _model(self, cells: OrderedCells, variant: Variant) -> dict[str, Any]:
        """Write the rows of one model; returns its summary."""
        model = variant.name if variant.config.get("model") else "default"
        name = re.sub(r"[/\\:]", "-", model)
        graders = [spec.name for spec in self._plan.evaluators if spec.name != REWARD]
        runs = []
        for trial in self._trials:
            file = f"{name}/run_{trial + 1}.jsonl" if self._several else f"{name}.jsonl"
            runs.append(tally := RunTally(graders))
            _lines(self._folder / file, (row.newer() for row in tally.counting(self._rows(cells, variant, trial))))
        summary = summary_of(model, runs)
        if self._several:
            parts = [run.part(number) for number, run in enumerate(runs, 1)]
            _json(self._folder / name / _SUMMARY, {**summary, "runs": parts})
        return summary

    def _rows(self, cells: OrderedCells, variant: Variant, trial: int) -> Iterator[SampleRow]:
        for trace, results in cells.of(variant.name, trial):
            yield row_of(self._plan, variant, self._run.case(trace.case_index or 0), trace, results)

    def _numbers(self, trial: int) -> Mapping[str, Any]:
        numbers: Mapping[str, Any] = self._native[f"run_{trial + 1}"] if self._several else self._native
        return numbers

    def _clear(self) -> None:
        """Remove what an earlier run with another number of runs left, so that no reader mixes the two."""
        for folder in (self._folder, *self._folder.glob("run_[0-9]*")):
            for name in (_HEADER, _RESULTS, _SUMMARY, _STATISTICS):
                (folder / name).unlink(missing_ok=True)
            if folder != self._folder:
                with suppress(OSError):  # it contains something else
                    folder.rmdir()


def _config(run: RunReader, plan: Plan) -> dict[str, Any]:
    """The part of the suite that is in the files, from the suite as it was stored."""
    stored = parse(run.document("config.yaml") or b"{}", "config.yaml", "true_false").value
    document: dict[str, Any] = stored if isinstance(stored, dict) else {}
    graders = document.get("graders")
    return written_config(document, graders if isinstance(graders, dict) else {}, plan.evaluators)


def _metrics(numbers: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in metrics_record(numbers).items() if key != "gates_passed"}


def _json(path: Path, document: Mapping[str, Any]) -> None:
    _write(path, [msgspec.json.format(msgspec.json.encode(document), indent=2), b"\n"])


def _lines(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    _write(path, (msgspec.json.encode(record) + b"\n" for record in records))


def _object(head: Mapping[str, Any], key: str, items: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """One JSON object whose last value is a long list."""
    yield msgspec.json.encode(head)[:-1] + b"," + msgspec.json.encode(key) + b":["
    for position, item in enumerate(items):
        yield (b",\n" if position else b"\n") + msgspec.json.encode(item)
    yield b"\n]}\n"


def _write(path: Path, parts: Iterable[bytes]) -> None:
    make_folder(path.parent)
    replace_lines(path, parts)
