"""`workspace_template`: the folder of which each cell gets a fresh copy that its command works in."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from evalwright.errors import TargetError

__all__ = ["copy_template", "links_in"]

_LEFT_OUT = ".git"


def copy_template(template: Path, into: Path) -> Path:
    """Copy a template into a new folder, without `.git`. Raises TargetError.

    A link that leads out of the template becomes what it leads to: the agent must not write through it.
    """
    try:
        shutil.copytree(template, into, symlinks=True, ignore=shutil.ignore_patterns(_LEFT_OUT))
        for path in links_in(into):
            origin = template / path.relative_to(into)
            if not path.resolve().is_relative_to(into.resolve()) or os.path.isabs(path.readlink()):  # noqa: PTH117
                path.unlink()
                if origin.is_dir():
                    shutil.copytree(origin, path, ignore=shutil.ignore_patterns(_LEFT_OUT))
                elif origin.exists():
                    shutil.copy2(origin, path)
    except (OSError, shutil.Error, RuntimeError) as error:
        raise TargetError(f"no workspace could be made of {str(template)!r}: {error}", "workspace_error") from None
    return into


def links_in(folder: Path) -> list[Path]:
    """The symbolic links in a folder, which are not followed."""
    return [
        Path(place, name)
        for place, folders, names in os.walk(folder)
        for name in (*folders, *names)
        if os.path.islink(os.path.join(place, name))  # noqa: PTH114, PTH118 - a call for each file
    ]
