"""What in an authored document is a credential: values of keys named like one, and parts of addresses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote, unquote_plus

__all__ = ["credentials", "in_address", "is_credential"]

_KEY = re.compile(
    r"(?i)(?!metric_key\Z).*_KEY|.*_TOKEN|.*_SECRET|password|api_key|dsn"
    r"|(proxy-|x-)?authorization|(set-)?cookie|(x-)?api-key|x-[a-z0-9-]*(token|secret|api-key|auth)"
)
_PASSWORD = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/?#@]*:([^\s/?#]+)@")
_QUERY = re.compile(
    r"(?i)[?&](?:[^\s=&#]*[_-])?(?:api|access|auth|client)?(?:key|token|secret|password|passwd|signature|sig|auth)"
    r"=([^\s&#]+)"
)
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S*")


def is_credential(key: object, value: object) -> bool:
    """Whether a key of an authored document holds a credential: the names that evalh masks, and HTTP headers.

    A gate's `metric_key` ends in `_KEY` but names an evaluator.
    """
    return value is not None and isinstance(key, str) and _KEY.fullmatch(key) is not None


def in_address(text: str) -> Iterator[str]:
    """Passwords and keys inside the addresses in a text, as written and decoded."""
    for address in _ADDRESS.findall(text):
        for pattern, decoded in ((_PASSWORD, unquote), (_QUERY, unquote_plus)):
            for part in pattern.findall(address):
                yield from dict.fromkeys((part, decoded(part)))


def credentials(document: Any) -> Iterator[tuple[str, str]]:
    """The credentials in an authored document, each with the key it stands under.

    The URL of a webhook is one as a whole: knowing it is enough to post.
    """
    if isinstance(document, (list, tuple)):
        for item in document:
            yield from credentials(item)
    elif isinstance(document, Mapping):
        for key, item in document.items():
            if is_credential(key, item) or (key == "url" and document.get("type") == "webhook"):
                yield from ((str(key), text) for text in _texts(item))
            elif isinstance(item, str):
                yield from ((str(key), part) for part in in_address(item))
            else:
                yield from credentials(item)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, tuple, Mapping)):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(item)
