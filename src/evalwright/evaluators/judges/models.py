"""Which model names lead to a provider: `claude-…`, `gpt-…`, `o1…` and `provider/model`."""

from __future__ import annotations

import re

__all__ = ["backend_problem"]

_KNOWN = re.compile(r"(claude|gpt|chatgpt|o\d+)(-.*)?")


def backend_problem(model: str) -> str | None:
    """Why no provider serves `model`; None if one does. `provider/model` names the provider itself."""
    provider, slash, rest = model.partition("/")
    if (slash and provider and rest) or _KNOWN.fullmatch(model) or model.startswith("python:"):
        return None
    return f"no backend for the model {model!r}, expected 'claude-...', 'gpt-...', 'o1...' or 'provider/model'"
