"""`evalwright report`."""

from __future__ import annotations

from pathlib import Path

import click

from evalwright import registry
from evalwright.cli.options import run_argument, store_options

__all__ = ["command"]


@click.command("report")
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
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write to FILE instead of standard output.",
)
def command(run: Path, format_: str, out: Path | None) -> int:
    """Write a report of the run in folder RUN (`evalwright list reports` lists the report formats)."""
    from contextlib import closing

    from evalwright.cli.locate import folded_summary
    from evalwright.cli.screen import say
    from evalwright.files.durable import replace_file
    from evalwright.run.start import open_run

    report = registry.load("reports", format_)()
    reader, plan = open_run(run)
    with closing(reader):
        summary = folded_summary(reader, plan)
        # A folder that evalh wrote has none of its own, and reports ask the reader.
        reader.plan = plan
        text = report.render(reader, summary)
    if out is None:
        say([text.rstrip("\n")])
    else:
        # Records may hold half of a surrogate pair, for which UTF-8 has no bytes.
        replace_file(out, text.encode("utf-8", "backslashreplace"))
        say([str(out)])
    return 0
