"""`evalwright cache`."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalwright.cli.usage import Command, PathParam
from evalwright.errors import InputError, Problem, counted

if TYPE_CHECKING:
    from evalwright.llm.cache import Cache

__all__ = ["command"]

_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}


def _size(text: str) -> int:
    """Bytes: `200MB`, `1GB`, or a number of them."""
    match = re.fullmatch(r"(\d+)\s*([kmg]?)i?b?", text.strip().lower())
    if match is None:
        raise click.BadParameter(f"expected a size such as 200MB or 1GB, found {text!r}")
    return int(match[1]) * _UNITS[match[2]]


def _age(text: str) -> float:
    """Days: `30d`, `12h`, or a number of them."""
    match = re.fullmatch(r"(\d{1,6}(?:\.\d+)?)\s*([dh]?)", text.strip().lower())
    if match is None:
        raise click.BadParameter(f"expected an age such as 30d or 12h, found {text!r}")
    return float(match[1]) / (24 if match[2] == "h" else 1)


@click.command("cache", cls=Command)
@click.argument("action", type=click.Choice(["stats", "show", "prune", "clear"]), default="stats")
@click.option("--cache", "path", type=PathParam(), metavar="FILE", help="Cache file (default: the user's cache).")
@click.option("--max-size", type=_size, metavar="SIZE", help="prune: remove the oldest replies beyond SIZE (200MB).")
@click.option("--older-than", type=_age, metavar="AGE", help="prune: remove replies older than AGE (30d, 12h).")
def command(action: str, path: Path | None, max_size: int | None, older_than: float | None) -> int:
    """Show what is cached for each model (stats or show, the default), remove the oldest replies (prune), or all of
    them (clear)."""
    from evalwright.cli.screen import print_out
    from evalwright.llm.cache import Cache, default_path

    limits = {"--max-size": max_size, "--older-than": older_than}
    limits_named = [name for name, value in limits.items() if value is not None]
    if limits_named and action != "prune":
        raise click.UsageError(
            f"{' and '.join(limits_named)}: only 'evalwright cache prune' removes a part of the cache"
        )
    if not limits_named and action == "prune":
        raise click.UsageError("prune: expected --max-size SIZE, --older-than AGE, or both")
    file = path or default_path()
    if path is not None and not file.exists():
        raise InputError(Problem(str(path), "does not exist"))
    if not file.exists():
        print_out([f"{file}: no cached replies"])
        return 0
    with closing(Cache(file)) as cache:
        print_out(_stats(cache) if action in ("stats", "show") else [_remove(cache, action, max_size, older_than)])
    return 0


def _remove(cache: Cache, action: str, max_size: int | None, older_than: float | None) -> str:
    if action == "clear":
        number = cache.clear()
    else:
        number = cache.prune(most_bytes=max_size, older_than_days=older_than)
        cache.shrink()
    return f"removed {counted(number, 'cached reply', 'cached replies')}"


def _stats(cache: Cache) -> list[str]:
    models = cache.counts()
    rows = [
        f"{model.replies:>8,}  {model.size / 2**20:>7.1f} MiB  {model.model}  (newest {model.newest})"
        for model in models
    ]
    number = counted(sum(model.replies for model in models), "cached reply", "cached replies")
    return [*rows, f"{number}, {cache.size() / 2**20:.1f} MiB: {cache.path}"]
