"""The key under which a model call is cached and recorded: everything that can change the reply."""

from __future__ import annotations

import hashlib

import msgspec

from evalwright.model.chat import ChatRequest

__all__ = ["key_of"]


def key_of(request: ChatRequest, *, at: str | None) -> str:
    """SHA-256 (hex) of a request; `at` is the address that it goes to, None if that does not matter."""
    plain = msgspec.to_builtins(request)
    # How a call is made does not change its reply; and a recording must be usable with another address or key.
    for name in ("base_url", "api_key_env", "attempts", "attempt_seconds", "waits"):
        plain.pop(name, None)
    return hashlib.sha256(msgspec.json.encode([plain, at], order="sorted")).hexdigest()
