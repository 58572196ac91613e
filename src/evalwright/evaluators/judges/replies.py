"""Reading a judge's reply: the one JSON object in it, and booleans and numbers as models write them.

Nothing is guessed: an unclear or repeated statement is a BadReply.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

from evalwright.errors import shorten

__all__ = ["BadReply", "keys_once", "number_in", "only_object", "reason_in", "truth_in"]

_OPENING = re.compile(r'\{\s*["}]|\[')
_MOST_BRACKETS = 100
"""Opening brackets in prose that are tried as JSON: each costs a scan, and no real reply has this many."""
_TRUTHS = {"true": True, "yes": True, "false": False, "no": False}


class BadReply(ValueError):
    """A reply without a verdict; the message says what is missing or wrong."""


def only_object(text: str, keys: Iterable[str]) -> dict[str, Any]:
    """The JSON object that the reply consists of, or the only one with any of `keys` in fences or between prose.

    Several different objects are not a verdict: a judge may quote an object from the evaluated text, and that
    must not decide. Raises BadReply.
    """
    text = text.strip()
    if not text:
        raise BadReply("the reply is empty")
    try:
        whole = _decoder.decode(text)
    except (json.JSONDecodeError, RecursionError):
        return _between_prose(text, frozenset(keys))
    if not isinstance(whole, dict):
        raise BadReply(f"expected a JSON object, found {_value_in_words(whole)}")
    return whole


def _between_prose(text: str, keys: frozenset[str]) -> dict[str, Any]:
    verdicts = []
    for value in _values(text):
        if isinstance(value, list) and any(isinstance(item, dict) for item in value):
            raise BadReply("expected a JSON object, found a JSON list")
        if isinstance(value, dict) and not keys.isdisjoint(value):
            verdicts.append(value)
    if not verdicts:
        raise BadReply("expected a JSON object, found none")
    # compared as text: true equals 1, but must not count as the same verdict
    if (different := len({json.dumps(verdict, sort_keys=True) for verdict in verdicts})) > 1:
        raise BadReply(f"expected one verdict, found {different} different ones")
    return verdicts[0]


def _values(text: str) -> Iterator[Any]:
    """The outermost JSON objects and lists in a text. Raises BadReply if an object begins but is broken."""
    position = failed = 0
    while failed < _MOST_BRACKETS and (opening := _OPENING.search(text, position)) is not None:
        try:
            value, position = _decoder.raw_decode(text, opening.start())
        except (json.JSONDecodeError, RecursionError) as error:
            if opening[0] != "[":
                raise BadReply(f"the JSON object is broken: {error}") from None
            position, failed = opening.end(), failed + 1
        else:
            yield value


def keys_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of a JSON decoder (`object_pairs_hook`). Raises BadReply for a repeated key."""
    value = dict(pairs)
    if len(value) < len(pairs):
        twice = next(key for i, (key, _) in enumerate(pairs) if any(key == other for other, _ in pairs[:i]))
        raise BadReply(f"expected every key of the JSON object once, found {twice[:80]!r} twice")
    return value


_decoder = json.JSONDecoder(object_pairs_hook=keys_once, strict=False)  # line breaks within strings do no harm


def truth_in(value: Any, what: str) -> bool:
    """A boolean: true or false, yes or no, 1 or 0. Raises BadReply for anything else."""
    if isinstance(value, str) and (truth := _TRUTHS.get(value.strip().lower())) is not None:
        return truth
    if isinstance(value, (int, float)) and value in (0, 1):
        return bool(value)
    raise BadReply(f"expected true or false as {what}, found {_value_in_words(value)}")


def number_in(value: Any, what: str, lowest: float, highest: float, *, truths: bool = False) -> float:
    """A number within a scale, both ends included. A string with a number is accepted; with `truths`, true is 1.

    Raises BadReply.
    """
    try:
        usable = isinstance(value, (int, float, str)) and (truths or not isinstance(value, bool))
        number = float(value) if usable else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not lowest <= number <= highest:  # true of NaN, too
        raise BadReply(f"expected a number from {lowest:g} to {highest:g} as {what}, found {_value_in_words(value)}")
    return number


def reason_in(value: Any) -> str:
    """An explanation; "" if there is none."""
    return "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _value_in_words(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, (dict, list)):
        return "a JSON object" if isinstance(value, dict) else "a JSON list"
    return shorten(repr(value), 80)
