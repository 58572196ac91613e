"""Baselines: `<runs>/baselines/<name of the eval>` points to the run that later ones are compared with."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from evalwright.errors import InputError, Problem
from evalwright.files.durable import storage_error
from evalwright.files.paths import safe_id
from evalwright.run.locations import RUNS, is_on_a_server

__all__ = ["baseline_of", "is_promoted", "promote", "why_no_baseline"]

_FOLDER = "baselines"


def promote(run: Path, eval_name: str, runs_root: Path | None = None) -> Path:
    """Make a run the baseline of its eval, replacing an earlier one atomically. Returns the link to it.

    For a run in a database, the link's target is the run's address. Raises InputError and StorageError if it cannot be
    created.
    """
    link = _link(run, eval_name, runs_root)
    if link.exists() and not link.is_symlink():
        raise InputError(Problem(str(link), "is not a link to a baseline: move it away"))
    waiting = link.with_name(f".{link.name}.{os.getpid()}.new")  # hidden: if this process dies, it is no baseline
    try:
        link.parent.mkdir(parents=True, exist_ok=True)
        waiting.unlink(missing_ok=True)
        own = str(run) if is_on_a_server(run) else os.path.relpath(_absolute(run), link.parent.resolve())
        waiting.symlink_to(own)
        try:
            waiting.replace(link)
        finally:
            waiting.unlink(missing_ok=True)
    except OSError as error:
        raise storage_error("make", link, error) from error
    return link


def baseline_of(run: Path, eval_name: str, runs_root: Path | None = None) -> Path | None:
    """The run that was promoted last, if any."""
    link = _link(run, eval_name, runs_root)
    if not link.is_symlink():
        return None
    target = _target(link)
    return target if is_on_a_server(target) or target.exists() or _is_in_a_file(target) else None


def is_promoted(run: Path) -> bool:
    """Whether the run is the baseline of a suite."""
    whole = run if is_on_a_server(run) else _absolute(run)
    with suppress(OSError):
        links = [link for link in _folder(run, None).glob("[!.]*") if link.is_symlink()]
        return any(_target(link) == whole for link in links)
    return False


def why_no_baseline(run: Path, eval_name: str, runs_root: Path | None = None) -> str:
    """Why `baseline_of` finds none: no run was promoted, or the promoted one is gone."""
    link = _link(run, eval_name, runs_root)
    if link.is_symlink():
        return f"the baseline of {eval_name!r} is gone: {link} leads to {link.readlink()}; promote another run"
    return f"no baseline for {eval_name!r} in {link.parent}: promote a run first"


def _target(link: Path) -> Path:
    target = link.readlink()
    return target if is_on_a_server(target) else Path(os.path.normpath(link.parent.resolve() / target))


def _folder(run: Path, runs_root: Path | None) -> Path:
    if runs_root is None:
        whole = _absolute(run)
        runs_root = RUNS if is_on_a_server(run) else whole.parent.parent if _is_in_a_file(whole) else whole.parent
    return runs_root / _FOLDER


def _link(run: Path, eval_name: str, runs_root: Path | None) -> Path:
    name = safe_id(eval_name)
    if name != eval_name:  # 订单 and 客服 would both be `run`, and each the baseline of the other
        name += f"-{hashlib.sha256(eval_name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
    return _folder(run, runs_root) / name


def _absolute(run: Path) -> Path:
    return run.parent.resolve() / run.name if _is_in_a_file(run) else run.resolve()


def _is_in_a_file(run: Path) -> bool:
    """Whether this is a run in the file of a database: `runs.db/RUN_ID`."""
    return run.parent.is_file()
