"""Users' programs, run with the names that they import bound to ours: `python -m PACKAGE FILE ...`."""

from __future__ import annotations

import importlib.util
import os
import runpy
import stat
import sys
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from evalwright.formats.shims import serve
from evalwright.model.format import Format

__all__ = ["run_with"]


def run_with(suite_format: Format, package: str) -> None:
    """Bind the names and run the script or the `-m MODULE` of the command line, with the rest as its arguments."""
    arguments = sys.argv[1:]
    if not arguments or arguments == ["-m"]:
        _refuse(f"usage: python -m {package} FILE ... | -m MODULE ...")
    if arguments[0] != "-m" and not os.path.exists(arguments[0]):
        _refuse(f"there is no file {arguments[0]!r}")
    serve(suite_format)
    if arguments[0] == "-m":
        if not _is_module(arguments[1]):
            _refuse(f"there is no module {arguments[1]!r}")
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    sys.argv = arguments
    sys.path[0] = str(Path(arguments[0]).resolve().parent)
    if stat.S_ISREG(mode := os.stat(arguments[0]).st_mode) or stat.S_ISDIR(mode):  # noqa: PTH116
        runpy.run_path(arguments[0], run_name="__main__")
    else:
        _run_stream(arguments[0])


def _run_stream(name: str) -> None:
    """Run something that can be read only once, such as a pipe: `runpy` would open it twice and find nothing."""
    main = sys.modules["__main__"] = ModuleType("__main__")
    main.__file__ = name
    exec(compile(Path(name).read_bytes(), name, "exec"), vars(main))  # noqa: S102 - the user's own program, as runpy runs it


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ModuleNotFoundError, ValueError):
        return False


def _refuse(message: str) -> NoReturn:
    print(message, file=sys.stderr)
    sys.exit(2)
