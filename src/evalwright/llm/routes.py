"""Finds out from a model's name how to call it: which API, at which address, with which key."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from typing import NamedTuple
from urllib.parse import quote

import msgspec

from evalwright.model.chat import ChatRequest
from evalwright.registry import names

__all__ = ["BATCHED", "DEPLOYMENTS", "Route", "key_of", "load_library", "route_of"]


class _Provider(NamedTuple):
    interface: str
    base_url: str | None
    keys: tuple[str, ...]
    base_url_variable: str | None = None


_PROVIDERS = {
    "openai": _Provider("openai", None, ("OPENAI_API_KEY",), "OPENAI_BASE_URL"),
    "anthropic": _Provider("anthropic", None, ("ANTHROPIC_API_KEY",), "ANTHROPIC_BASE_URL"),
    "azure": _Provider("openai", None, ("AZURE_OPENAI_API_KEY",), "AZURE_OPENAI_ENDPOINT"),
    "google": _Provider(
        "openai",
        "https://generativelanguage.googleapis.com/v1beta/openai/",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"),
        "GEMINI_BASE_URL",
    ),
    "openrouter": _Provider("openai", "https://openrouter.ai/api/v1", ("OPENROUTER_API_KEY",), "OPENROUTER_BASE_URL"),
    "deepseek": _Provider("openai", "https://api.deepseek.com", ("DEEPSEEK_API_KEY",), "DEEPSEEK_BASE_URL"),
    "groq": _Provider("openai", "https://api.groq.com/openai/v1", ("GROQ_API_KEY",), "GROQ_BASE_URL"),
    "mistral": _Provider("openai", "https://api.mistral.ai/v1", ("MISTRAL_API_KEY",), "MISTRAL_BASE_URL"),
    "xai": _Provider("openai", "https://api.x.ai/v1", ("XAI_API_KEY",), "XAI_BASE_URL"),
}
BATCHED = ("openai", "anthropic")
"""Interfaces with an API for batches."""
_LIBRARIES = ("openai", "anthropic", "litellm")
"""Packages behind interfaces, which take seconds to import on a slow machine."""
_ALIASES = {"gemini": "google"}
_AZURE_VERSIONS = ("AZURE_OPENAI_API_VERSION", "OPENAI_API_VERSION")
_AZURE_VERSION = "2024-10-21"
"""The last of Azure's dated versions that is not a preview."""
DEPLOYMENTS = "/openai/deployments/"
"""In addresses of Azure's dated versions, which have their own forms of keys and versions."""
_DATE = re.compile(r"20\d\d-\d\d-\d\d")
_LOOPBACK = re.compile(r"https?://(localhost|127(\.\d+){3}|\[::1\])(:\d+)?(/|\Z)")


class Route(NamedTuple):
    """Where one request goes. `interface` is `openai` (chat completions) or `anthropic` (messages).

    `key_variable` names the variables that may hold the key.
    """

    interface: str
    model: str
    base_url: str | None
    key: str | None
    key_variable: str
    wants_key: bool = False
    """True if the address is the provider's own or the user names the key's variable: without a key the call then
    fails."""
    address_variable: str = ""
    """The variable that can name another address, if this one is the provider's own."""

    @property
    def is_function(self) -> bool:
        """Whether it leads to a function of the user's, not to the provider of another package."""
        return self.interface == "callable" and self.model.startswith("python:")

    @property
    def is_loopback(self) -> bool:
        return self.base_url is not None and _LOOPBACK.match(self.base_url) is not None

    @property
    def missing_key(self) -> str | None:
        """The variables, one of which should hold the key; None if the key is there or not needed."""
        return self.key_variable if self.wants_key and not self.is_loopback and not self.key else None

    @property
    def without_key(self) -> str:
        """What to say if a key is missing."""
        return f"{self.missing_key} is not set: {self.model!r} needs a key"


def route_of(request: ChatRequest, environment: Mapping[str, str] = os.environ) -> Route:
    """The route of a request: by its own provider, else by its model's name (`provider/model`, `claude-...`).

    `python:module:attribute` is a Python function of the user's, `litellm/...` goes through litellm, and a prefix that
    another package has registered as a provider goes to that provider. Any other name goes to the OpenAI-compatible
    endpoint of OPENAI_BASE_URL. A custom address needs no key.
    """
    elsewhere = _elsewhere(request, environment)
    if elsewhere is not None:
        return elsewhere
    named, model = _named_provider(request)
    provider = _PROVIDERS[named]
    of_environment = environment.get(provider.base_url_variable) if provider.base_url_variable else None
    base_url = request.base_url or of_environment or provider.base_url
    if named == "azure" and base_url:
        base_url = _azure(base_url, model, environment)
    variables = (request.api_key_env,) if request.api_key_env else provider.keys
    variable = next((name for name in variables if environment.get(name)), variables[0])
    is_default_url = base_url == provider.base_url
    wants_key = is_default_url or named == "azure" or request.api_key_env is not None
    key, movable = environment.get(variable) or None, provider.base_url_variable if is_default_url else None
    return Route(provider.interface, model, base_url, key, " or ".join(variables), wants_key, movable or "")


def _azure(address: str, model: str, environment: Mapping[str, str]) -> str:
    """Where a model of Azure is: version 1 of its API, which is like OpenAI's, or, for a dated version, its deployment.

    The address may be just the resource's. See Azure's "API version lifecycle".
    """
    chosen = next((environment[name] for name in _AZURE_VERSIONS if environment.get(name)), "")
    if "/openai" not in address:
        dated = f"/deployments/{quote(model)}" if _DATE.match(chosen) else "/v1"
        address = f"{address.rstrip('/')}/openai{dated}"
    if DEPLOYMENTS not in address or "api-version=" in address:
        return address
    return f"{address}{'&' if '?' in address else '?'}api-version={chosen or _AZURE_VERSION}"


def _elsewhere(request: ChatRequest, environment: Mapping[str, str]) -> Route | None:
    model = request.model
    prefix, slash, rest = model.partition("/")
    if model.startswith("python:"):
        return Route("callable", model, model.removeprefix("python:"), "", "")
    if slash and prefix == "litellm":
        # Without an address or a key in the request, litellm finds its own.
        key = request.api_key_env or ""
        return Route("litellm", rest, request.base_url, environment.get(key) or None, key, wants_key=key != "")
    if slash and prefix not in _PROVIDERS and prefix in names("providers"):
        return Route("callable", rest, prefix, "", "")
    return None


def _named_provider(request: ChatRequest) -> tuple[str, str]:
    prefix, slash, rest = request.model.partition("/")
    prefix = _ALIASES.get(prefix, prefix)
    provider = _ALIASES.get(request.provider or "", request.provider or "")
    if provider in _PROVIDERS:
        return provider, rest if slash and prefix == provider else request.model
    if slash and prefix in _PROVIDERS:
        return prefix, rest
    return ("anthropic" if request.model.startswith("claude") else "openai"), request.model


def key_of(request: ChatRequest, *, at: str | None) -> str:
    """The key under which a call is cached and recorded: SHA-256 (hex) of everything that can change the reply.

    `at` is the address to which the request goes; None if that does not matter.
    """
    plain = msgspec.to_builtins(request)
    # How a call is made does not change its reply, and a recording must be usable with another address or key.
    for name in ("base_url", "api_key_env", "attempts", "attempt_seconds", "waits", "default_limit", "stream"):
        plain.pop(name, None)
    return hashlib.sha256(msgspec.json.encode([plain, at], order="sorted")).hexdigest()


def load_library(interface: str) -> None:
    """Import what an interface needs before its first call. If it is not installed, the call reports it."""
    if interface in _LIBRARIES:
        with suppress(ImportError):
            import_module(interface)
