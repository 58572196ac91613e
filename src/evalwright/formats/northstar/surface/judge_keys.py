"""The keys that judges need, and why a judge could not be called, in words that say what to do."""

from __future__ import annotations

import re

from evalwright.errors import EvaluatorError
from evalwright.session import environment

__all__ = ["JudgeAuthenticationError", "check_key", "failure_message", "required_key"]

_BY_PROVIDER = {
    **{
        provider: f"{provider.upper()}_API_KEY"
        for provider in (
            "openrouter", "openai", "anthropic", "azure", "gemini", "google", "groq", "mistral", "cohere", "together",
            "replicate", "perplexity", "deepseek", "fireworks", "huggingface",
        )
    },
    "vertex_ai-language-models": "GOOGLE_APPLICATION_CREDENTIALS",
    "openai_compatible": "OPENAI_API_KEY",
    "text-completion-openai": "OPENAI_API_KEY",
}  # fmt: skip
_BY_NAME = (
    (("gpt-", "o1-", "o3-", "o4-", "text-embedding-", "dall-e", "whisper"), "OPENAI_API_KEY"),
    (("claude",), "ANTHROPIC_API_KEY"),
    (("gemini",), "GEMINI_API_KEY"),
    (("command",), "COHERE_API_KEY"),
    (("mixtral", "mistral"), "MISTRAL_API_KEY"),
)
"""Prefixes of model names without a provider."""


class JudgeAuthenticationError(RuntimeError):
    """The variable with the key of a judge's model is not set."""


def required_key(model: str) -> str | None:
    """The variable with the key that a model needs; None for unknown providers."""
    provider, slash, _ = model.lower().partition("/")
    if slash:
        return _BY_PROVIDER.get(provider)
    return next((variable for names, variable in _BY_NAME if provider.startswith(names)), None)


def check_key(model: str) -> None:
    """Raises JudgeAuthenticationError when the key of a known provider is not set."""
    variable = required_key(model)
    if variable is not None and not environment().get(variable):
        raise JudgeAuthenticationError(f"{model!r} cannot judge: the variable {variable}, with its key, is not set")


def failure_message(error: BaseException, model: str) -> tuple[str, str]:
    """Why a judge gave no verdict, and what to do about it."""
    name, text, provider = type(error).__name__, str(error).lower(), _provider(model)
    kind, status = getattr(error, "type", ""), _http_status(error)

    def is_about(classes: tuple[str, ...], kinds: tuple[str, ...], statuses: tuple[int, ...], words: str) -> bool:
        # numbers in the text are not read: 401 may be a number of tokens
        return name in classes or kind in kinds or status in statuses or re.search(words, text) is not None

    if is_about(("PermissionDeniedError",), (), (403,), "forbidden"):
        return f"Judge model '{model}' denied the request.", f"{provider} does not allow this model (403)."
    if is_about(
        ("AuthenticationError", "JudgeAuthenticationError"),
        ("authentication",),
        (401,),
        r"missing authentication|(invalid|incorrect) api key|\bunauthorized",
    ):
        variable = required_key(model)
        key = f"the variable {variable} to a valid API key" if variable else "the API key of the provider"
        rejected = f"{provider} rejected the request (401). " if status == 401 else ""
        return f"Judge model '{model}' is not authenticated.", f"{rejected}Set {key}."
    if is_about(("RateLimitError",), ("rate_limited", "quota"), (429,), "rate limit|too many requests"):
        return f"Judge model '{model}' is rate-limited.", f"{provider} has a limit of requests (429). Try again later."
    if is_about(("ContextWindowExceededError",), (), (), r"context[ _]length|context window"):
        return f"Judge model '{model}' exceeded its context window.", "Shorten what is judged, or take another model."
    if is_about(("Timeout", "APITimeoutError", "TimeoutError"), ("timeout",), (408, 504), r"timed out|timeout"):
        return f"Judge model '{model}' timed out.", "Try again, or take a faster model."
    if is_about(("NotFoundError",), (), (404,), "model not found|unknown model"):
        return f"Judge model '{model}' was not found.", f"{provider} does not know the model '{model}'."
    return f"Judge model '{model}' raised {name}.", "The LLM judge errored before producing feedback."


def _http_status(error: BaseException) -> int | None:
    """The status of the response that an exception is about: ours, or an HTTP client's."""
    if isinstance(error, EvaluatorError):
        return error.status
    for source in (error, getattr(error, "response", None)):
        if isinstance(status := getattr(source, "status_code", None), int):
            return status
    return None


def _provider(model: str) -> str:
    provider, slash, _ = model.partition("/")
    return provider if slash else "Its provider"
