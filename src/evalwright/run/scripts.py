"""Programs of users run with names bound to ours that they import: `python -m PACKAGE FILE ...`."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from pathlib import Path

__all__ = ["run_with"]


def run_with(serve: Callable[[], None], package: str) -> None:
    """Bind the names and run the script or the `-m MODULE` of the command line, with the rest as its arguments."""
    arguments = sys.argv[1:]
    if not arguments or arguments == ["-m"]:
        sys.exit(f"usage: python -m {package} FILE ... | -m MODULE ...")
    serve()
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    sys.argv = arguments
    sys.path[0] = str(Path(arguments[0]).resolve().parent)
    runpy.run_path(arguments[0], run_name="__main__")
