"""`python -m evalwright.pixie FILE ...`: a script, or `-m MODULE ...`, that imports `pixie` gets our surface."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from evalwright.pixie.shim import serve


def main() -> None:
    """Run what the command line names, with the rest of it as its arguments."""
    arguments = sys.argv[1:]
    if not arguments or arguments == ["-m"]:
        sys.exit("usage: python -m evalwright.pixie FILE ... | -m MODULE ...")
    serve()
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    sys.argv = arguments
    sys.path[0] = str(Path(arguments[0]).resolve().parent)
    runpy.run_path(arguments[0], run_name="__main__")


main()
