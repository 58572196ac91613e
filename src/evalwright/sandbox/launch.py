"""Becomes another program behind the walls. Imports the standard library only, to start fast."""

from __future__ import annotations

import os
from pathlib import Path

from evalwright.sandbox.walls import Walls

__all__ = ["main"]


def main(command: list[str], readable: list[str]) -> None:
    """Run `command`, an absolute path and arguments, with an empty environment. Missing walls are its last argument.

    It can read its own installation and the `readable` places.
    """
    walls = Walls(Path(command[0]).parents[1], *map(Path, readable))
    missing = walls.raise_up()
    walls.enter_to_stay()
    os.execve(command[0], [*command, ",".join(missing)], {})
