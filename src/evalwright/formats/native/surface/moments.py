"""Times and the ids of runs made of them, as in `eval_harness.core.time`."""

from __future__ import annotations

from datetime import UTC, datetime

__all__ = ["make_run_id", "utc_now"]


def utc_now() -> datetime:
    return datetime.now(UTC)


def make_run_id(eval_name: str) -> str:
    return f"{utc_now():%Y-%m-%dT%H-%M-%S}_{eval_name.replace(':', '-')}"
