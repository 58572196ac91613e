"""`evalwright list`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from evalwright import registry
from evalwright.errors import InputError
from evalwright.model.format import Format
from evalwright.reports.table import Styled, Table

__all__ = ["command"]


class _Kind(click.Choice[str]):
    """A kind of registered names, or `runs`; `dialects` is the older word for formats."""

    def __init__(self) -> None:
        super().__init__([*registry.KINDS, "runs"])

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return super().convert("formats" if value == "dialects" else value, param, ctx)


@click.command("list", short_help="List evaluators, targets, formats, ... or stored runs.")
@click.argument("kind", type=_Kind())
@click.argument("folder", type=click.Path(path_type=Path), default=Path("runs"))
def command(kind: str, folder: Path) -> int:
    """List what there is of a KIND, or the runs in FOLDER (default: runs), oldest first."""
    from evalwright.cli.screen import paint_for, say

    table = _runs(folder) if kind == "runs" else _names(kind)
    lines = table.lines(paint_for(sys.stdout), indent="")
    say(lines if table.rows else [f"no {kind} in {folder}" if kind == "runs" else f"no {kind}"])
    return 0


def _names(kind: str) -> Table:
    table = Table(("name", "", ""), limit=120)
    for name in registry.names(kind):
        table.add([(name, "bold"), _first_line(kind, name), (registry.package_of(kind, name) or "", "dim")])
    return table


def _first_line(kind: str, name: str) -> str:
    try:
        thing = registry.load(kind, name)
    except InputError as error:
        return str(error)
    if isinstance(thing, Format):
        return thing.summary
    document = inspect.getdoc(thing) or ""
    return document.partition("\n")[0]


def _runs(folder: Path) -> Table:
    from evalwright.run.locations import run_places

    table = Table(("started", "run", "status", ">cells", "pass rate"), limit=120)
    for place in run_places(folder):
        table.add(_run_row(place))
    return table


def _run_row(folder: Path) -> Iterator[str | Styled]:
    from evalwright.cli.locate import stored_summary

    try:
        summary = stored_summary(folder)
    except InputError as error:
        yield from (
            "",
            folder.name,
            ("damaged", "error"),
            "",
            error.problems[0].message if error.problems else error.headline,
        )
        return
    yield f"{summary.started_at:%Y-%m-%d %H:%M}"
    yield folder.name, "bold"
    yield summary.status
    yield f"{summary.cells_total:,}"
    yield ", ".join(f"{v.name} {100 * v.pass_rate:.1f}%" for v in summary.variants)
