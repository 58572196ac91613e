"""Stands in for the package `northstar` where it is not installed: of it, `northstar.evals` is served alone."""

from __future__ import annotations

from typing import NoReturn

_RECORDING = (
    "CaptureOptions", "Client", "Event", "Northstar", "NorthstarClient", "Run", "Session", "Span", "replay", "sdk",
)  # fmt: skip
"""What the original records runs with."""


def __getattr__(name: str) -> NoReturn:
    if name in _RECORDING:
        raise ImportError(
            f"{name} of northstar records runs, which evalwright does not: it serves northstar.evals (datasets, "
            "graders, suites) and reads recorded runs. With northstar installed, its own names are there as well."
        )
    raise AttributeError(f"module 'northstar' has no attribute {name!r}; evalwright serves northstar.evals alone")
