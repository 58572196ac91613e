"""What makes two questions to a model the same one: everything that can change the answer."""

from __future__ import annotations

import hashlib

import msgspec

from evalwright.model.chat import ChatRequest

__all__ = ["key_of"]


def key_of(request: ChatRequest, *, at: str | None) -> str:
    """SHA-256 (hex) of a request; `at` is the address that it goes to, None where that does not matter."""
    plain = msgspec.to_builtins(request)
    for name in ("base_url", "api_key_env", "attempts", "attempt_seconds", "waits"):
        plain.pop(name, None)
    return hashlib.sha256(msgspec.json.encode([plain, at], order="sorted")).hexdigest()
