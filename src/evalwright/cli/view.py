"""`evalwright view`."""

from __future__ import annotations

from pathlib import Path

import click

from evalwright.cli.usage import Command, PathParam, WholeRange, reject_options

__all__ = ["command"]

_OF_A_BUNDLE = ("only", "limit_cells", "with_labels")
_OF_A_SERVER = ("port", "host", "no_open", "read_only", "token", "no_token", "labeller", "cell")


@click.command("view", cls=Command)
@click.argument("places", nargs=-1, type=PathParam(), metavar="[RUN | DIR | DB-URL]...")
@click.option(
    "--port",
    type=WholeRange(0, 65535),
    default=7766,
    show_default=True,
    metavar="N",
    help="Port; 0 picks a free one.",
)
@click.option("--host", default="127.0.0.1", show_default=True, metavar="H", help="Address to listen on.")
@click.option("--no-open", is_flag=True, help="Do not open a browser.")
@click.option("--read-only", is_flag=True, help="Do not offer labelling.")
@click.option("--token", metavar="T", help="Token to use in the address instead of a new one.")
@click.option("--no-token", is_flag=True, help="Use no token: every program on this machine can read; no labelling.")
@click.option(
    "--bundle",
    type=PathParam(),
    metavar="DIR|FILE.zip",
    help="Write the pages as files, for reading without a server.",
)
@click.option(
    "--only",
    type=click.Choice(["not-passed", "changed", "all"]),
    default="all",
    show_default=True,
    help="With --bundle: the cells that have pages.",
)
@click.option("--compare", type=PathParam(), metavar="RUN_A", help="Compare RUN with this earlier run.")
@click.option(
    "--limit-cells",
    type=WholeRange(1),
    default=20_000,
    show_default=True,
    metavar="N",
    help="With --bundle: maximum number of cells and changed cases.",
)
@click.option("--with-labels", is_flag=True, help="With --bundle: include labels and notes.")
@click.option("--labeller", metavar="NAME", help="The name in labels (default: your user name).")
@click.option("--cell", metavar="CASE", help="Open the page of this case.")
def command(
    places: tuple[Path, ...],
    port: int,
    host: str,
    no_open: bool,
    read_only: bool,
    token: str | None,
    no_token: bool,
    bundle: Path | None,
    only: str,
    compare: Path | None,
    limit_cells: int,
    with_labels: bool,
    labeller: str | None,
    cell: str | None,
) -> int:
    """Look at runs in a browser: pages on this machine, until Ctrl-C; or pages as files with --bundle.

    Without an argument the runs in the folder `runs` are listed or, if there is none, those of the suites here.
    """
    if bundle is not None:
        reject_options(_OF_A_SERVER, "not with --bundle, which writes files and needs no server")
        from evalwright.cli.bundling import write_pages

        return write_pages(places, bundle, only, compare, limit_cells, with_labels=with_labels)
    reject_options(_OF_A_BUNDLE, "needs --bundle DIR")
    from evalwright.cli.view_server import needs_view, serve_viewer

    needs_view()
    return serve_viewer(
        places,
        port,
        host,
        open_browser=not no_open,
        labels=not (read_only or no_token),
        labeller=labeller,
        token=token,
        no_token=no_token,
        cell=cell,
        compare=compare,
    )
