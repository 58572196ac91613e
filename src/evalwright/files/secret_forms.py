"""The forms in which a secret may be written, and what to search for so that none of them is missed."""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

__all__ = ["forms_in_json", "forms_of", "needles_of", "short_forms_of"]

_AS_NUMBERS = (("[<>&]", "04x"), ("[<>&'\x7f-\uffff]", "04x"), ("[<>&'\"+`\x7f-\uffff]", "04X"))
"""What encoders of JSON write as numbers, mostly because HTML gives it a meaning, and how: Go's, the filter `tojson` of
templates, .NET's."""
_PIECE = 24
"""Bytes of a needle: enough to be rare in other text, few enough to be shared by several forms of a secret."""
_TAIL = 64
"""Needles are taken from this many last bytes: secrets begin alike (`sk-`, `postgresql://`) and differ at the end."""


def forms_of(secret: str) -> set[str]:
    """Every form in which a secret may occur."""
    inside = {form for text in _texts(secret) for form in _inside_base64(_bytes(text))}
    return _written(secret) | inside | {escaped for form in inside for escaped in _cases_of(quote(form, safe=""))}


def short_forms_of(secret: str) -> set[str]:
    """Every form in which a short secret may be a separate word; for base64, only the secret encoded by itself."""
    whole = base64.b64encode(_bytes(secret)).decode()
    return _written(secret) | {whole, whole.rstrip("=")}


def _written(secret: str) -> set[str]:
    """The forms other than base64."""
    once, ascii_once = _in_json(secret), _in_json(secret, ascii_only=True)
    percent = {form for text in _texts(secret) for form in _in_address(_bytes(text))}
    forms = {secret, once, _in_json(once), ascii_once, _in_json(ascii_once, ascii_only=True)}
    forms |= {
        secret.replace("/", "\\/"),
        *(secret.replace("'", quoted) for quoted in ("'\"'\"'", r"'\''")),  # in the quotes of a shell
        *_in_python(secret),
        *_in_markup(secret),
        *_cases_in_hex(_bytes(secret)),
    }
    forms |= {_with_numbers(secret, *form) for form in _AS_NUMBERS}
    return forms | percent


def _in_python(secret: str) -> Iterator[str]:
    """The secret inside a literal of a text or of bytes, which has one of two quotes, as what is beside it decides."""
    both = "'\""
    for write in (repr, ascii):
        yield from (write(secret)[1:-1], write(both + secret)[4:-1])
    yield from (repr(_bytes(secret))[2:-1], repr(_bytes(both + secret))[5:-1])


def _in_markup(secret: str) -> Iterator[str]:
    from html import escape

    content = escape(secret, quote=False)
    attribute = content.replace('"', "&quot;").replace("\t", "&#9;").replace("\n", "&#10;").replace("\r", "&#13;")
    numbered = content.replace('"', "&#34;").replace("'", "&#39;")
    for text in (content, escape(secret), attribute, numbered):
        yield from (text, text.encode("ascii", "xmlcharrefreplace").decode())


def _cases_in_hex(data: bytes) -> tuple[str, str]:
    return data.hex(), data.hex().upper()


def _texts(secret: str) -> set[str]:
    """The secret as it is and in JSON, of which either may be encoded further."""
    return {secret, _in_json(secret), _in_json(secret, ascii_only=True)}


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _in_address(data: bytes) -> Iterator[str]:
    """What encoders of addresses make of the data, and of an address with it that is in the query of another one. They
    leave different characters as they are."""
    for safe in ("", "/", "/:@?&=+$,;!*'()"):
        for once in _cases_of(quote(data, safe=safe)):
            yield from (once, quote(once, safe=safe))
    for once in _cases_of(quote_plus(data)):
        yield from (once, quote_plus(once))


def _cases_of(escaped: str) -> tuple[str, str]:
    """With the digits of escapes in upper and in lower case: encoders write either."""
    return escaped, re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), escaped)


def forms_in_json(text: str) -> Iterator[str]:
    """The text as written inside the quotes of JSON, by our encoder and by others."""
    plain = _in_json(text)
    yield plain
    yield re.sub("[\u2028\u2029\x85]", lambda match: f"\\u{ord(match[0]):04x}", plain)
    yield _in_json(text, ascii_only=True)


def needles_of(texts: Iterable[str]) -> Iterator[bytes]:
    """A few byte strings, one of which is in every line of JSON that contains any of the texts: fewer searches per
    record.

    Strings that many texts share come first, then those with digits and capitals, which are rare in other text.
    """
    waiting = {form.encode("utf-8", "surrogatepass") for text in texts for form in forms_in_json(text)}
    while waiting:
        shared = Counter(piece for text in waiting for piece in _pieces(text))
        best = max(shared, key=lambda piece: (shared[piece], sum(byte < 91 for byte in piece), piece))
        yield best
        waiting = {text for text in waiting if best not in text}


def _pieces(text: bytes) -> set[bytes]:
    start = max(0, len(text) - _TAIL)
    return {text[at : at + _PIECE] for at in range(start, max(start, len(text) - _PIECE) + 1)}


def _inside_base64(data: bytes) -> Iterator[str]:
    """The base64 of the data, whatever precedes and follows it there."""
    # Three bytes become four characters, so there are three alignments. Characters at either end that also depend on
    # the neighbouring bytes are left out.
    for shift, skipped in ((0, 0), (1, 2), (2, 3)):
        inside = base64.b64encode(bytes(shift) + data)[skipped : (shift + len(data)) * 8 // 6].decode()
        yield from (inside, inside.replace("+", "-").replace("/", "_"))


def _in_json(text: str, ascii_only: bool = False) -> str:
    return json.dumps(text, ensure_ascii=ascii_only)[1:-1]


def _with_numbers(text: str, characters: str, number: str) -> str:
    """The text inside the quotes of JSON, with these characters as their numbers."""
    return "".join(f"\\u{format(ord(c), number)}" if re.match(characters, c) else _in_json(c) for c in text)
