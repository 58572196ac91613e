"""Keys that isolate or limit an agent: a suite with one that is not understood is refused, never only warned of.

Without what the key asks for, the agent would work on the user's own files or reach what it must not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any

__all__ = ["isolating", "refusal"]

_KEYS = (
    "after_all", "after_each", "before_all", "before_each", "chroot", "container", "containers", "devcontainer",
    "docker", "docker_image", "environment", "environments", "hooks", "isolated", "isolation", "limits", "network",
    "permission_mode", "permissions", "read_only", "resources", "sandbox", "sandboxed", "sandboxing", "setup",
    "setup_script", "teardown", "teardown_script", "worktree", "workspace", "workspace_dir", "workspace_mode",
    "workspace_path", "workspace_template", "workspaces",
)  # fmt: skip
_NEAR = 0.85
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_OFF = (None, False, "none", "off")
"""Values that ask for nothing."""


def _isolates(key: Any, value: Any) -> bool:
    name = _CAMEL.sub("_", str(key)).replace("-", "_").lower()
    return bool(get_close_matches(name, _KEYS, n=1, cutoff=_NEAR)) and not any(value is off for off in _OFF)


def refusal(key: Any) -> str:
    return f"{key!r} isolates or limits what is run, and is not supported: nothing runs without it"


def isolating(raw: Any, known: Iterable[str]) -> Iterator[str]:
    """The keys of a mapping that are not `known` and ask for isolation or a limit, or are nearly such keys."""
    names = frozenset(known)
    for key, value in raw.items() if isinstance(raw, dict) else ():
        if key not in names and _isolates(key, value):
            yield str(key)
