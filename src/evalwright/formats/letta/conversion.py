"""What `convert` needs to know about Letta suites."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evalwright.formats.letta import FORMAT
from evalwright.formats.shared.findings import unknown_keys
from evalwright.formats.shared.portable_paths import absolute_place

__all__ = ["normalize", "unread"]

_TARGET = {
    "kind", "backend", "callable", "function", "endpoint", "url", "model", "path", "agent_id", "agent_script",
    "model_handles", "model_configs", "timeout", "max_retries",
}  # fmt: skip
_GRADER = ("display_name", "agent_file", "agent_id", "judge_tool_name")


def normalize(data: dict[str, Any]) -> dict[str, Any]:
    """Users' functions with the absolute paths of their files."""
    config = dict(data["config"])
    if data.get("adapter") in FORMAT.targets:
        folder = config.pop("folder", ".")
        named = [key for key in ("backend", "agent_script", "setup_script") if key in config]
        return data | {"config": config | {key: absolute_place(config[key], [folder]) for key in named}}
    section = data | {"config": _function(config)}
    if extractor := data.get("extractor"):
        section["extractor"] = {**extractor, "config": _function(extractor["config"])}
    return section


def _function(config: dict[str, Any]) -> dict[str, Any]:
    named = config.get("function")
    return config | {"function": absolute_place(named, ["/"])} if isinstance(named, str) else config


def unread(document: dict[str, Any]) -> Iterator[str]:
    """Paths of keys without effect."""
    if "sandbox" in document:
        yield "sandbox"
    target = document.get("target")
    used = _TARGET | ({"base_url"} if isinstance(target, dict) and target.get("kind") == "openai" else set())
    yield from unknown_keys(target, used, "target.")
    graders = document.get("graders") or {"default": document.get("grader")}
    for name, grader in graders.items() if isinstance(graders, dict) else ():
        yield from (f"graders.{name}.{key}" for key in _GRADER if isinstance(grader, dict) and key in grader)
