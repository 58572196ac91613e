"""Settings by environment variables, read when they are asked for (specification pixie, 4.4)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from evalwright.files.dotenv import load_dotenv, nearest_dotenv
from evalwright.files.settings import SettingError, positive_number

__all__ = ["PixieConfig", "RateLimitConfig", "SettingError", "get_config"]

_LIMITS = {"rps": 4.0, "rpm": 50.0, "tps": 10_000.0, "tpm": 500_000.0}
_TRUE = ("1", "true", "yes", "on")


@dataclass(frozen=True)
class RateLimitConfig:
    """At most so many questions to models and tokens a second, and a minute."""

    rps: float = _LIMITS["rps"]
    rpm: float = _LIMITS["rpm"]
    tps: float = _LIMITS["tps"]
    tpm: float = _LIMITS["tpm"]


@dataclass(frozen=True)
class PixieConfig:
    """Where things are and how fast they may go."""

    root: str
    dataset_dir: str
    rate_limits: RateLimitConfig | None
    runnable_concurrency: int
    analyze_model: str
    tracing_enabled: bool
    trace_output: str | None


def get_config() -> PixieConfig:
    """The settings of this moment, of the nearest `.env` too. Raises SettingError."""
    load_dotenv(nearest_dotenv(Path.cwd()))
    root = os.environ.get("PIXIE_ROOT") or "pixie_qa"
    return PixieConfig(
        root=root,
        dataset_dir=os.environ.get("PIXIE_DATASET_DIR") or str(Path(root) / "datasets"),
        rate_limits=_rate_limits(),
        runnable_concurrency=max(1, int(positive_number("PIXIE_RUNNABLE_CONCURRENCY", 4))),
        analyze_model=os.environ.get("PIXIE_ANALYZE_MODEL") or "gpt-4o-mini",
        tracing_enabled=_is_on(os.environ.get("PIXIE_TRACING", "")),
        trace_output=os.environ.get("PIXIE_TRACE_OUTPUT") or None,
    )


def _is_on(said: str) -> bool:
    return said.strip().lower() in _TRUE


def _rate_limits() -> RateLimitConfig | None:
    said = os.environ.get("PIXIE_RATE_LIMIT_ENABLED")
    if said is not None and not _is_on(said):
        return None
    if said is None and not any(f"PIXIE_RATE_LIMIT_{key.upper()}" in os.environ for key in _LIMITS):
        return None
    return RateLimitConfig(
        **{key: positive_number(f"PIXIE_RATE_LIMIT_{key.upper()}", value) for key, value in _LIMITS.items()}
    )
