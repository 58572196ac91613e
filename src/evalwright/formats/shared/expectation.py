"""What pydantic expected, in the words of the person who writes the file."""

from __future__ import annotations

import re

__all__ = ["expectation"]


def expectation(message: str) -> str:
    """A message of pydantic in words that fit a file: "expected a mapping", not "a valid dictionary"."""
    message = re.sub(r"valid dictionary( or instance of \w+)?", "mapping", message.removeprefix("Value error, "))
    message = (
        message.replace("Input should be", "expected").replace("a valid ", "a ").replace("a integer", "an integer")
    )
    return message[0].lower() + message[1:]
