"""Variables that a provider or the configuration sets (`env`): for a provider's own templates, and for the key and the
address of a model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from evalwright.formats.promptfoo.file import env_names, with_environment
from evalwright.formats.promptfoo.origin import Origin
from evalwright.formats.promptfoo.values import template_text

__all__ = ["with_own_variables"]

_COMPANIES = {"azureopenai": "AZURE", "google": "(?:GOOGLE|GEMINI)", "togetherai": "TOGETHER"}
_NAMES = {
    "apiKey": "(?:_OPENAI)?_API_KEY",
    "apiBaseUrl": "(?:_OPENAI)?(?:_API)?_BASE_URL",
    "apiHost": "(?:_OPENAI)?_API_HOST",
}
"""How the variables end that stand for a key of a model's `config`; before that is the company's name."""
_MODELS = ("chat", "embedding", "moderation")
_GET_ALL = ("python", "javascript", "exec")
"""Programs get all of them, with the other options of the provider."""


def with_own_variables(
    provider: dict[str, Any], shared: Mapping[str, str], kind: str, origin: Origin
) -> dict[str, Any]:
    """The provider with its variables put into its settings; those that nothing reads are warnings. `shared` are those
    of the configuration, where its templates are already filled in."""
    own = {name: template_text(value) for name, value in (provider.get("env") or {}).items() if value is not None}
    variables = {**shared, **own}
    if not variables:
        return provider
    others = {key: value for key, value in provider.items() if key != "env"}
    read = set(env_names(others))
    expanded: dict[str, Any] = with_environment(others, own)
    config = expanded.get("config") or {}
    if kind in _MODELS:
        model = _variables_of_model(str(expanded["id"]).partition(":")[0], config, variables)
        if model:
            expanded["config"] = {**config, **{key: variables[name] for key, name in model.items()}}
        read |= {*model.values()}
    programs = kind in _GET_ALL
    for name in own.keys() - read if not programs else ():
        origin.at("env", name).warn("nothing reads this variable", unread=True)
    kept = variables if programs else own
    return {**expanded, **({"env": kept} if kept else {})}


def _variables_of_model(prefix: str, config: Mapping[str, Any], variables: Mapping[str, str]) -> dict[str, str]:
    """The variables that stand for keys of a model's settings, which take precedence if they are given."""
    company = _COMPANIES.get(prefix, prefix.upper())
    names = {}
    for key, ending in _NAMES.items():
        named = (name for name in variables if re.fullmatch(company + ending, name))
        if not config.get(key) and (name := next(named, None)) is not None:
            names[key] = name
    if (chosen := config.get("apiKeyEnvar")) is not None:
        names = {key: name for key, name in names.items() if key != "apiKey"}
        names |= {"apiKey": chosen} if isinstance(chosen, str) and chosen in variables else {}
    return names
