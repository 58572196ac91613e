"""What a system names on this machine, and whether it can move to another one: the folder that is sent there."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from evalwright.model.plan import Executor, Variant

__all__ = ["CALL_NOTHING", "cluster_address", "folder_to_send", "named_outside", "relative_to"]

CALL_NOTHING = ("replay", "in_test")
"""Systems whose answers exist already: they stay in this process, wherever others are called."""
_CURE = "move it there, or name a folder with both as run.executor.working_dir"
_PROGRAM = ("command", "setup", "cleanup", "python")
"""Keys that name programs, which are installed on each machine."""


def cluster_address(executor: Executor) -> str | None:
    """The address of the cluster; None if one is started on this machine for the run."""
    return executor.address or os.environ.get("RAY_ADDRESS") or None


def folder_to_send(suite: Path, executor: Executor, variants: Sequence[Variant]) -> Path | None:
    """The folder that is copied to the workers; None if they already have all they need.

    Unless the executor names one, it is the suite's folder, or the working directory if that contains the suite and,
    unlike the suite's folder, the systems' code.
    """
    folder, here = suite.resolve().parent, Path.cwd()
    if executor.working_dir is None or cluster_address(executor) is None:
        return None
    if isinstance(executor.working_dir, str):
        return (folder / Path(executor.working_dir).expanduser()).resolve()
    if folder == here or not folder.is_relative_to(here):
        return folder
    for variant in variants:
        target = variant.config.get("target")
        if variant.adapter != "python_function" or not isinstance(target, str):
            continue
        module = target.partition(":")[0].partition(".")[0]
        if not _has(folder, module) and _has(here, module):
            return here
    return folder


def named_outside(config: Mapping[str, Any], folder: Path) -> Iterator[tuple[str, str]]:
    """Each file or folder of this machine outside `folder` that a configuration names, by its key."""
    for key, value in config.items():
        for number, text in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(text, str) or not _is_here(text):
                continue
            if key in _PROGRAM and number == 0:
                continue
            path = Path(os.path.normpath(text))
            if not path.is_relative_to(folder) and not path.is_relative_to(sys.prefix):
                place = f"{key}[{number}]" if isinstance(value, list) else key
                yield place, f"{text} is outside of {folder}, which the workers get a copy of: {_CURE}"


def relative_to(folder: Path, here: str, value: Any) -> Any:
    """Plain data with `here` in place of `folder` at the start of each path in it, also within longer texts."""
    pattern = re.compile(rf"(?<![\w./~-]){re.escape(str(folder))}(?=$|[/\s'\":;,)\]])")

    def moved(value: Any) -> Any:
        if isinstance(value, str):
            return pattern.sub(here, value)
        if isinstance(value, dict):
            return {key: moved(item) for key, item in value.items()}
        return [*map(moved, value)] if isinstance(value, list) else value

    return moved(value)


def _has(folder: Path, module: str) -> bool:
    return PathFinder.find_spec(module, [str(folder)]) is not None


def _is_here(text: str) -> bool:
    try:
        return text.startswith("/") and len(Path(text).parts) > 1 and os.path.exists(text)
    except ValueError:
        return False
