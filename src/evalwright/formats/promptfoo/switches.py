"""Variables of the environment that turn parts of promptfoo on or off."""

from __future__ import annotations

from evalwright.session import environment

__all__ = ["is_on"]

_ON = ("1", "true", "yes", "yup", "yeppers")


def is_on(variable: str) -> bool:
    """Whether the variable is set to one of the words that promptfoo takes for true."""
    return environment().get(variable, "").lower() in _ON
