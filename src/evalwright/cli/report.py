"""`evalwright report`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalwright import registry
from evalwright.cli.stored_runs import RunPath, run_argument, store_options
from evalwright.cli.usage import Command, PathParam, WholeRange, reject_mistakes, reject_options
from evalwright.errors import InputError

if TYPE_CHECKING:
    from evalwright.model.plan import Plan
    from evalwright.model.protocols import RunReader
    from evalwright.model.summary import RunSummary

__all__ = ["command"]

_OF_A_RUN = (
    *("plan.json", "cases.jsonl", "traces.jsonl", "results.jsonl", "verdicts.jsonl", "summary.yaml", "config.yaml"),
    *("config_hash.txt", "index.sqlite", "manifest.json", "shard.json", "labels.jsonl", "calibration.json"),
)
"""Files of a run folder, none of which a report may replace."""


@click.command("report", cls=Command)
@run_argument()
@store_options
@click.option(
    "--format",
    "format_",
    metavar="NAME",
    default="markdown",
    show_default=True,
    help="markdown, html, json, junit, …",
)
@click.option(
    "--out",
    type=PathParam(str),  # DIR/ says more than DIR
    metavar="FILE",
    help="Write to FILE instead of standard output. html: DIR/ writes a page for each cell.",
)
@click.option("--append", is_flag=True, help="With --out: add to FILE instead of replacing it.")
@click.option(
    "--compare", type=RunPath(), metavar="RUN_A", help="Compare with this earlier run (markdown, html, github)."
)
@click.option("--link", metavar="URL", help="Address of the published bundle, to which cases link.")
@click.option(
    "--limit-chars",
    type=WholeRange(min=1000),
    metavar="N",
    help="markdown: leave out whole sections beyond N characters (default: 60,000).",
)
@click.option(
    "--github",
    is_flag=True,
    help="Write annotations, job summary and step outputs for GitHub Actions instead.",
)
def command(
    run: Path,
    format_: str,
    out: str | None,
    append: bool,
    compare: Path | None,
    link: str | None,
    limit_chars: int | None,
    github: bool,
) -> int:
    """Write a report of the run in folder RUN (`evalwright list reports` lists the report formats).

    The exit code is 3 if records cannot be read; the report names them.
    """
    from contextlib import closing

    from evalwright.cli.screen import print_damage, print_text
    from evalwright.reports.pieces import pieces_of
    from evalwright.run.decisions import add_tradeoffs
    from evalwright.run.outcomes import folded_summary
    from evalwright.run.stored_run import open_run

    if github:
        reject_options(("format_", "out", "append", "limit_chars"), "not with --github, which names the files itself")
        from evalwright.cli.github import show_on_github

        return show_on_github(run, compare=compare, link=link or "")
    mistakes = ["--append needs --out FILE"] if append and out is None else []
    if out is not None and (out.endswith("/") or Path(out).is_dir()):
        return _in_folder(run, Path(out), format_, compare, link)
    report = registry.load("reports", format_)()
    reads: frozenset[str] = getattr(report, "reads", frozenset())
    for name, value in (("compare", compare), ("link", link), ("limit_chars", limit_chars)):
        if value is not None and name not in reads:
            mistakes.append(f"--{name.replace('_', '-')} is not for --format {format_}")
    reject_mistakes(mistakes)
    reader, plan = open_run(run)
    lost: list[str] = []
    with closing(reader):
        summary = folded_summary(reader, plan)
        add_tradeoffs(summary, reader, plan)
        # A folder that evalh wrote holds no plan, and reports take it from the reader.
        reader.plan = plan
        if hasattr(report, "check"):
            report.check(summary, str(run))
        if out is not None:
            _must_not_replace(Path(out), Path(reader.location), plan)
        if reads:
            pieces: Iterable[str] = _with_context(
                format_, report, reader, summary, run, lost, compare=compare, link=link or "", limit=limit_chars
            )
        else:
            pieces = _blamed(format_, pieces_of(report, reader, summary))
        if out is not None:
            _write(Path(out), pieces, append)
            pieces = [str(Path(out))]
        print_text(pieces)
        return print_damage(reader) or (3 if lost else 0)


def _in_folder(run: Path, out: Path, format_: str, compare: Path | None, link: str | None) -> int:
    """Write a page for each cell, like `view --bundle`."""
    if format_ != "html":
        raise click.UsageError(f"--out {out} is a folder, and --format {format_} is one file")
    if link is not None:
        raise click.UsageError("--link is for one file: the pages in a folder link to each other")
    from evalwright.cli.bundling import MOST_CELLS, write_pages

    return write_pages([run], out, "all", compare, MOST_CELLS)


def _with_context(
    name: str, report: Any, reader: RunReader, summary: RunSummary, run: Path, lost: list[str], **settings: Any
) -> Iterator[str]:
    """The report. What cannot be read of the earlier run is added to `lost`."""
    from evalwright.cli.report_context import opened_context
    from evalwright.model.damage import unreadable_records
    from evalwright.reports.pieces import pieces_of
    from evalwright.run.case_places import CasePlaces, suite_file

    with opened_context(run, **settings) as context:
        if "places" in report.reads and reader.plan is not None:
            context = replace(context, places=CasePlaces(reader.plan), suite=suite_file(reader.plan))
        yield from _blamed(name, pieces_of(report, reader, summary, context))
        if context.before is not None:
            lost += unreadable_records(context.before.reader)


def _blamed(name: str, pieces: Iterator[str]) -> Iterator[str]:
    """The pieces; a mistake of a plug-in's report is named as such."""
    with registry.blaming("reports", name):
        yield from pieces


def _must_not_replace(out: Path, run: Path, plan: Plan) -> None:
    """Raises InputError if `out` is a file of the run or of its suite, which a report would destroy."""
    place, suite = out.resolve(), Path(plan.config_path)
    if place in (suite, *((suite.parent / name).resolve() for name in plan.files)):
        raise InputError(f"--out {out} is a file of the suite: name another one")
    if place.parent == run.resolve() and place.name in _OF_A_RUN:
        raise InputError(f"--out {out} is a file of the run: name another one")


def _write(out: Path, pieces: Iterable[str], append: bool) -> None:
    from evalwright.files.durable import make_folder, write_output

    # Records may contain half of a surrogate pair, which UTF-8 cannot encode.
    data = (piece.encode("utf-8", "backslashreplace") for piece in pieces)
    make_folder(out.parent)
    if append:
        from evalwright.cli.github import append_data

        append_data(out, b"".join(data))
    else:
        write_output(out, data)
