"""What promptfoo 0.123.1 takes for a judge where a configuration names none, by the keys that are set."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["DEFAULT_EMBEDDER", "DEFAULT_MODERATOR", "default_model"]

_MODELS = (
    ("OPENAI_API_KEY", "openai:chat:gpt-5.6-sol"),
    ("ANTHROPIC_API_KEY", "anthropic:messages:claude-sonnet-4-6"),
)
DEFAULT_EMBEDDER = "openai:embedding:text-embedding-3-large"
DEFAULT_MODERATOR = "openai:moderation:omni-moderation-latest"


def default_model(variables: Mapping[str, str]) -> str:
    """The id of the model that judges."""
    return next((model for name, model in _MODELS if variables.get(name)), _MODELS[0][1])
