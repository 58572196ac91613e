"""Texts with some of their phrases marked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["Piece", "in_pieces"]


class Piece(NamedTuple):
    """A part of a text; `style` is empty if it is not marked."""

    text: str
    style: str


def in_pieces(text: str, phrases: Mapping[str, str]) -> list[Piece]:
    """A text in pieces; `phrases` are found in upper and lower case, and have the style of their marks."""
    if not phrases:
        return [Piece(text, "")]
    known = {phrase.lower(): style for phrase, style in phrases.items()}
    pattern = "|".join(map(re.escape, sorted(known, key=len, reverse=True)))
    other = next(iter(known.values()))  # of a match that lower case spells otherwise: "İ"
    parts = re.split(f"({pattern})", text, flags=re.IGNORECASE)
    pieces = [Piece(part, known.get(part.lower(), other) if at % 2 else "") for at, part in enumerate(parts)]
    return [piece for piece in pieces if piece.text]
