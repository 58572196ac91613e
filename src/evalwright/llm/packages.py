"""The packages behind the interfaces of models, and how they are installed."""

from __future__ import annotations

from importlib.util import find_spec

from evalwright.llm.routes import Route

__all__ = ["needed_package"]

_INSTALLED_BY = {"openai": "'evalwright[judges]'", "anthropic": "'evalwright[judges]'", "litellm": "litellm"}


def needed_package(route: Route) -> str | None:
    """The package that a model needs but is not installed, with the command that installs it; None if nothing is
    missing."""
    package = route.interface
    if package not in _INSTALLED_BY or find_spec(package) is not None:
        return None
    name = f"litellm/{route.model}" if package == "litellm" else route.model
    return f"{name!r} needs the package {package}: pip install {_INSTALLED_BY[package]}"
