"""Paths as arguments and options of commands."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import click

__all__ = ["PathParam"]

_NO_PATH = {
    errno.ENAMETOOLONG: "expected a path, found a text that is too long for one",
    errno.ELOOP: "expected a path, found links that lead in a circle",
}


class PathParam(click.Path):
    """A path, as `pathlib.Path` unless as text; whether something is there is checked where it is used.

    What can be no path is rejected: nothing, which Path takes for the working directory and a shell makes of a variable
    that is not set; names that are too long; and links in a circle.
    """

    def __init__(self, path_type: type[Path | str] = Path, *, file_okay: bool = True, dir_okay: bool = True) -> None:
        super().__init__(path_type=path_type, file_okay=file_okay, dir_okay=dir_okay)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not os.fspath(value):
            self.fail("expected a path, found nothing", param, ctx)
        try:
            os.stat(value)  # noqa: PTH116 - it may be text, which Path would change
        except OSError as error:
            if wrong := _NO_PATH.get(error.errno or 0):
                self.fail(f"{wrong}: {value!r:.60}", param, ctx)
        return super().convert(value, param, ctx)
