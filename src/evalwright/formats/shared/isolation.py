"""Keys that isolate or limit an agent: a suite with one that is not understood is rejected, not merely warned about.

Without what the key asks for, the agent would work on the user's own files or reach what it must not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from evalwright.errors import did_you_mean
from evalwright.files.key_paths import Place

__all__ = [
    "ISOLATING",
    "OFF",
    "OF_PROGRAMS",
    "SETTINGS",
    "isolating",
    "isolating_function",
    "isolating_inner_functions",
    "refusal",
]

ISOLATING = (
    "after_all", "after_each", "allowed_tools", "approval_policy", "before_all", "before_each", "budget_usd",
    "chdir", "chroot", "container", "containers", "cost_limit", "cost_limit_usd", "cwd", "devcontainer",
    "disallowed_tools", "docker", "docker_image", "environment", "environments", "hooks", "isolated", "isolation",
    "limits", "max_budget_usd", "max_cost_usd", "max_iterations", "max_steps", "max_turns", "network",
    "permission_mode", "permissions", "rate_limit", "read_only", "resources", "sandbox", "sandbox_mode",
    "sandboxed", "sandboxing", "setup", "setup_script", "teardown", "teardown_script", "time_limit", "timeout",
    "timeout_ms", "timeout_seconds", "token_limit", "total_budget_usd", "work_dir", "working_dir",
    "working_directory", "workspace", "workspace_dir", "workspace_mode", "workspace_path", "workspace_template",
    "workspaces", "worktree",
)  # fmt: skip
OF_PROGRAMS = (
    *ISOLATING, "allow_network", "allowed_domains", "allowed_hosts", "cpu_limit", "cpus", "dockerfile", "image",
    "memory_limit", "mounts", "network_mode", "no_network", "offline", "run_as", "user", "volumes",
)  # fmt: skip
"""Such keys of programs that are started; elsewhere, as in a case, these words are data."""
SETTINGS = ("config", "defaults", "options", "settings")
"""Keys below which formats have a system's settings."""
_OF_FUNCTIONS = (
    "chroot", "container", "containers", "devcontainer", "docker", "docker_image", "isolated", "sandbox", "sandboxed",
    "workspace_template",
)  # fmt: skip
"""Keys that a function hardly defines itself: its other keys, such as `environment`, are its own."""
_OF_SYSTEMS = ("isolation", "timeout_seconds", "concurrency")
"""Limits of any system: a function's key that is nearly one of these is a slip of the pen."""
_NEAR = 0.85
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
OFF = (None, False, "none", "off", "unrestricted")
"""Values that ask for nothing."""


def _isolates(key: Any, value: Any, keys: tuple[str, ...] = ISOLATING) -> bool:
    is_off = value is None or value is False or (isinstance(value, str) and value in OFF)  # 0 is a limit
    return not is_off and _is_near(str(key), keys)


@lru_cache(maxsize=1024)  # the same keys come in each system and case, and to compare one with all takes half a ms
def _is_near(key: str, keys: tuple[str, ...]) -> bool:
    name = _CAMEL.sub("_", key).replace("-", "_").lower()
    return bool(get_close_matches(name, keys, n=1, cutoff=_NEAR))


def refusal(key: Any, known: Iterable[str] = ()) -> str:
    """Why a suite with that key is rejected; names the nearest of the `known` keys, which may be meant."""
    near = did_you_mean(str(key), known)
    return f"{key!r} isolates or limits what is run, and is not supported, so nothing is run{near}"


def isolating(raw: Any, known: Iterable[str], keys: tuple[str, ...] = ISOLATING) -> Iterator[str]:
    """The keys of a mapping that are not `known` and ask for isolation or a limit, or nearly match such keys.

    The same holds within unknown settings, as for `settings.sandbox`.
    """
    names = frozenset(known)
    for key, value in raw.items() if isinstance(raw, dict) else ():
        if key in names:
            continue
        if _isolates(key, value, keys):
            yield str(key)
        elif key in SETTINGS:
            yield from (f"{key}.{inner}" for inner in isolating(value, (), keys))


def isolating_function(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Such keys of a Python function, whose other keys are its own, each with what is wrong."""
    for key, value in config.items():
        if key not in _OF_SYSTEMS and _isolates(key, value, _OF_SYSTEMS):
            yield key, f"unknown key{did_you_mean(key, _OF_SYSTEMS)}; keys of your own belong under metadata"
        elif key == "workspace" and isinstance(value, dict):
            yield key, "a workspace is for all systems: it belongs at the top of the file"
        elif _isolates(key, value, _OF_FUNCTIONS):
            yield key, f"{refusal(key)}; keys of your own belong under metadata"


def isolating_inner_functions(config: Mapping[str, Any], place: tuple[str, ...] = ()) -> Iterator[tuple[Place, str]]:
    """Isolating keys of Python functions that another system calls (`inner_system`, `inner_config`), by their place.

    Limits for a whole system would be the function's own keys there, and limit nothing.
    """
    for key in ("inner_system", "inner_config"):
        inner = config.get(key)
        if not isinstance(inner, dict):
            continue
        adapter = inner.get("adapter") if key == "inner_system" else config.get("inner_adapter")
        if adapter == "python_function":
            for limit in (limit for limit in _OF_SYSTEMS if limit in inner):
                yield (*place, key, limit), "limits nothing here: it belongs to the system itself, one level up"
            yield from (((*place, key, name), message) for name, message in isolating_function(inner))
        yield from isolating_inner_functions(inner, (*place, key))
