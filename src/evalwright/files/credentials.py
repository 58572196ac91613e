"""Credentials in an authored document: values of keys with such names, and parts of addresses and headers."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any
from urllib.parse import unquote, unquote_plus, urlsplit

__all__ = ["credentials", "in_address", "is_credential", "secret_parts", "without_credentials"]

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_KEY = re.compile(r"(?i)(?!metric_key\Z).*[_-]KEY|.*_TOKEN|.*_SECRET|password|api_key|dsn")
"""The names that evalh masks. A gate's `metric_key` ends in `_KEY` but names an evaluator."""
_HEADER = re.compile(r"(?i)x-[a-z0-9-]*(token|secret|api-key|auth)")
_LAST_WORDS = {
    "password", "passwd", "pwd", "passphrase", "passcode", "secret", "secrets", "token", "credential",
    "credentials", "dsn", "authorization", "cookie", "bearer", "jwt", "apikey", "auth",
}  # fmt: skip
"""A key whose last word is one of these contains a credential."""
_ANYWHERE = frozenset(("password", "passphrase", "secret", "credential", "credentials", "authorization", "apikey"))
_KEYS_OF = {
    "api", "access", "private", "secret", "signing", "encryption", "ssh", "auth", "client", "account", "master",
    "shared", "license", "service",
}  # fmt: skip
"""What precedes the word `key` in a key that contains a credential: `accessKey`, `private_key_pem`."""
_TOKENS_OF = frozenset(("auth", "access", "bearer", "refresh", "api", "session", "id"))
_ABOUT_IT = {
    "env", "name", "names", "variable", "var", "file", "path", "url", "uri", "endpoint", "type", "kind", "field",
    "count", "limit", "length", "max", "min", "budget", "size", "usage", "policy", "enabled", "required", "ttl",
    "expiry", "prefix", "pattern", "regex", "header",
}  # fmt: skip
"""A key that ends like this says something about a credential, but does not contain it: `api_key_env`,
`token_limit`."""
_LABELS = frozenset(("type", "kind", "scheme", "provider"))
"""Keys beside a credential whose values are plain words, as in `auth: {type: bearer, token: ...}`."""
_SETTINGS = frozenset(("none", "true", "false", "default", "basic", "bearer", "digest", "oauth", "oauth2"))
"""Values of a credential's key that only name a method, as in `auth: basic`."""
_QUERIES = frozenset(("query_params", "params"))
_PASSWORD = re.compile(r"://[^\s/?#:]*:([^\s/?#]+)@")
_USER = re.compile(r"https?://([^\s/?#@:]+)@")
_QUERY_KEY = r"(?:[^\s=?&#]*[_-])?(?:api|access|auth|client)?(?:key|token|secret|password|passwd|signature|sig|auth)"
_QUERY = re.compile(rf"(?i)[?&]{_QUERY_KEY}=([^\s&#]+)")
_QUERY_NAME = re.compile(rf"(?i){_QUERY_KEY}")
_VARIABLE_NAME = re.compile(r"(?i).*(?:key|token|secret)")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}://\S*")
"""With an unlimited scheme, the search would go from each letter of a long word to its end."""
_SCHEME = re.compile(r"(?i)(basic|bearer|token|digest|apikey|api-key|bot|jwt|key|ssws|negotiate)\s+(\S.*)")
_PAIRS = re.compile(r"\s*[\w.-]+=[^;,]+(?:[;,]\s*[\w.-]+=[^;,]+)*;?\s*")
_PAIR = re.compile(r"[\w.-]+=([^;,\s][^;,]{7,})")
"""Values of cookies, or of headers in one variable; shorter ones are settings."""
_LONG_SEGMENT = re.compile(r"(?=[^/]*\d)[^/?#\s]{8,}")
_LEAST_LINE = 16
"""Minimum length of a line of a PEM file that is masked by itself."""


def is_credential(key: object, value: object) -> bool:
    """Whether a key of an authored document contains a credential."""
    if value is None or not isinstance(key, str):
        return False
    if _KEY.fullmatch(key):
        return True
    return not isinstance(value, (int, float)) and _names_one(key)


def _names_one(key: str) -> bool:
    words = [word.lower() for word in _WORD.findall(key)]
    if not words or words[-1] in _ABOUT_IT:
        return False
    if _HEADER.fullmatch(key) or words[-1] in _LAST_WORDS or not _ANYWHERE.isdisjoint(words):
        return True
    pairs = set(pairwise(words))
    return any((a in _KEYS_OF and b == "key") or (a in _TOKENS_OF and b == "token") for a, b in pairs)


def in_address(text: str) -> Iterator[str]:
    """Passwords and keys inside the addresses in a text, as written and decoded."""
    for address in _ADDRESS.findall(text):
        for pattern, decoded in ((_PASSWORD, unquote), (_USER, unquote), (_QUERY, unquote_plus)):
            for part in pattern.findall(address):
                yield from dict.fromkeys((part, decoded(part)))


def without_credentials(text: str) -> str:
    """The text without the passwords and keys of its addresses, for a name that is shown."""
    for part in sorted(in_address(text), key=len, reverse=True):
        text = text.replace(part, "***")
    return text


def secret_parts(secret: str) -> Iterator[str]:
    """The parts of a secret that are secrets, too: a service that gets the whole may repeat a part.

    Passwords and keys of an address, what follows the scheme of an Authorization header and its decoded form, values of
    cookies, strings in JSON, and lines of a PEM file.
    """
    yield from in_address(secret)
    if secret.startswith(("http://", "https://")):
        yield from _credentials_in_path(secret)
    if scheme := _SCHEME.fullmatch(secret):
        yield scheme[2]
        yield from _in_base64(scheme[2]) if scheme[1].lower() == "basic" else ()
    elif _PAIRS.fullmatch(secret):
        yield from _PAIR.findall(secret)
    elif "\n" in secret:
        yield from (line.strip() for line in secret.splitlines() if len(line.strip()) >= _LEAST_LINE)
    if secret.startswith(("{", "[")):
        try:
            yield from (text for _, text in credentials(json.loads(secret)))
        except (ValueError, RecursionError):
            return


def _credentials_in_path(address: str) -> Iterator[str]:
    """The path of a secret address, and those of its segments that look random: services repeat them."""
    try:
        path = urlsplit(address).path
    except ValueError:
        return
    if len(path) >= 8 and path.count("/") > 1:
        yield path
    yield from _LONG_SEGMENT.findall(path)


def _in_base64(text: str) -> Iterator[str]:
    """`user:password` as the scheme Basic sends it, and both separately."""
    try:
        pair = base64.b64decode(text, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return
    yield pair
    yield from (part for part in pair.split(":", 1) if part)


def credentials(document: Any, outside: bool = True) -> Iterator[tuple[str, str]]:
    """The credentials in an authored document, each with the key that contains it.

    The URL of a webhook is one as a whole: knowing it is enough to post. `pass` contains one in descriptions of systems
    and stores, but not in evaluators (for which `outside` is False), where it is a verdict.
    """
    if isinstance(document, (list, tuple)):
        for item in document:
            if isinstance(item, str):
                yield from (("address", part) for part in in_address(item))
            else:
                yield from credentials(item, outside)
    elif isinstance(document, Mapping):
        for key, item in document.items():
            if isinstance(key, str):
                yield from (("address", part) for part in in_address(key))
            if is_credential(key, item) or _in_context(document, key, item, outside):
                yield from ((str(key), text) for text in _texts(item))
            elif isinstance(item, str):
                yield from ((str(key), part) for part in in_address(item))
            elif key in _QUERIES and isinstance(item, Mapping):
                yield from _in_named(item, _QUERY_NAME)
            elif key == "env" and isinstance(item, Mapping):
                yield from _in_named(item, _VARIABLE_NAME)
            else:
                yield from credentials(item, outside and key != "evaluators")


def _in_context(document: Mapping[Any, Any], key: object, item: object, outside: bool) -> bool:
    if key == "url":
        return document.get("type") == "webhook"
    return outside and isinstance(item, str) and isinstance(key, str) and _WORD.findall(key.lower())[-1:] == ["pass"]


def _in_named(values: Mapping[Any, Any], names: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Credentials in parameters of a query, or in variables: their names say more than those of keys."""
    for key, item in values.items():
        if names.fullmatch(str(key)) or is_credential(key, item):
            yield from ((str(key), text) for text in _texts(item))
        elif isinstance(item, str):
            yield from ((str(key), part) for part in in_address(item))
        else:
            yield from credentials(item)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if value.lower() not in _SETTINGS:
            yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if key not in _LABELS:
                yield from _texts(item)
