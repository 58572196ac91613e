"""`evalwright cache`."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click

__all__ = ["command"]


@click.command("cache")
@click.argument("action", type=click.Choice(["show", "clear"]), default="show")
@click.option(
    "--cache", "path", type=click.Path(path_type=Path), metavar="FILE", help="Cache file (default: the user's cache)."
)
def command(action: str, path: Path | None) -> int:
    """Show how many replies of each model are cached, or clear them all."""
    from evalwright.cli.screen import say
    from evalwright.errors import counted
    from evalwright.llm.cache import Cache, default_path

    file = path or default_path()
    if not file.is_file():
        say([f"{file}: no cached replies"])
        return 0
    with closing(Cache(file)) as cache:
        if action == "clear":
            say([f"removed {counted(cache.clear(), 'cached reply', 'cached replies')}"])
        else:
            rows = [f"{count:>8,}  {model}  (newest {newest})" for model, count, newest in cache.counts()]
            say([*rows, str(file)])
    return 0
