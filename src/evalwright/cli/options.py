"""Arguments and options that several commands have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

__all__ = ["as_json", "dialect", "quiet", "run_argument", "suite_argument"]

F = TypeVar("F", bound=Callable[..., Any])

as_json: Callable[[F], F] = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")
quiet: Callable[[F], F] = click.option(
    "--quiet", "-q", is_flag=True, help="Print the run folder only, and no progress."
)
dialect: Callable[[F], F] = click.option(
    "--dialect", metavar="NAME", help="Read the suite as this dialect instead of detecting it."
)


def run_argument(name: str = "run") -> Callable[[F], F]:
    """A run folder; whether it is one is checked where it is opened."""
    return click.argument(name, type=click.Path(path_type=Path), metavar=name.upper())


def suite_argument() -> Callable[[F], F]:
    """A suite's file (or folder, where a dialect has those)."""
    return click.argument("path", type=click.Path(path_type=Path))
