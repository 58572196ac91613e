"""Settings by variables of the environment."""

from __future__ import annotations

import math
import os

from evalwright.errors import InputError

__all__ = ["SettingError", "positive_number"]


class SettingError(InputError, ValueError):
    """A variable that holds no number where one is needed; the message names it."""


def positive_number(variable: str, default: float) -> float:
    """The number in a variable; the default where that is unset or blank. Raises SettingError."""
    text = os.environ.get(variable)
    if text is None or not text.strip():
        return default
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise SettingError(f"{variable}: expected a number above 0, found {text!r}")
    return number
