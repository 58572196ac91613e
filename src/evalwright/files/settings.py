"""Settings from environment variables."""

from __future__ import annotations

import math
from collections.abc import Mapping

from evalwright.errors import InputError

__all__ = ["SettingError", "positive_number"]


class SettingError(InputError, ValueError):
    """An environment variable that should hold a positive number and does not; the message names it."""


def positive_number(environment: Mapping[str, str], variable: str, default: float) -> float:
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
