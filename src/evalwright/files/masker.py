"""Secrets never reach a file or a screen: every occurrence is masked by value, in each form that it may take.

A value is secret if a suite takes it from a variable, if the name of its variable suggests it, if the suite has it
under a key that names a credential, or if it is a part of such a value (`secret_parts`). Forms: as it is, as JSON text
(once and twice), as a Python literal of text or bytes, in HTML and XML, in the quotes of a shell, in hexadecimal
digits, percent-encoded (once and twice) and inside base64; the latter two also of JSON text. A value of four or five
characters is masked only as a separate word, because it occurs within words by chance; a shorter one is not masked.
Messages quote the beginning or the end of long texts, so half of a credential is masked, too, where it is cut off.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from evalwright.files.credentials import in_address, is_credential, secret_parts
from evalwright.files.secret_forms import forms_in_json, forms_of, needles_of, short_forms_of

__all__ = [
    "MASKED",
    "PART",
    "Masker",
    "is_secret",
    "looks_secret",
    "masked_in",
    "may_be_secret",
    "secrets_in",
    "with_texts_changed",
]

MASKED = "***MASKED***"

_SHORTEST = 4
_SUBSTRING = 6
"""From this many characters on, a secret is masked inside words, too: shorter ones occur there by chance."""
_LEAST_HALF = 12
"""Characters of a credential that was cut off; fewer say little about it."""
_BEFORE = r"(?:(?<![^\W_])|(?<=\\[abfnrtv])|(?<=\\x[0-9a-f]{2})|(?<=\\u[0-9a-fA-F]{4})|(?<=%[0-9A-Fa-f]{2}))"
_AFTER = r"(?![^\W_])"
"""A short secret is separate if its neighbours are neither letters nor digits, or if it follows an escape, which ends
in one."""
_LONGEST_PATH = 4096
_NAMES = re.compile(
    "KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|_PWD|DSN|CREDENTIAL|WEBHOOK|AUTH|COOKIE|SESSION_ID|OTLP_HEADERS"
)
_HARMLESS_NAMES = re.compile("TOKENIZERS_|SSH_AUTH_SOCK|XAUTHORITY|OLDPWD|GPG_KEY")
_SETTINGS = re.compile(r"(?i)true|false|none|null|default|enabled|disabled")
_HARMLESS_VALUES = re.compile(rf"{_SETTINGS.pattern}|[0-9.]{{1,7}}")
"""Values of settings (`AUTH_ENABLED=true`), which would otherwise be masked all over the records."""
_JSON_STRING = re.compile(rb'"(?:[^"\\]+|\\.)*+"')
"""Possessive (`*+`), so that a long unterminated string is not searched again from each of its characters."""
_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?")
PART = ":part"
"""What follows the name of a secret in that of a part of it."""
_DOLLARS = re.compile(r"\$(?=[${]|\Z)")
"""Dollars that have to be doubled; also at the end of a piece, where the `$` of a placeholder may follow."""


def looks_secret(name: str) -> bool:
    """Whether an environment variable of this name is expected to hold a secret."""
    upper = name.upper()
    return _NAMES.search(upper) is not None and _HARMLESS_NAMES.match(upper) is None


def is_secret(name: str, value: str) -> bool:
    """Whether an environment variable contains a secret, judged by its name, or by a credential in an address in it."""
    has_secret_name = looks_secret(name) and not _HARMLESS_VALUES.fullmatch(value)
    return has_secret_name or any(in_address(value))


def may_be_secret(value: str) -> bool:
    """Whether a value that a suite takes from a variable is masked; settings and existing paths are not."""
    if len(value) < _SHORTEST or _SETTINGS.fullmatch(value):
        return False
    return not (value.startswith("/") and len(value) < _LONGEST_PATH and os.path.exists(value))


def secrets_in(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of an environment that contain secrets."""
    return {name: value for name, value in environ.items() if is_secret(name, value)}


def masked_in(text: str, secret: str) -> str:
    """A text in which one secret is masked, by the rules of `Masker`, but only in its literal form."""
    return text if len(secret) < _SHORTEST else _pattern(secret).sub(MASKED, text)


class Masker:
    """Replaces secrets by `***MASKED***`.

    `secrets` are values by name. Whole strings in `keep` (names of fields and variants, say) are left alone even if
    they equal a secret, and so are whole dates: records must stay readable.
    """

    def __init__(self, secrets: Mapping[str, str], keep: Iterable[str] = ()) -> None:
        self._named = {name: value for name, value in _with_parts(secrets) if len(value) >= _SHORTEST}
        self._keep = frozenset(keep)
        values = set(self._named.values())
        written = {value: forms_of(value) for value in values if len(value) >= _SUBSTRING}
        # Longest first: a form that contains another one must be replaced as a whole, or the rest of it would stay.
        self._forms = sorted(set().union(*written.values()), key=_longest_first)
        self._halves = [(value, *halves) for value in sorted(values) if (halves := _halves(value))]
        self._short = {form for value in values if len(value) < _SUBSTRING for form in short_forms_of(value)}
        self._whole_word_pattern = _whole_word_pattern(self._short)
        needles = {needle for value, forms in written.items() for needle in needles_of(forms.union(_halves(value)))}
        self._needles = tuple(sorted(needles | {text.encode() for form in self._short for text in forms_in_json(form)}))

    @classmethod
    def of(cls, secrets: Mapping[str, str], environ: Mapping[str, str]) -> Masker:
        """The given secrets, and the variables of an environment that look secret."""
        return cls({**secrets_in(environ), **secrets})

    @property
    def secrets(self) -> Mapping[str, str]:
        """What is masked, by name: `placeholders.expand` with it reverses `placeholders`."""
        return self._named

    def keeping(self, words: Iterable[str]) -> Masker:
        """The same secrets, with more whole strings that are left alone."""
        return Masker(self._named, self._keep.union(words))

    def hiding(self, secrets: Mapping[str, str]) -> Masker:
        """The same with more secrets."""
        return Masker({**self._named, **secrets}, self._keep) if secrets.items() - self._named.items() else self

    def __bool__(self) -> bool:
        return bool(self._needles)

    def mask_text(self, text: str) -> str:
        """The text without any form of a secret."""
        if text in self._keep or _DATE.fullmatch(text):
            return text
        text = self._without_forms(text)
        for secret, first, last in self._halves:
            if first in text:
                text = _without_beginnings(text, secret, first, MASKED)
            if last in text:  # the end of a secret is the beginning of the reversed one
                text = _without_beginnings(text[::-1], secret[::-1], last[::-1], MASKED[::-1])[::-1]
        return text if self._whole_word_pattern is None else self._whole_word_pattern.sub(MASKED, text)

    def mask_begun(self, text: str) -> tuple[str, str]:
        """The masked text without its end, and that end, which may be the beginning of a secret, as it is.

        The end belongs before the next piece of a text that is written piece by piece. It may be a whole short secret,
        which stands alone or begins a word.
        """
        text = self._without_forms(text)
        longest, beginnings = self._beginnings
        for start in range(max(0, len(text) - longest), len(text)):
            end = text[start:]
            if any(form.startswith(end) for form in beginnings.get(end[0], ())):
                return self.mask_text(text[:start]), end
        return self.mask_text(text), ""

    def _without_forms(self, text: str) -> str:
        for form in self._forms:
            if form in text:
                text = text.replace(form, MASKED)
        return text

    @cached_property
    def _beginnings(self) -> tuple[int, Mapping[str, list[str]]]:
        """The length of the longest form, and all forms by their first characters."""
        texts: dict[str, list[str]] = {}
        for form in (forms := (*self._forms, *self._short)):
            texts.setdefault(form[0], []).append(form)
        return max(map(len, forms), default=0), texts

    def mask_bytes(self, lines: bytes) -> bytes:
        """JSON Lines without any form of a secret; still the same JSON except for the masked strings.

        Only strings are changed: a number stays a number, whatever its digits are.
        """
        return _JSON_STRING.sub(self._mask_token, lines) if self.finds(lines) else lines

    def finds(self, lines: bytes | bytearray) -> bool:
        """Whether JSON Lines may contain a secret; False is certain."""
        for needle in self._needles:  # noqa: SIM110 - half the cost of any() on every record
            if needle in lines:
                return True
        return False

    def _mask_token(self, match: re.Match[bytes]) -> bytes:
        token = match[0]
        if not self.finds(token):
            return token
        text = json.loads(token)
        masked = self.mask_text(text)
        if masked == text:
            return token
        return json.dumps(masked, ensure_ascii=not _encodable(masked)).encode()

    def mask_strings(self, value: Any) -> Any:
        """Plain data with every string, keys included, masked by value."""
        return with_texts_changed(value, self.mask_text)

    def mask_document(self, value: Any) -> Any:
        """An authored document: like `mask_strings`, and whole values under credential-shaped keys (`api_key`)."""
        return self.mask_strings(_without_credentials(value))

    def placeholders(self, value: Any, unresolved: Mapping[str, str] = {}) -> Any:
        """Plain data with secrets as `${NAME}`, for storing; a literal `${` is `$${`. `expand` is the inverse.

        `unresolved` is what that found before: those placeholders stay.
        """
        named = [*self._named.items(), *unresolved.items()]
        longest_first = sorted(named, key=lambda item: (-len(item[1]), item[0]))
        patterns = [(name, secret, _pattern(secret)) for name, secret in longest_first]
        return with_texts_changed(value, lambda text: self._with_placeholders(text, patterns))

    def _with_placeholders(self, text: str, secrets: list[tuple[str, str, re.Pattern[str]]]) -> str:
        pieces = [(text, False)]
        spared = text in self._keep or _DATE.fullmatch(text)
        for name, secret, pattern in secrets:
            if secret in text and not spared:
                pieces = [piece for old in pieces for piece in _split(old, pattern, "${" + name + "}")]
        return "".join(piece if placed else _DOLLARS.sub("$$", piece) for piece, placed in pieces)


def _split(piece: tuple[str, bool], secret: re.Pattern[str], placeholder: str) -> Iterator[tuple[str, bool]]:
    """A piece of text cut at each occurrence of a secret; the flag says whether a part is already a placeholder."""
    text, placed = piece
    if placed:
        yield piece
        return
    for number, part in enumerate(secret.split(text)):
        if number:
            yield placeholder, True
        yield part, False


def with_texts_changed(value: Any, change: Callable[[str], str]) -> Any:
    """Plain data with every text changed, keys included."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {with_texts_changed(key, change): with_texts_changed(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [with_texts_changed(item, change) for item in value]
    return value


def _without_credentials(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: MASKED if is_credential(key, item) else _without_credentials(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_credentials(item) for item in value]
    return value


def _with_parts(secrets: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Secrets by name, and their parts, which may have parts in turn."""
    for name, value in secrets.items():
        label = re.sub("[{}]", "_", name)
        yield label, value
        if PART not in label:  # a masker that is made again has them already
            parts = [part for secret_part in secret_parts(value) for part in (secret_part, *secret_parts(secret_part))]
            for number, part in enumerate(dict.fromkeys(parts)):
                yield f"{label}{PART}{number or ''}", part


def _longest_first(form: str) -> tuple[int, str]:
    return -len(form), form


def _halves(secret: str) -> tuple[str, ...]:
    """The shortest beginning and end that are masked; none of addresses, whose beginnings are not secret, and texts."""
    least = max(_LEAST_HALF, (len(secret) + 1) // 2)
    if len(secret) <= least or "://" in secret or any(map(str.isspace, secret)):
        return ()
    return secret[:least], secret[-least:]


def _without_beginnings(text: str, secret: str, first: str, mask: str) -> str:
    """The text without beginnings of a secret, at least `first`, where no word goes on: another one may begin alike."""
    masked, at = "", 0
    while (start := text.find(first, at)) >= 0:
        end = start + len(first)
        while end - start < len(secret) and text[end : end + 1] == secret[end - start]:
            end += 1
        masked += text[at:start] + (text[start:end] if text[end : end + 1].isalnum() else mask)
        at = end
    return masked + text[at:]


def _whole_word_pattern(forms: Iterable[str]) -> re.Pattern[str] | None:
    """Finds any of the forms as separate words; None without forms."""
    ordered = sorted(forms, key=_longest_first)
    return re.compile("|".join(map(_with_word_boundaries, ordered))) if ordered else None


def _with_word_boundaries(form: str) -> str:
    """A boundary is needed only if the form itself begins or ends with a letter or digit."""
    return (_BEFORE if form[0].isalnum() else "") + re.escape(form) + (_AFTER if form[-1].isalnum() else "")


def _pattern(secret: str) -> re.Pattern[str]:
    return re.compile(_with_word_boundaries(secret) if len(secret) < _SUBSTRING else re.escape(secret))


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
