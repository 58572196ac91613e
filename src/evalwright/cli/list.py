"""`evalwright list`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from evalwright import built_in, registry
from evalwright.cli.options import as_json, color
from evalwright.cli.screen import print_out, screen_paint, warn
from evalwright.cli.stored_runs import store_choice, store_options
from evalwright.cli.usage import Command
from evalwright.errors import InputError, Problem, did_you_mean
from evalwright.files.paths import near_file
from evalwright.reports.numbers import percent
from evalwright.reports.table import Table
from evalwright.reports.text import short_line

if TYPE_CHECKING:
    from evalwright.model.summary import RunSummary
    from evalwright.run.locations import Place

__all__ = ["command"]

_MOST_RATES = 3
"""Variants of a run whose pass rates are listed."""
_NAME = 24


class _Kind(click.Choice):  # type: ignore[type-arg]  # in click 8.1 it takes no argument
    """A kind of registered names, or `runs`; `dialects` is the older word for formats."""

    def __init__(self) -> None:
        super().__init__([*built_in.KINDS, "runs"])

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        kind = "formats" if value == "dialects" else value
        if kind not in self.choices:
            self.fail(f"unknown kind {kind!r}{did_you_mean(kind, self.choices)} (known: {', '.join(self.choices)})")
        return kind


def _complete_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from evalwright.cli.completion import evaluator_names

    return evaluator_names(incomplete) if ctx.params.get("kind") == "evaluators" else []


@click.command(
    "list",
    cls=Command,
    short_help="List evaluators, targets, formats, … or stored runs.",
    epilog=f"KIND is one of {', '.join([*built_in.KINDS, 'runs'])}.",
)
@click.argument("kind", type=_Kind(), metavar="KIND")
@click.argument("name", metavar="[NAME|FOLDER]", default="", shell_complete=_complete_names)
@store_options
@as_json
@color
@click.pass_context
def command(ctx: click.Context, kind: str, name: str, as_json: bool) -> int:
    """List the registered names of a KIND, or the runs in FOLDER, oldest first.

    Without FOLDER, these are the runs in `runs`, or else where the suites here keep theirs.

    FOLDER may also be a SQLite file or `postgres:SCHEMA`.

    `list evaluators NAME` shows one evaluator: its keys, their types and defaults, and an example.
    """
    if kind == "evaluators":
        _evaluators(name, as_json)
    elif kind == "runs":
        _runs(Path(name) if name else None, store_choice(ctx), as_json)
    else:
        _names(kind, name, as_json)
    return 0


def _evaluators(name: str, as_json: bool) -> None:
    from evalwright.cli.evaluators import description_lines, list_lines
    from evalwright.evaluators.catalogue import catalogue, describe

    if as_json:
        _print_json(describe(name) if name else list(catalogue()))
        return
    paint = screen_paint()
    print_out(description_lines(describe(name), paint) if name else list_lines(catalogue(), paint))


def _names(kind: str, name: str, as_json: bool) -> None:
    """One row for each name that a file can use, or one for `name` alone. Raises InputError for an unknown one."""
    if name:
        registry.load(kind, name)
    listed = [name] if name else [known for known in registry.names(kind) if known not in registry.INTERNAL]
    rows = [(name, registry.summary(kind, name), registry.package_of(kind, name) or "") for name in listed]
    if as_json:
        keys = ("name", "description", "package")
        _print_json([dict(zip(keys, row, strict=True)) for row in rows])
        return
    table = Table(("name", "", ""), limit=120)
    for one, sentence, package in rows:
        table.add([(one, "bold"), sentence, (package, "dim")])
    _print(table, f"no {kind}")


def _runs(folder: Path | None, trusted: Mapping[str, Any], as_json: bool) -> None:
    from evalwright.cli.viewed_runs import places_here
    from evalwright.run.locations import RUNS, is_on_a_server, run_places

    # it is no mistake if there are none yet
    if folder is not None and not os.path.exists(folder) and folder != RUNS and not is_on_a_server(folder):
        raise InputError(Problem(str(folder), f"there is no such folder{near_file(folder)}"))
    places = places_here() if folder is None else [folder]
    rows = [_run_row(place, trusted) for shelf in places for place in run_places(shelf, **trusted)]
    warn(f"{path} cannot be read: permission denied" for shelf in places for path in _closed_folders(shelf))
    if as_json:
        _print_json(rows)
        return
    table = Table(("run", "started", "status", ">cells", "pass rate"), limit=120, names=1, wide=(4,))
    for row in rows:
        named = [f"{short_line(name, _NAME)} {percent(rate)}" for name, rate in row.pass_rates.items()]
        more = [f"{len(named) - _MOST_RATES:,} more"] if len(named) > _MOST_RATES else []
        rates = ", ".join([*named[:_MOST_RATES], *more])
        started = f"{row.started_at:%Y-%m-%d %H:%M}" if row.started_at else ""
        cells = "" if row.cells is None else f"{row.cells:,}"
        status = (row.status, "error") if row.problem else row.status
        table.add([(row.run, "bold"), started, status, cells, row.problem or rates])
    none = "no runs here; `evalwright list runs FOLDER` lists those in another folder or in a SQLite file"
    _print(table, none if folder is None else f"no runs in {folder}")


def _closed_folders(shelf: Path) -> list[Path]:
    """The folder itself, or those in it, that this user may not read: they may be runs."""
    if not os.path.isdir(shelf):
        return []
    if not os.access(shelf, os.R_OK | os.X_OK):
        return [shelf]
    return [path for path in sorted(shelf.iterdir()) if path.is_dir() and not os.access(path, os.R_OK | os.X_OK)]


class _Run(msgspec.Struct):
    """A stored run in the list. What cannot be read is `damaged`, with the problem."""

    run: str
    status: str = "damaged"
    started_at: datetime | None = None
    cells: int | None = None
    pass_rates: dict[str, float] = {}
    """By variant."""
    problem: str = ""


def _run_row(folder: Path, trusted: Mapping[str, Any]) -> _Run:
    from evalwright.run.locations import find_run, is_written

    try:
        place = find_run(folder, **trusted)
        summary = _summary(place)
    except InputError as error:
        return _Run(folder.name, problem=error.problems[0].message if error.problems else error.headline)
    rates = {variant.name: variant.pass_rate for variant in summary.variants if variant.pass_rate is not None}
    status = "running" if is_written(place) else summary.status
    return _Run(folder.name, status, summary.started_at, summary.cells_total, rates)


def _summary(place: Place) -> RunSummary:
    """The summary of a run, rebuilt if there is none or only another program's. Raises InputError."""
    from evalwright.run.outcomes import folded_summary
    from evalwright.run.stored_run import open_run

    reader, plan = open_run(place)
    with closing(reader):
        stored = reader.summary() if reader.plan is not None else None
        return stored or folded_summary(reader, plan)


def _print(table: Table, without_rows: str) -> None:
    print_out(table.lines(screen_paint(), indent="") if table.rows else [without_rows])


def _print_json(value: object) -> None:
    print_out([msgspec.json.encode(value).decode()])
