"""promptfoo's providers that are not called here, and what comes closest to them."""

from __future__ import annotations

__all__ = ["nearest_of"]

_AGENT = (
    "in an eval.yaml, the target coding_agent calls {}; here, a Python provider can (docs/promptfoo.md, Coding agents)"
)
_CLAUDE, _CODEX = _AGENT.format("Claude Code"), _AGENT.format("Codex")
_WITH_MESSAGES = "models are called with messages here: use {}:MODEL, or call the API from a Python provider"
_NEAREST = {
    "anthropic:completion": _WITH_MESSAGES.format("anthropic:messages"),
    **{
        f"{company}:completion": _WITH_MESSAGES.format(f"{company}:chat")
        for company in ("azure", "azureopenai", "litellm", "openai", "together", "togetherai")
    },
    **dict.fromkeys(("anthropic:claude-agent-sdk", "anthropic:claude-code"), _CLAUDE),
    **dict.fromkeys(
        (
            "openai:codex",
            "openai:codex-sdk",
            "openai:codex-app-server",
            "openai:codex-desktop",
            "openai:codex-security",
        ),
        _CODEX,
    ),
    **dict.fromkeys(("opencode", "openclaw", "openinterpreter"), _AGENT.format("any command")),
    "azure:moderation": "use openai:moderation, or call the service in an assertion of type python",
    "openai:agents-api": "call the agent from a Python or exec provider",
    "openai:live": "use openai:chat",
    "openai:assistant": "call the assistant from a Python provider",
    "openai:realtime": "use openai:chat",
    "openai:image": "call the API from a Python provider",
    "openai:speech": "call the API from a Python provider",
    "openai:transcription": "call the API from a Python provider",
    "openai:tts": "call the API from a Python provider",
    "openai:video": "call the API from a Python provider",
    "openai:agents": "call the agent from a Python or exec provider",
    "openai:chatkit": "call the agent from a Python or exec provider",
    "webhook": "use an http provider",
    "websocket": "use a Python provider",
    "ws": "use a Python provider",
    "wss": "use a Python provider",
    "mcp": "use a Python provider",
    "browser": "use a Python provider",
    "ruby": "use an exec provider",
    "golang": "use an exec provider",
    "package": "name the file of the provider: file://FILE.js",
    "promptfoo": "name a model or a program of your own",
}
"""Known providers that are not supported, and what comes closest to them."""


def nearest_of(named: str) -> str | None:
    """What comes closest to a provider that is known and not supported; None for any other."""
    found = (cure for kind, cure in _NEAREST.items() if named == kind or named.startswith(f"{kind}:"))
    return next(found, None)
