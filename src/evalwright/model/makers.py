"""The maker of a model, by the model's name: judges may prefer answers of their own maker's models."""

from __future__ import annotations

import re

__all__ = ["maker_of"]

_MAKERS = {
    "OpenAI": r"gpt|chatgpt|o\d|codex|davinci",
    "Anthropic": "claude",
    "Google": "gemini|gemma|palm",
    "Meta": "llama|meta-llama",
    "Mistral": r"(?:mi|mini|code|magi|dev|vox)stral|mixtral|pixtral",
    "Alibaba": "qwen|qwq",
    "DeepSeek": "deepseek",
    "xAI": "grok",
    "Cohere": "command|c4ai|aya",
    "Zhipu": "glm|chatglm",
    "Moonshot": "kimi|moonshot",
    "Microsoft": "phi-",
    "NVIDIA": "nemotron",
    "Amazon": "nova-|titan-",
    "MiniMax": "minimax|abab",
}
_NAMES = {maker: re.compile(rf"(?:^|[/.:@])(?:{names})", re.IGNORECASE) for maker, names in _MAKERS.items()}


def maker_of(model: str) -> str | None:
    """The maker of a model, whoever serves it; None if its name does not tell."""
    return next((maker for maker, names in _NAMES.items() if names.search(model)), None)
