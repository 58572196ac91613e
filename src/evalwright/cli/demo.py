"""`evalwright demo`."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["command"]


@click.command("demo", short_help="Write the built-in example to a folder and run it.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    default=Path("evalwright-demo"),
    show_default=True,
    help="The folder that gets the example.",
)
def command(out: Path) -> int:
    """Write a small suite with a made-up agent into DIR and run it: nothing leaves this machine."""
    from contextlib import chdir

    from evalwright import demo
    from evalwright.cli.outcome import present, watch_of
    from evalwright.cli.screen import say
    from evalwright.formats.loading import load_suite
    from evalwright.reports.text import harmless
    from evalwright.run.start import RunOptions, run_suite

    path = demo.write(out)
    say([f"The example is in {harmless(str(path.parent))}; this is what `evalwright run` says of it.", ""])
    with chdir(path.parent):  # files of the same names in the working directory would go before the example's
        here = Path.cwd()
        outcome = run_suite(load_suite(here / path.name), RunOptions(out=here / "runs"), watch_of(False))
    present(outcome, as_json=False, quiet=False)
    return 0  # it has shown what it is there to show: `evalwright run` is what fails when cells fail
