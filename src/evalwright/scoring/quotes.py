"""Quoted text in the reasons of verdicts: what differs from case to case, while the rest says why."""

from __future__ import annotations

import re

__all__ = ["QUOTED", "beginning"]

_LONGEST = 2_000
QUOTED: re.Pattern[str] = re.compile(
    # the opening mark comes first, as a set of characters, so that only where there is one is anything else tried;
    # what can neither end the quote nor has to be looked at is taken at once: `++` returns nothing of it; with a limit
    # on the rest, many marks that end nowhere do not take seconds
    r"(['\"`“«])(?:"
    r"(?<=['\"])(?<!\w.)(?:[^\\\n'\".…]++|\\.|(?!\1)['\".…]|\1(?=\w)){0,200}?"
    r"(?:\1(?!\w)|(?:\.\.\.|…)(?=$|\)|; |, (?:['\"]|\w+=)))"
    r"|(?<=`)[^`\n]*`|(?<=“)[^”\n]*”|(?<=«)[^»\n]*»)"
)
"""A quote, even if it was cut off and others follow; an apostrophe within a word is not one."""


def beginning(reason: str) -> str:
    """The first 2,000 characters, which are enough to compare reasons, with an ellipsis if there are more."""
    return reason if len(reason) <= _LONGEST else f"{reason[:_LONGEST]}…"
