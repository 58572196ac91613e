"""Names of reasons in addresses: the same in the server and in a bundle."""

from __future__ import annotations

import hashlib

__all__ = ["reason_key"]


def reason_key(shape: str) -> str:
    """The name of a reason, by what it shares with the same reason of other cells."""
    return hashlib.sha256(shape.encode("utf-8", "surrogatepass")).hexdigest()[:12]
