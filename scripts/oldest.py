"""The oldest versions that pyproject.toml allows, as arguments of pip.

    python scripts/oldest.py EXTRA...

Prints what evalwright itself and these extras need, each pinned to its lower bound.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path


def main(extras: list[str]) -> None:
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
    needed = [*project["dependencies"], *(name for extra in extras for name in project["optional-dependencies"][extra])]
    print(*(requirement.replace(">=", "==") for requirement in dict.fromkeys(needed)))


main(sys.argv[1:])
