"""Settings from environment variables, read when they are needed."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from evalwright.errors import InputError
from evalwright.files.dotenv import nearest_dotenv, read_dotenv
from evalwright.session import environment, learn

__all__ = ["PixieConfig", "RateLimitConfig", "SettingError", "get_config", "runnable_concurrency"]

_LIMITS = {"rps": 4.0, "rpm": 50.0, "tps": 10_000.0, "tpm": 500_000.0}
_CONCURRENT = 4.0
_TRUE = ("1", "true", "yes", "on")


@dataclass(frozen=True)
class RateLimitConfig:
    """The maximum number of requests to models, and of tokens, per second and per minute."""

    rps: float = _LIMITS["rps"]
    rpm: float = _LIMITS["rpm"]
    tps: float = _LIMITS["tps"]
    tpm: float = _LIMITS["tpm"]


@dataclass(frozen=True)
class PixieConfig:
    """Where files are, and how fast models may be called."""

    root: str
    dataset_dir: str
    rate_limits: RateLimitConfig | None
    runnable_concurrency: int
    analyze_model: str
    tracing_enabled: bool
    trace_output: str | None


def get_config() -> PixieConfig:
    """The current settings, including those of the nearest `.env`. Raises SettingError.

    Like the original, it puts the variables of that file into the environment of the calling program; within a run they
    stay in its session.
    """
    values = read_dotenv(nearest_dotenv(Path.cwd()))
    if not learn(values):
        for name, value in values.items():
            os.environ.setdefault(name, value)
    known = environment()
    root = known.get("PIXIE_ROOT") or "pixie_qa"
    return PixieConfig(
        root=root,
        dataset_dir=known.get("PIXIE_DATASET_DIR") or str(Path(root) / "datasets"),
        rate_limits=_rate_limits(known),
        runnable_concurrency=runnable_concurrency(known),
        analyze_model=known.get("PIXIE_ANALYZE_MODEL") or "gpt-4o-mini",
        tracing_enabled=_is_on(known.get("PIXIE_TRACING", "")),
        trace_output=known.get("PIXIE_TRACE_OUTPUT") or None,
    )


def _is_on(value: str) -> bool:
    return value.strip().lower() in _TRUE


def _rate_limits(known: Mapping[str, str]) -> RateLimitConfig | None:
    PIXIE_RATE_LIMIT_ENABLED = known.get("PIXIE_RATE_LIMIT_ENABLED")
    if PIXIE_RATE_LIMIT_ENABLED is not None and not _is_on(PIXIE_RATE_LIMIT_ENABLED):
        return None
    if PIXIE_RATE_LIMIT_ENABLED is None and not any(f"PIXIE_RATE_LIMIT_{key.upper()}" in known for key in _LIMITS):
        return None
    return RateLimitConfig(
        **{key: _positive_number(known, f"PIXIE_RATE_LIMIT_{key.upper()}", value) for key, value in _LIMITS.items()}
    )


class SettingError(InputError, ValueError):
    """An environment variable that should hold a positive number and does not; the message names it."""


def runnable_concurrency(environment: Mapping[str, str]) -> int:
    """How many entries run at a time. Raises SettingError."""
    variable = "PIXIE_RUNNABLE_CONCURRENCY"
    number = _positive_number(environment, variable, _CONCURRENT)
    if not number.is_integer():
        raise SettingError(f"{variable}: expected a whole number, found {environment[variable]!r}")
    return int(number)


def _positive_number(environment: Mapping[str, str], variable: str, default: float) -> float:
    """The number in an environment variable, or `default` if it is unset or blank. Raises SettingError."""
    text = environment.get(variable)
    if text is None or not text.strip():
        return default
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise SettingError(f"{variable}: expected a number above 0, found {text!r}")
    return number
