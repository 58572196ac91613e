"""Regular expressions of JavaScript as patterns of Python."""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["pattern_of"]

_DIFFERENT = re.compile(
    r"\\(?:[dDwWsS]|u\{[0-9a-fA-F]+\}|k<[^>]+>|p\{[^}]*\}|P\{[^}]*\}|/|.)|\(\?<(?![=!])|\$|\[\^?\]|\[|\]", re.DOTALL
)
_CLASSES = {"d": "0-9", "w": "A-Za-z0-9_"}


@lru_cache(512)
def pattern_of(expression: str) -> re.Pattern[str]:
    """The pattern that means the same. Raises re.error, ValueError."""
    depth = 0

    def meant(found: re.Match[str]) -> str:
        nonlocal depth
        part = found[0]
        if part.startswith("\\"):
            return _escape(part, inside=depth > 0)
        if part == "[]" and not depth:
            return "(?!)"
        if part == "[^]" and not depth:
            return r"[\s\S]"
        if part == "[":
            depth, was = 1, depth
            return r"\[" if was else "["
        if part == "]":
            depth = 0
            return "]"
        if depth:
            return part
        return {"$": r"\Z", "(?<": "(?P<"}.get(part, part)

    return re.compile(_DIFFERENT.sub(meant, expression))


def _escape(part: str, *, inside: bool) -> str:
    sign = part[1]
    if sign in "dw":
        return _CLASSES[sign] if inside else f"[{_CLASSES[sign]}]"
    if sign in "DW" and not inside:
        return f"[^{_CLASSES[sign.lower()]}]"
    if part.startswith("\\u{"):
        return re.escape(chr(int(part[3:-1], 16)))
    if part.startswith("\\k<"):
        return f"(?P={part[3:-1]})"
    if part.startswith(("\\p{", "\\P{")):
        raise ValueError(f"{part} needs the flag u, which has no place here")
    return "/" if part == "\\/" else part
