"""Values and texts in the reasons that evaluators give: short enough for a list of failures."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping

__all__ = ["assigned", "called_with", "listed", "number", "shorten", "shown"]

LONGEST = 120
"""Characters of quoted text in a reason."""

_repr = reprlib.Repr()
_repr.maxdict = _repr.maxlist = 20
_repr.maxstring = _repr.maxother = _repr.maxlong = LONGEST


def shorten(text: str, longest: int = LONGEST) -> str:
    """The text, or its beginning with an ellipsis."""
    return text if len(text) <= longest else text[: longest - 3] + "..."


def shown(value: object, longest: int = LONGEST) -> str:
    """A value as Python writes it, shortened; a huge value is not written out first."""
    if isinstance(value, str):
        return shorten(repr(value[: longest + 1]), longest)
    try:
        return shorten(_repr.repr(value), longest)
    except ValueError:  # an integer of more digits than Python writes
        return f"a huge {type(value).__name__}"


def listed(words: Iterable[str]) -> str:
    """Words in quotes, as many as there is room for."""
    return shorten(", ".join(shown(word, 60) for word in words))


def number(value: float) -> str:
    """A number without the noise of binary fractions: `0.3`, `1500`."""
    return shown(value) if isinstance(value, int) else f"{value:.15g}"


def called_with(name: str, arguments: Mapping[str, object]) -> str:
    """A call as Python writes it: `book(flight='HAT001', seats=2)`."""
    return f"{name}({shorten(', '.join(assigned(arguments)), 80)})"


def assigned(arguments: Mapping[str, object]) -> list[str]:
    """`key=value` for each argument."""
    return [f"{key}={shown(value, 40)}" for key, value in arguments.items()]
