"""Single characters and character classes of JavaScript regular expressions, rewritten for Python."""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["CLASSES", "BeyondPython", "Characters", "InvalidPattern", "code_units", "escaped"]

CLASSES: Mapping[str, str] = {
    "d": r"0-9",
    "D": r"\x00-\x2f\x3a-\U0010ffff",
    "w": r"0-9A-Z_a-z",
    "W": r"\x00-\x2f\x3a-\x40\x5b-\x5e\x60\x7b-\U0010ffff",
    "s": r"\x09-\x0d\x20\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff",
    "S": r"\x00-\x08\x0e-\x1f\x21-\x9f\xa1-\u167f\u1681-\u1fff\u200b-\u2027\u202a-\u202e\u2030-\u205e\u2060-\u2fff"
    r"\u3001-\ufefe\uff00-\U0010ffff",
}
"""What `\\d`, `\\s`, ... stand for."""
_CONTROLS = {"f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_SYNTAX = frozenset("^$\\.*+?()[]{}|/")
_HEX = re.compile(r"[0-9a-fA-F]+")
_BEYOND_ASCII = 0x80
_OCTAL = re.compile(r"[0-3][0-7]{0,2}|[4-7][0-7]?")


class InvalidPattern(ValueError):
    """It is not a valid JavaScript regular expression."""


class BeyondPython(ValueError):
    """Python has no equivalent."""


def code_units(text: str) -> str:
    """A text with one character for each UTF-16 code unit, as expressions without the flag `u` see it."""
    if text.isascii() or max(text) <= "\uffff":
        return text
    return "".join(
        sign if sign <= "\uffff" else chr(0xD7C0 + (ord(sign) >> 10)) + chr(0xDC00 + (ord(sign) & 0x3FF))
        for sign in text
    )


class Characters:
    """Reads characters of an expression from left to right."""

    def __init__(self, expression: str, names: Mapping[str, int], flags: str) -> None:
        self._expression, self._names = expression, names
        self._unicode, self._ignores_case = "u" in flags, "i" in flags
        self._position = 0

    def _next(self) -> str:
        return self._expression[self._position : self._position + 1]

    def _take(self, text: str) -> bool:
        is_next = self._expression.startswith(text, self._position)
        self._position += len(text) if is_next else 0
        return is_next

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self._expression, self._position)
        self._position = match.end() if match is not None else self._position
        return match

    def _class(self) -> str:
        negated = self._take("^")
        items: list[str] = []
        while not self._take("]"):
            low = self._member()
            if not self._expression.startswith("-", self._position) or self._expression[
                self._position + 1 : self._position + 2
            ] in ("", "]"):
                items.append(self._item(low))
                continue
            self._position += 1
            high = self._member()
            if isinstance(low, str) or isinstance(high, str):
                if self._unicode:
                    raise InvalidPattern("a class of characters cannot be the end of a range")
                items += [self._item(low), r"\x2d", self._item(high)]
            elif low > high:
                raise InvalidPattern("a range of characters is out of order")
            elif self._ignores_case and high >= _BEYOND_ASCII:
                raise BeyondPython("a range beyond ASCII whose case does not matter")
            else:
                items.append(f"{escaped(low)}-{escaped(high)}")
        if not items:
            return r"[\x00-\U0010ffff]" if negated else "(?!)"
        return f"[{'^' if negated else ''}{''.join(items)}]"

    def _item(self, member: int | str) -> str:
        return CLASSES[member] if isinstance(member, str) else self._sign(member)

    def _sign(self, point: int) -> str:
        """A character in Python's syntax, which ignores the case of ASCII letters only."""
        if self._ignores_case and point >= _BEYOND_ASCII and chr(point).lower() != chr(point).upper():
            raise BeyondPython(f"the case of {chr(point)!r} does not matter")
        return escaped(point)

    def _member(self) -> int | str:
        """A member of a class, or the name of a class within it."""
        sign = self._next()
        if not sign:
            raise InvalidPattern("a class is not closed")
        self._position += 1
        return self._character(in_class=True) if sign == "\\" else ord(sign)

    def _character(self, *, in_class: bool) -> int | str:
        """The meaning of an escape, after its backslash."""
        sign = self._next()
        if not sign:
            raise InvalidPattern(r"\ at the end")
        self._position += 1
        if sign in CLASSES:
            return sign
        if sign in _CONTROLS:
            return _CONTROLS[sign]
        if in_class and sign == "b":
            return 8
        if sign in "xu":
            return self._hexadecimal(sign)
        if sign == "c":
            return self._control(in_class=in_class)
        if sign.isdecimal() and sign.isascii():
            return self._octal(sign)
        if self._unicode:
            return self._escaped_in_unicode(sign, in_class=in_class)
        if sign == "k" and self._names:
            raise InvalidPattern(r"\k names no group")
        return ord(sign)

    def _escaped_in_unicode(self, sign: str, *, in_class: bool) -> int:
        if sign in "pP":
            raise BeyondPython("it asks for properties of Unicode")
        if sign in _SYNTAX or (in_class and sign == "-"):
            return ord(sign)
        raise InvalidPattern(f"invalid escape \\{sign}")

    def _hexadecimal(self, sign: str) -> int:
        if sign == "u" and self._unicode and self._take("{"):
            digits = self._match(_HEX)
            if digits is None or not self._take("}") or int(digits[0], 16) > 0x10FFFF:
                raise InvalidPattern("invalid escape \\u{")
            return int(digits[0], 16)
        code = self._digits(2 if sign == "x" else 4)
        if code is None:
            if self._unicode:
                raise InvalidPattern(f"invalid escape \\{sign}")
            return ord(sign)
        if self._unicode and 0xD800 <= code < 0xDC00 and self._expression.startswith("\\u", self._position):
            before = self._position
            self._position += 2
            low = self._digits(4)
            if low is not None and 0xDC00 <= low < 0xE000:
                return 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
            self._position = before
        return code

    def _digits(self, count: int) -> int | None:
        text = self._expression[self._position : self._position + count]
        if len(text) < count or not _HEX.fullmatch(text):
            return None
        self._position += count
        return int(text, 16)

    def _control(self, *, in_class: bool) -> int:
        sign = self._next()
        if sign.isascii() and (sign.isalpha() or (in_class and not self._unicode and (sign.isdigit() or sign == "_"))):
            self._position += 1
            return ord(sign) % 32
        if self._unicode:
            raise InvalidPattern(r"invalid escape \c")
        self._position -= 1  # the backslash itself is meant, and the c follows it
        return ord("\\")

    def _octal(self, sign: str) -> int:
        if self._unicode:
            if sign != "0" or self._next().isdecimal():
                raise InvalidPattern(f"invalid escape \\{sign}")
            return 0
        if sign in "89":
            return ord(sign)
        self._position -= 1
        match = self._match(_OCTAL)
        assert match is not None
        return int(match[0], 8)


def escaped(point: int) -> str:
    """A character in the syntax of Python's expressions, inside or outside a class."""
    if point < _BEYOND_ASCII and chr(point).isalnum():
        return chr(point)
    return f"\\x{point:02x}" if point < 0x100 else f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"
