"""The values of `format` in JSON Schema that promptfoo checks: those of ajv-formats 3, with the same expressions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from evalwright.formats.shared.javascript.characters import InvalidPattern
from evalwright.formats.shared.javascript.patterns import pattern_of
from evalwright.sandbox.patterns import search

__all__ = ["NUMBERS", "TEXTS"]

_SPACE = r"[\t-\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]"
_HEX4 = "[0-9a-f]{1,4}"
_PERCENT = "%[0-9a-f]{2}"
_BYTE4 = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_IPV4 = rf"{_BYTE4}(?:\.{_BYTE4}){{3}}"
_DAYS = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_DATE = re.compile(r"(\d\d\d\d)-(\d\d)-(\d\d)", re.ASCII)
_TIME = re.compile(r"(\d\d):(\d\d):(\d\d(?:\.\d+)?)(z|([+-])(\d\d)(?::?(\d\d))?)?", re.ASCII | re.IGNORECASE)
_BETWEEN = re.compile(f"t|{_SPACE}", re.IGNORECASE)
_SHORT = 1000
"""Characters for which none of these expressions takes long, so that the search needs no time limit."""
_LINE_ENDS = re.compile("[\n\r\u2028\u2029]")


def _matcher(expression: str, *, ignore_case: bool = True) -> Callable[[str], bool]:
    flags = re.ASCII | (re.IGNORECASE if ignore_case else 0)
    return lambda text: _matches(expression, flags, text)


def _matches(expression: str, flags: int, text: str) -> bool:
    pattern = _compiled_pattern(rf"\A(?:{expression})\Z", flags)
    if len(text) < _SHORT:
        return pattern.search(text) is not None
    return search(pattern, text) is not None


@cache
def _compiled_pattern(expression: str, flags: int) -> re.Pattern[str]:
    # compiling those of addresses takes a tenth of a second, which only their users should pay
    return re.compile(expression, flags)


def _ipv6() -> str:
    parts = [f"(?:{_HEX4}:){{7}}(?:{_HEX4}|:)", f"(?:{_HEX4}:){{6}}(?::{_HEX4}|{_IPV4}|:)"]
    for n in range(5, -1, -1):
        before = f"(?:{_HEX4}:){{{n}}}" if n else ":"
        parts.append(f"{before}(?:(?::{_HEX4}){{1,{7 - n}}}|(?::{_HEX4}){{0,{5 - n}}}:{_IPV4}|:)")
    return "|".join(parts)


def _address(quotes: str, *, relative: bool) -> str:
    """A URI, or a reference to one; `quotes` are the quotation marks that are allowed in its parts."""
    byte = r"(?:25[0-5]|2[0-4]\d|[01]?\d\d?)"
    four = rf"(?:{byte}\.){{3}}{byte}"
    last = f"(?:{_HEX4}:{_HEX4}|{four})"
    six = [f"(?:{_HEX4}:){{6}}{last}", f"::(?:{_HEX4}:){{5}}{last}", f"(?:{_HEX4})?::(?:{_HEX4}:){{4}}{last}"]
    six += [f"(?:(?:{_HEX4}:){{0,{n}}}{_HEX4})?::(?:{_HEX4}:){{{4 - n}}}{last}" for n in (1, 2)]
    six += [f"(?:(?:{_HEX4}:){{0,3}}{_HEX4})?::{_HEX4}:{last}", f"(?:(?:{_HEX4}:){{0,4}}{_HEX4})?::{last}"]
    six += [f"(?:(?:{_HEX4}:){{0,5}}{_HEX4})?::{_HEX4}", f"(?:(?:{_HEX4}:){{0,6}}{_HEX4})?::"]
    user, name = r"a-z0-9\-._~!$&'()*+,;=", rf"a-z0-9\-._~!$&{quotes}()*+,;="
    sign = rf"(?:[{name}:@]|{_PERCENT})"
    host = rf"\[(?:{'|'.join(six)}|v[0-9a-f]+\.[{user}:]+)\]|{four}|(?:[{name}]|{_PERCENT})*"
    authority = rf"/?/(?:(?:[{user}:]|{_PERCENT})*@)?(?:{host})(?::\d*)?(?:/{sign}*)*"
    path = rf"(?:{authority}|/(?:{sign}+(?:/{sign}*)*)?|{sign}+(?:/{sign}*)*)"
    tail = rf"(?:[{name}:@/?]|{_PERCENT})*"
    optional = "?" if relative else ""
    return rf"(?:[a-z][a-z0-9+\-.]*:){optional}{path}{optional}(?:\?{tail})?(?:\#{tail})?"


def _url() -> str:
    far = r"(?!(?:10|127)(?:\.\d{1,3}){3})(?!(?:169\.254|192\.168|172\.(?:1[6-9]|2\d|3[0-1]))(?:\.\d{1,3}){2})"
    four = r"(?:[1-9]\d?|1\d\d|2[01]\d|22[0-3])(?:\.(?:1?\d{1,2}|2[0-4]\d|25[0-5])){2}"
    four += r"\.(?:[1-9]\d?|1\d\d|2[0-4]\d|25[0-4])"
    letter = r"[a-z0-9\u00a1-\uffff]"
    label = f"(?:{letter}+-)*{letter}+"
    name = rf"(?:{label})(?:\.{label})*(?:\.(?:[a-z\u00a1-\uffff]{{2,}}))"
    other = _SPACE.replace("[", "[^", 1)
    return rf"(?:https?|ftp)://(?:{other}+(?::{other}*)?@)?(?:{far}{four}|{name})(?::\d{{2,5}})?(?:/{other}*)?"


def _is_date(text: str) -> bool:
    match = _DATE.fullmatch(text)
    if match is None:
        return False
    year, month, day = map(int, match.groups())
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 1 <= month <= 12 and 1 <= day <= (29 if month == 2 and leap else _DAYS[month])


def _is_time(text: str, *, zone: bool = True) -> bool:
    match = _TIME.fullmatch(text)
    if match is None:
        return False
    hour, minute, second = int(match[1]), int(match[2]), float(match[3])
    sign = -1 if match[5] == "-" else 1
    hours, minutes = int(match[6] or 0), int(match[7] or 0)
    if hours > 23 or minutes > 59 or (zone and not match[4]):
        return False
    if hour <= 23 and minute <= 59 and second < 60:
        return True
    utc = minute - minutes * sign  # a leap second is the last second of a day in UTC
    return hour - hours * sign - (utc < 0) in (23, -1) and utc in (59, -1) and second < 61


def _is_date_time(text: str, *, zone: bool = True) -> bool:
    parts = _BETWEEN.split(text)
    return len(parts) == 2 and _is_date(parts[0]) and _is_time(parts[1], zone=zone)


def _is_regex(text: str) -> bool:
    if re.search(r"[^\\]\\Z", text):
        return False
    try:
        pattern_of(text).found_in("")
    except InvalidPattern:
        return False
    return True


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) or value.is_integer()


_URI = _matcher(_address("'", relative=False))
_BYTE = _matcher("(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", ignore_case=False)
_LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_ATOM = "[a-z0-9!#$%&'*+/=?^_`{|}~-]+"
_NAMES = rf"(?:[a-z0-9_]|{_PERCENT})+(?::[1-9][0-9]{{0,3}}|\*)?"
TEXTS: Mapping[str, Callable[[str], bool]] = {
    "date": _is_date,
    "time": _is_time,
    "date-time": _is_date_time,
    "iso-time": lambda text: _is_time(text, zone=False),
    "iso-date-time": lambda text: _is_date_time(text, zone=False),
    "duration": _matcher(
        r"P(?!\Z)(?:(?:\d+Y)?(?:\d+M)?(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+S)?)?|(?:\d+W)?)", ignore_case=False
    ),
    "uri": lambda text: ("/" in text or ":" in text) and _URI(text),
    "uri-reference": _matcher(_address("'\"", relative=True)),
    "uri-template": _matcher(
        rf"(?:(?:[^\x00-\x20\"'<>%\\^`{{|}}]|{_PERCENT})|\{{[+#./;?&=,!@|]?{_NAMES}(?:,{_NAMES})*\}})*"
    ),
    "url": _matcher(_url()),
    "email": _matcher(rf"{_ATOM}(?:\.{_ATOM})*@(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"),
    "hostname": _matcher(rf"(?=.{{1,253}}\.?\Z){_LABEL}(?:\.{_LABEL})*\.?"),
    "ipv4": _matcher(_IPV4, ignore_case=False),
    "ipv6": _matcher(_ipv6()),
    "regex": _is_regex,
    "uuid": _matcher("(?:urn:uuid:)?[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"),
    "json-pointer": _matcher("(?:/(?:[^~/]|~0|~1)*)*"),
    "json-pointer-uri-fragment": _matcher(rf"\#(?:/(?:[a-z0-9_\-.!$&'()*+,;:=@]|{_PERCENT}|~0|~1)*)*"),
    "relative-json-pointer": _matcher(r"(?:0|[1-9][0-9]*)(?:\#|(?:/(?:[^~/]|~0|~1)*)*)"),
    "byte": lambda text: any(map(_BYTE, _LINE_ENDS.split(text))),  # as in ajv-formats, one matching line is enough
    "password": lambda _: True,
    "binary": lambda _: True,
}
"""What each format requires of a string; other values have none of these formats and are valid."""
NUMBERS: Mapping[str, Callable[[Any], bool]] = {
    "int32": lambda value: _is_integer(value) and -(2**31) <= value < 2**31,
    "int64": _is_integer,
    "float": lambda _: True,
    "double": lambda _: True,
}
"""The same for numbers."""
