"""Regular expressions of JavaScript (ECMAScript 2025, with its annex B), rewritten for Python.

What is invalid there is invalid here, whatever Python makes of it. What Python cannot do in the same way is not
rewritten: in JavaScript, a reference to a group that did not take part matches; and Python does not know Unicode
classes.
"""

from __future__ import annotations

import re
from collections.abc import Set
from typing import NamedTuple

from evalwright.formats.shared.javascript.characters import (
    CLASSES,
    BeyondPython,
    Characters,
    InvalidPattern,
    code_units,
)

__all__ = ["InvalidFlags", "is_plain", "rewritten"]

_PLAIN = re.compile(r"\^?[A-Za-z0-9 _,:;=@!%&'\"<>/~-]*\$?")
_QUANTIFIER = re.compile(r"(?:([*+?])|\{([0-9]+)(?:(,)([0-9]*))?\})(\??)")
_BRACED = re.compile(r"\{[0-9]+(?:,[0-9]*)?\}")
_GROUPS = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]?|(\((?!\?))|\(\?<(?![=!])([^>]*)(>?)", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_$][\w$]*", re.ASCII)
_MODIFIERS = re.compile(r"\(\?[ims]*(?:-[ims]*)?:")
_FLAGS = frozenset("dgimsuvy")
_FOR_NODE = ({"v"}, {"y"}, {"i", "u"})
"""Flags without an equivalent in Python: sets of strings, a search at one place only, and case in all scripts."""
_BREAKS = r"\n\r\u2028\u2029"
_MOST = 2**32 - 2
"""The largest repetition count in Python."""
_MOST_GROUPS = 99
"""Python's references have at most two digits."""


class _Part(NamedTuple):
    """A piece of the expression for Python, and the groups that have certainly taken part once it has matched."""

    text: str
    groups: Set[int] = frozenset()
    repeatable: bool = True
    assertion: bool = False
    holds_groups: bool = False


class InvalidFlags(InvalidPattern):
    """Flags that JavaScript does not have, or not together."""


def is_plain(expression: str, flags: str = "") -> bool:
    """Whether an expression is literal text, possibly with `^` before it or `$` after it, and therefore valid."""
    return flags in ("", "u") and _PLAIN.fullmatch(expression) is not None


def rewritten(expression: str, flags: str = "") -> re.Pattern[str]:
    """The pattern that is found in the same texts; without the flag u, in their code units.

    Raises InvalidPattern (including InvalidFlags), BeyondPython.
    """
    if is_plain(expression, flags):
        return re.compile(f"{expression[:-1]}\\Z" if expression.endswith("$") else expression, re.ASCII)
    kinds = set(flags)
    if len(kinds) < len(flags) or kinds - _FLAGS or kinds >= {"u", "v"}:
        raise InvalidFlags(f"invalid flags {flags!r:.40}")
    if any(kinds >= some for some in _FOR_NODE):
        raise BeyondPython(f"it has the flags {flags!r}")
    try:
        text = _Reader(expression if "u" in kinds else code_units(expression), flags).whole()
        return re.compile(text, re.ASCII | (re.IGNORECASE if "i" in kinds else re.NOFLAG))
    except (re.error, OverflowError, RecursionError) as error:
        raise BeyondPython(str(error)) from None


class _Reader(Characters):
    """Reads an expression from left to right."""

    def __init__(self, expression: str, flags: str) -> None:
        self._groups: dict[str, int] = {}
        super().__init__(expression, self._groups, flags)
        self._begin, self._end = (f"(?<![^{_BREAKS}])", f"(?![^{_BREAKS}])") if "m" in flags else ("^", r"\Z")
        self._any = r"[\x00-\U0010ffff]" if "s" in flags else f"[^{_BREAKS}]"
        self._opened = self._count = 0
        for group in _GROUPS.finditer(expression):
            if group[1] or group[2] is not None:
                self._count += 1
            if group[2] is not None:
                self._name(group[2], closed=bool(group[3]))

    def _name(self, name: str, *, closed: bool) -> None:
        if not closed or (name.isascii() and "\\" not in name and not _NAME.fullmatch(name)):
            raise InvalidPattern(f"invalid name of a group: {name!r:.40}")
        if not name.isascii() or "\\" in name:
            raise BeyondPython("the name of a group has signs beyond ASCII")
        if name in self._groups:
            raise BeyondPython(f"two groups are called {name!r}")
        self._groups[name] = self._count

    def whole(self) -> str:
        alternatives, _ = self._alternatives(frozenset())
        if self._position < len(self._expression):
            raise InvalidPattern("unmatched ')'")
        return "|".join(alternatives)

    def _alternatives(self, known: Set[int]) -> tuple[list[str], Set[int]]:
        """The alternatives up to the end of the group, and the groups that have taken part after any of them."""
        alternatives = [self._sequence(known)]
        while self._take("|"):
            alternatives.append(self._sequence(known))
        return [text for text, _ in alternatives], frozenset.intersection(
            *(frozenset(groups) for _, groups in alternatives)
        )

    def _sequence(self, known: Set[int]) -> tuple[str, Set[int]]:
        parts, own = [], frozenset[int]()
        while self._next() not in ("", "|", ")"):
            part = self._repeated_part(self._term(known | own))
            parts.append(part.text)
            own |= part.groups
        return "".join(parts), own

    def _term(self, known: Set[int]) -> _Part:
        sign = self._next()
        if sign == "(":
            return self._group(known)
        if sign == "\\":
            return self._escape(known)
        if sign in "*+?" or (sign == "{" and _BRACED.match(self._expression, self._position)):
            raise InvalidPattern(f"nothing to repeat at {self._position}")
        if sign in "{}]" and self._unicode:
            raise InvalidPattern(f"a single {sign!r} at {self._position}")
        self._position += 1
        if sign == "[":
            return _Part(self._class())
        if sign in "^$":
            return _Part(self._begin if sign == "^" else self._end, repeatable=False)
        return _Part(self._any if sign == "." else self._sign(ord(sign)))

    def _repeated_part(self, part: _Part) -> _Part:
        quantifier = self._match(_QUANTIFIER) if part.repeatable else None
        if quantifier is None:
            return part
        sign, least, comma, most, lazy = quantifier.groups()
        low = int(least) if least else 1 if sign == "+" else 0
        high = int(most) if most else None if comma or sign in ("*", "+") else 1 if sign == "?" else low
        if high is not None and low > high:
            raise InvalidPattern(f"the numbers of {quantifier[0]} are out of order")
        if part.assertion:  # repetition changes nothing, except that the assertion need not hold
            if not low and part.holds_groups:
                raise BeyondPython("a lookahead with a group is repeated")
            return part._replace(text=part.text if low else "", groups=part.groups if low else frozenset())
        if low > _MOST:
            raise BeyondPython("a number of repetitions is too large")
        bounds = f"{{{low},{'' if high is None or high > _MOST else high}}}"
        groups = part.groups if (low, high) == (1, 1) else frozenset[int]()
        return _Part(f"{part.text}{bounds}{lazy}", groups)

    def _group(self, known: Set[int]) -> _Part:
        before = self._opened
        for sign in ("(?:", "(?=", "(?!", "(?<=", "(?<!"):
            if self._take(sign):
                alternatives, groups = self._alternatives(known)
                self._close()
                if sign == "(?:":
                    return _Part(f"(?:{'|'.join(alternatives)})", groups)
                if "<" in sign:
                    return self._behind(sign, alternatives, holds_groups=self._opened > before)
                holds = self._opened > before
                kept = groups if sign == "(?=" else frozenset[int]()
                return _Part(f"{sign}{'|'.join(alternatives)})", kept, not self._unicode, True, holds)
        if self._take("(?<"):
            self._position = self._expression.index(">", self._position) + 1
        elif self._match(_MODIFIERS):
            raise BeyondPython("flags are set within it")
        elif self._take("(?"):
            raise InvalidPattern(f"invalid group at {self._position - 2}")
        else:
            self._position += 1
        self._opened += 1
        number = self._opened
        alternatives, groups = self._alternatives(known)
        self._close()
        return _Part(f"({'|'.join(alternatives)})", groups | {number})

    def _close(self) -> None:
        if not self._take(")"):
            raise InvalidPattern("a group is not closed")

    @staticmethod
    def _behind(sign: str, alternatives: list[str], *, holds_groups: bool) -> _Part:
        """A lookbehind, whose alternatives may have different lengths."""
        if holds_groups or any("(?:\\" in alternative for alternative in alternatives):
            raise BeyondPython("a lookbehind has groups or references")
        each = [f"{sign}{alternative})" for alternative in alternatives]
        text = "".join(each) if sign == "(?<!" else f"(?:{'|'.join(each)})"
        return _Part(text, repeatable=False, assertion=True)

    def _escape(self, known: Set[int]) -> _Part:
        self._position += 1
        sign = self._next()
        if sign and sign in "bB":
            self._position += 1
            return _Part(r"\b" if sign == "b" else r"(?!\b)", repeatable=False)
        if sign and sign in "123456789":
            digits = re.compile("[0-9]+").match(self._expression, self._position)
            assert digits is not None
            if self._unicode or int(digits[0]) <= self._count:
                self._position = digits.end()
                return self._reference(int(digits[0]), known)
        if sign == "k" and (self._unicode or self._names):
            self._position += 1
            match = self._match(re.compile("<([^>]*)>"))
            if match is None or match[1] not in self._names:
                raise InvalidPattern(r"\k names no group")
            return self._reference(self._names[match[1]], known)
        point = self._character(in_class=False)
        return _Part(f"[{CLASSES[point]}]" if isinstance(point, str) else self._sign(point))

    def _reference(self, number: int, known: Set[int]) -> _Part:
        if number > self._count:
            raise InvalidPattern(f"there is no group {number}")
        if self._ignores_case:
            raise BeyondPython("a reference to a group whose case does not matter")
        if number not in known or number > _MOST_GROUPS:
            raise BeyondPython(f"a reference to group {number}, which may not have taken part")
        return _Part(f"(?:\\{number})")
