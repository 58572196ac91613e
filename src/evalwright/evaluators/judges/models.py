"""Which names of models somebody answers to (specification evalh, c.2)."""

from __future__ import annotations

import re

__all__ = ["backend_problem"]

_KNOWN = re.compile(r"(claude|gpt|chatgpt|o\d+)(-.*)?")


def backend_problem(model: str) -> str | None:
    """Why nobody can be asked for `model`; None where somebody can. `provider/model` names the provider itself."""
    provider, slash, rest = model.partition("/")
    if (slash and provider and rest) or _KNOWN.fullmatch(model) or model.startswith("python:"):
        return None
    return f"no backend for the model {model!r}, expected 'claude-...', 'gpt-...', 'o1...' or 'provider/model'"
