"""The configuration in the result files: with a gate as 0.9 writes it, with a reward as a suite that 0.25 reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalwright.model.plan import EvaluatorSpec

__all__ = ["written_config"]

_SHOWN = ("target", "gate", "graders")
_OF_SUITE = (
    "name", "description", "reward", "max_samples", "sample_tags", "num_runs", "max_concurrent", "cleanup",
    "setup_script",
)  # fmt: skip
_OF_TARGET = (
    "base_url", "timeout", "project_id", "max_retries", "model_handles", "agent_script", "flags", "permission_mode",
    "memory_workspace", "memory_dir",
)  # fmt: skip
"""Keys that 0.25 knows; it rejects others, and the kinds of agents that it no longer has."""
_OF_GRADER = ("kind", "display_name", "extractor", "extractor_config")
_OF_TOOL = (*_OF_GRADER, "function")
_OF_JUDGE = (*_OF_GRADER, "model", "temperature", "provider", "max_retries", "timeout", "system_prompt")


def written_config(
    document: Mapping[str, Any], graders: Mapping[str, Any], evaluators: Sequence[EvaluatorSpec]
) -> dict[str, Any]:
    """The part of a suite that goes into its result files."""
    if "gate" in document:
        return {key: document[key] for key in _SHOWN if key in document}
    prompts = {spec.name: spec.config.get("prompt") for spec in evaluators}
    target = document.get("target") or {}
    return {
        **_some_keys(document, _OF_SUITE),
        "dataset": str(document.get("dataset")),
        "target": {"kind": "letta_code", **_some_keys(target, _OF_TARGET)},
        "graders": {key: _grader(raw, prompts.get(key)) for key, raw in graders.items() if isinstance(raw, Mapping)},
    }


def _grader(raw: Mapping[str, Any], prompt: str | None) -> dict[str, Any]:
    """A judge with the text of its prompt: the file with the prompt may be gone when this is read."""
    if raw.get("kind") == "tool":
        return _some_keys(raw, _OF_TOOL)
    return {**_some_keys(raw, _OF_JUDGE), "kind": "model_judge", "prompt": prompt or ""}


def _some_keys(raw: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    return {key: raw[key] for key in keys if raw.get(key) is not None}
