"""The stored runs that the command line names, for the viewer."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from evalwright.errors import EvalwrightError, InputError
from evalwright.model.plan import Plan
from evalwright.model.protocols import RunReader
from evalwright.model.summary import RunSummary
from evalwright.run.baselines import is_promoted
from evalwright.run.locations import NOTE, RUNS, find_run, is_on_a_server, is_written, label_sheet, run_places
from evalwright.stores.local_files import is_run
from evalwright.stores.local_files.lines import LineDecoder
from evalwright.stores.lock import LOCK_NAME, is_held
from evalwright.viewer.live import Mark

if TYPE_CHECKING:
    from evalwright.run.judged_pairs import JudgesOfRuns
    from evalwright.viewer.shelf import OpenedRun

__all__ = ["StoredRun", "places_here", "runs_at", "usual_places"]

_RECORDS = ("traces.jsonl", "results.jsonl", "verdicts.jsonl", "summary.yaml", "plan.json", "labels.jsonl")
_STARTED = re.compile(r"(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d)_")
"""How the ids that runs are given begin."""
_DEEPEST = 2
_MOST_READ = 16 << 20
"""Bytes of new records that are read at a time."""


class StoredRun:
    """A run that is opened when it is looked at."""

    def __init__(self, path: Path, number: int = 1) -> None:
        """`number` tells it from runs of the same id in other folders."""
        self._path = path
        name = _name_in_addresses(path)
        self.id: str = name if number == 1 else f"{name}~{number}"
        self.path: str = str(path)

    def open(self) -> tuple[RunReader, Plan]:
        from evalwright.run.stored_run import open_run  # not before a run is looked at: the import takes long

        return open_run(self._path)

    def judges(self, earlier: OpenedRun, opened: OpenedRun) -> JudgesOfRuns:
        from evalwright.run.judged_pairs import judges_of_runs  # only for comparisons: the import takes long

        return judges_of_runs(*earlier, *opened, None)

    def started_at(self) -> datetime:
        """By the id, as plans of thousands of runs would take seconds to read; by the plan for a renamed run."""
        if named := _STARTED.match(self._path.name):
            with suppress(ValueError):
                return datetime.strptime(named[1], "%Y-%m-%dT%H-%M-%S").replace(tzinfo=UTC)
        reader, plan = self.open()
        reader.close()
        return plan.started_at

    def summary(self) -> RunSummary:
        reader, plan = self.open()
        with closing(reader):
            stored = reader.summary() if reader.plan is not None else None
            if stored is not None and not stored.cells_missing:
                return stored
            from evalwright.run.outcomes import folded_summary

            return folded_summary(reader, plan)

    def stamp(self) -> str:
        """Sizes and times of the files; for a run in a database, whether it is finished, else the time."""
        if self._is_folder():
            stored_runs = []
            for name in _RECORDS:
                try:
                    known = os.stat(self._path / name)  # noqa: PTH116 - one call, no object
                except OSError:
                    continue
                stored_runs.append(f"{name} {known.st_size} {known.st_mtime_ns}")
            return "\n".join(stored_runs)
        reader, _ = self.open()
        with closing(reader):
            summary = reader.summary()
        if summary is not None and not summary.cells_missing:
            return f"finished {summary.finished_at.isoformat()}"
        return f"at {int(time.time() / 5)}"

    def size(self) -> int:
        try:
            return (self._path / "traces.jsonl").stat().st_size
        except OSError:
            return 0

    def appended(self, kind: str, offset: int) -> tuple[list[Mark], int]:
        """The records of a kind appended since; all of them each time if the run is in a database."""
        if not self._is_folder():
            reader, _ = self.open()
            with closing(reader):
                return list(getattr(reader, kind)(Mark)), 0
        name = f"{kind}.jsonl"
        try:
            with (self._path / name).open("rb") as file:
                file.seek(offset)
                read = file.read(_MOST_READ)
        except OSError:
            return [], offset
        whole = read[: read.rfind(b"\n") + 1]  # a torn last line is read once it is complete
        return list(LineDecoder(name, []).records(Mark, whole.splitlines(True))), offset + len(whole)

    def labels_path(self) -> Path:
        reader, _ = self.open()
        with closing(reader):
            return label_sheet(reader)

    def is_baseline(self) -> bool:
        return is_promoted(self._path)

    def is_written(self) -> bool:
        if self._is_folder():
            return is_held(self._path / LOCK_NAME)
        return is_written(find_run(self._path))

    def _is_folder(self) -> bool:
        """Whether its records are in files of its own, not in a database."""
        return self._path.is_dir() and not (self._path / NOTE).exists()


def _name_in_addresses(path: Path) -> str:
    """The name of a run; what in it is no UTF-8, which neither pages nor addresses can contain, is replaced by
    U+FFFD."""
    return os.fsencode(path.name).decode("utf-8", "replace")


def runs_at(places: Sequence[Path]) -> Iterator[StoredRun]:
    """The runs at each place: a run itself, those in a folder or two levels below it, those of a database.

    Of runs with the same id, which a copied folder has, all but the first get a number.
    Raises InputError for a place that is not there.
    """
    known: dict[str, list[str]] = {}
    for path in _paths_at(places):
        same = known.setdefault(_name_in_addresses(path), [])
        if not same or os.path.realpath(path) not in map(os.path.realpath, same):
            same.append(str(path))
            yield StoredRun(path, len(same))


def usual_places() -> list[Path]:
    """The places of `places_here`. Raises InputError if there are none."""
    if places := places_here():
        return places
    raise InputError("there is no folder 'runs' here, and no suite with runs: name a run, or a folder with runs")


def places_here() -> list[Path]:
    """The folder `runs` here, else where the suites here keep their runs; none if nothing is there."""
    if RUNS.is_dir():
        return [RUNS]
    from evalwright.formats.loading import fitting  # needed only here: the import takes long

    suites = [file for file in sorted(Path().glob("*.y*ml")) if fitting(file)]
    return [*dict.fromkeys(place for place in map(_place_of_runs, suites) if place is not None and place.exists())]


def _place_of_runs(suite: Path) -> Path | None:
    """Where the runs of a suite are; None if it cannot be read, or they are on a server."""
    from evalwright.formats.loading import load_suite
    from evalwright.session.imports import nothing_imported

    try:
        with nothing_imported():
            read = load_suite(suite, to_run=False)
    except EvalwrightError:
        return None
    path = read.store.config.get("path") if read.store.type == "sqlite" else read.out
    return None if path is None else Path(path)


def _paths_at(places: Sequence[Path]) -> Iterator[Path]:
    for place in places:
        text = str(place)
        if is_on_a_server(text) and "/" not in text:
            yield from run_places(place)
        elif is_on_a_server(text) or not place.is_dir():
            yield from _in_file(place)
        elif _is_run(place):
            yield place.absolute()
        else:
            yield from _below(place.absolute(), _DEEPEST)


def _in_file(place: Path) -> Iterator[Path]:
    if place.is_file():
        find_run(place)  # reports what is wrong with a file that is no database
        yield from run_places(place)
        return
    stored = find_run(place)  # `FILE.sqlite/RUN_ID`, or the id of a run below `runs`
    if not stored.address.is_dir() and stored.run_id not in stored.store.run_ids():
        raise InputError(f"{place}: there is no run, and no folder with runs")
    yield stored.address


def _is_run(folder: Path) -> bool:
    """Whether a folder is shown: also one that has lost its traces or its results, with what it lacks."""
    if is_run(folder) or (folder / NOTE).is_file():
        return True
    return (folder / "plan.json").is_file() and any((folder / name).is_file() for name in _RECORDS[:2])


def _below(folder: Path, deepest: int) -> Iterator[Path]:
    try:
        with os.scandir(folder) as listing:
            entries = sorted(listing, key=lambda item: item.name)
    except FileNotFoundError:  # removed a moment ago
        return
    except OSError:
        yield folder  # shown with the reason why it cannot be read
        return
    for entry in entries:
        if not entry.is_dir(follow_symlinks=False) or entry.name.startswith("."):
            continue
        path = Path(entry.path)
        if _is_run(path):
            yield path
        elif deepest > 1:
            yield from _below(path, deepest - 1)
