"""The packages behind the interfaces of models, which take seconds to import on a slow machine."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module

__all__ = ["load_library"]

_LIBRARIES = ("openai", "anthropic", "litellm")


def load_library(interface: str) -> None:
    """Import what an interface needs ahead of its first call. If it is not installed, the call reports it."""
    if interface in _LIBRARIES:
        with suppress(ImportError):
            import_module(interface)
