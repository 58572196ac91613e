"""Calls through an official client that bypass its types: they send a body as it is and return the text.

The clients try all their types on each request and reply, which costs more than the rest of a call and checks nothing:
the server itself says what it accepts, and a reply is checked where it is read.
"""

from __future__ import annotations

import json
from typing import Any

__all__ = ["JsonObject", "body_and_options", "objects_of", "posted"]

_OPTIONS = {"extra_headers": "headers", "extra_query": "params"}


class JsonObject(dict[str, Any]):
    """An object in a reply; a missing field is None, as in the clients' own types."""

    def __getattr__(self, name: str) -> Any:
        return self.get(name)


def objects_of(text: str) -> Any:
    """The JSON of a reply. Raises ValueError."""
    return json.loads(text, object_hook=JsonObject)


async def posted(client: Any, path: str, body: dict[str, Any]) -> Any:
    """The reply to a body that may contain `extra_body`, `extra_headers` and `extra_query`, as the clients know
    them."""
    whole, options = body_and_options(body)
    arguments = {_OPTIONS[name]: value for name, value in options.items()}
    return objects_of(await client.post(path, cast_to=str, body=whole, options=arguments))


def body_and_options(body: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The body to send, and the other options of the call."""
    rest = dict(body)
    options = {name: rest.pop(name) for name in _OPTIONS if name in rest}
    return {**rest.pop("extra_body", {}), **rest}, options
