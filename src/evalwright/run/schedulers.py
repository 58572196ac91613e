"""Which shard of a run this process works on: named by the user, or by a scheduler's variables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from evalwright.errors import InputError
from evalwright.model.plan import Shard

__all__ = ["shard_from"]

_TEXT = re.compile(r"(auto|\d{1,6})/(\d{1,6})|auto")


class _Scheduler(NamedTuple):
    """The variables by which a scheduler tells a task its number, which counts from `first`, and how many there are."""

    task: str
    first: int | str
    """A number, or the variable that has it."""
    total: str = ""


_SCHEDULERS = (
    _Scheduler("JOB_COMPLETION_INDEX", 0),  # Kubernetes, indexed jobs
    _Scheduler("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_COUNT"),
    _Scheduler("CI_NODE_INDEX", 1, "CI_NODE_TOTAL"),  # GitLab
    _Scheduler("CLOUD_RUN_TASK_INDEX", 0, "CLOUD_RUN_TASK_COUNT"),
    _Scheduler("AWS_BATCH_JOB_ARRAY_INDEX", 0),
)


def shard_from(text: str, environ: Mapping[str, str]) -> Shard:
    """The shard that `k/n`, `auto/n` or `auto` means, in the environment of a scheduler's task. Raises InputError."""
    match = _TEXT.fullmatch(text.strip())
    if match is None:
        raise InputError(f"--shard {text}: expected k/n, such as 2/8, or auto/n or auto under a scheduler")
    index = int(match[1]) if match[1] not in (None, "auto") else _agreed_number(text, _indices(environ), _index_names())
    of = (
        int(match[2])
        if match[2]
        else _agreed_number(text, _totals(environ), [scheduler.total for scheduler in _SCHEDULERS if scheduler.total])
    )
    if match[2] is None:
        _must_fit(text, _indices(environ), _totals(environ))
    if of < 1:
        raise InputError(f"--shard {text}: expected 1 shard or more, found {of}")
    if not 1 <= index <= of:
        raise InputError(f"--shard {text}: expected a shard from 1 to {of}, found {index}")
    return Shard(index, of)


def _agreed_number(text: str, totals: Mapping[str, int], names: list[str]) -> int:
    if not totals:
        raise InputError(f"--shard {text}: no scheduler sets it; expected one of the variables {', '.join(names)}")
    if len({*totals.values()}) > 1:
        message = ", ".join(f"{name} says {number}" for name, number in totals.items())
        raise InputError(
            f"--shard {text}: the variables of several schedulers disagree: {message}; name the shard, as k/n"
        )
    return next(iter(totals.values()))


def _index_names() -> list[str]:
    return [scheduler.task for scheduler in _SCHEDULERS]


def _must_fit(text: str, indices: Mapping[str, int], totals: Mapping[str, int]) -> None:
    """Raise InputError if no scheduler sets both numbers: how many tasks another has says nothing about this one."""
    if not any(scheduler.task in indices and scheduler.total in totals for scheduler in _SCHEDULERS):
        names = f"{', '.join(indices)} and {', '.join(totals)}"
        raise InputError(f"--shard {text}: {names} are variables of different schedulers; name the shard, as k/n")


def _indices(environ: Mapping[str, str]) -> dict[str, int]:
    """The number of this task, from 1, by the variable that contains it."""
    indices = {}
    for task, first, _ in _SCHEDULERS:
        if environ.get(task):
            least = _number(environ, first) if isinstance(first, str) else first
            indices[task] = _number(environ, task) - least + 1
    return indices


def _totals(environ: Mapping[str, str]) -> dict[str, int]:
    return {
        scheduler.total: _number(environ, scheduler.total)
        for scheduler in _SCHEDULERS
        if scheduler.total and environ.get(scheduler.total)
    }


def _number(environ: Mapping[str, str], name: str) -> int:
    text = environ.get(name, "")
    if not text.isascii() or not text.isdigit():
        raise InputError(f"--shard: the variable {name} should be a whole number, found {text!r}")
    return int(text)
