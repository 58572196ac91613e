"""The place of `workspace_path` in version 0.1, for plug-ins of that time."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

_NOW_IN = "evalwright.session.workspace"  # looked up by name, because this room may not import from that one


def __getattr__(name: str) -> Any:
    if name != "workspace_path":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(f"{__name__}.{name} is now evalwright.plugins.{name}", DeprecationWarning, stacklevel=2)
    return getattr(import_module(_NOW_IN), name)
