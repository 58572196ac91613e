"""Models under promptfoo's names: the request made from a provider and a prompt."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from evalwright.errors import InputError
from evalwright.files import yaml
from evalwright.formats.promptfoo.faults import TemplateError
from evalwright.formats.promptfoo.providers import (
    COMPANIES,
    KEYS_OF_COMPANIES,
    PASSED_ON,
    Provider,
    called_of,
    with_our_names,
)
from evalwright.formats.promptfoo.request_parts import sent_part
from evalwright.formats.promptfoo.templates import render_all
from evalwright.formats.promptfoo.values import as_javascript
from evalwright.llm.replies import arguments_in
from evalwright.model.chat import ChatMessage, ChatRequest
from evalwright.model.trace import ToolCall
from evalwright.session import environment, hide, learn

__all__ = ["messages_in", "model_of", "offered_tools", "request_of", "settings_of", "textless_request"]

_WORDS = ("chat", "responses", "messages", "completion", "embedding", "embeddings", "moderation")
_LITELLM = {"vertex": "vertex_ai", "bedrock": "bedrock", "together": "together_ai", "togetherai": "together_ai"}
_OLLAMA = "http://localhost:11434/v1"
_AZURE = ("AZURE_API_BASE_URL", "AZURE_OPENAI_API_BASE_URL", "AZURE_API_HOST", "AZURE_OPENAI_API_HOST")
"""promptfoo's variables with the address of an Azure resource; the model layer knows others."""
_AZURE_KEY = "AZURE_API_KEY"
_RESPONSES = ":responses:"
_MESSAGES = re.compile(r'\[\s*(?:["{[\d-]|true|false|null).*\]|\{.*\}', re.DOTALL)
"""What promptfoo takes for JSON."""
_MODERATOR = "omni-moderation-latest"
"""The model of a provider `openai:moderation`."""
_MOST_TOKENS = 1024
_REASONING = ("o1", "o3", "o4", "gpt-5")
"""Beginnings of the names of models that accept no temperature."""

_SCHEMA_NAME = "response_schema"
"""What promptfoo calls a schema without a name."""


def model_of(provider: Provider) -> tuple[str, str]:
    """The names of a provider's company and model."""
    prefix, _, rest = called_of(provider).partition(":")
    word, _, model = rest.partition(":")
    if word not in _WORDS:
        model = rest
    if word == "moderation":
        model = model or _MODERATOR
    return prefix, str(provider.get("config", {}).get("model") or model)


def textless_request(provider: Provider) -> ChatRequest:
    """The model that embeds or moderates, its address and its key, without texts."""
    prefix, model = model_of(provider)
    company, config = "openai" if prefix == "ollama" else COMPANIES[prefix], provider.get("config", {})
    return ChatRequest(
        model if "/" in model else f"{company}/{model}",
        [],
        base_url=_company_address(prefix, model, config),
        api_key_env=_key(provider, config),
    )


def messages_in(prompt: str, provider: Provider) -> list[dict[str, Any]]:
    """The messages of a prompt: a list of them in JSON or YAML, or the text as the user's message.

    Raises TemplateError for what begins and ends as messages do but cannot be read, such as with a variable that broke
    it. As in promptfoo, this goes only for OpenAI's chat completions.
    """
    text = prompt.strip()
    value: Any = None
    try:
        if _MESSAGES.fullmatch(text):
            value = json.loads(text)
        elif text.startswith("- role:"):
            value = as_javascript(yaml.parse(text.encode(), "prompt", "yaml12").value)
    except (ValueError, InputError) as error:
        called = called_of(provider)
        if not called.startswith("openai:") or _RESPONSES in called:
            return [{"role": "user", "content": prompt}]
        kind = "YAML" if text.startswith("-") else "JSON"
        raise TemplateError(f"the prompt looks like messages and is not valid {kind}: {error}") from None
    if isinstance(value, list) and value and all(isinstance(item, dict) and "role" in item for item in value):
        return value
    return [{"role": "user", "content": prompt}]


def request_of(
    provider: Provider,
    prompt: str,
    more: Mapping[str, Any],
    folder: str,
    trial: int = 0,
    variables: Mapping[str, Any] | None = None,
) -> ChatRequest:
    """The request for a prompt. `more` are settings for this call; without `variables`, templates in settings stay."""
    written = settings_of(provider, more)
    prefix, model = model_of({**provider, "config": written})
    company, config = COMPANIES[prefix], with_our_names(prefix, written)
    extra = {key: sent_part(key, config[key], folder, variables) for key in PASSED_ON if config.get(key) is not None}
    extra |= config.get("passthrough") or {}
    if headers := config.get("headers"):
        extra["extra_headers"] = headers
    bare = model.startswith(_REASONING) or prefix in KEYS_OF_COMPANIES or config.get("omitDefaults") is True
    most = config.get("max_tokens", config.get("max_output_tokens"))
    if most is None and "max_completion_tokens" not in extra and not bare:
        most = _MOST_TOKENS
    request = ChatRequest(
        _model_name(prefix, company, model),
        [_message(message) for message in messages_in(prompt, provider)],
        config.get("instructions") or config.get("systemPrompt"),
        config.get("temperature", None if bare else 0),
        most if most is None or most > 0 else None,  # for Ollama, a negative number is no limit
        repeat=trial,
        provider=company if company in ("openai", "anthropic", "azure") else None,
        base_url=_company_address(prefix, model, config),
        api_key_env=_key(provider, config),
        extra=extra,
    )
    return _responding(request) if _RESPONSES in called_of(provider) else request


def settings_of(provider: Provider, more: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a model as they are written, with those of a call in place of its own."""
    return {**provider.get("config", {}), **more}


def offered_tools(provider: Provider, folder: str, variables: Mapping[str, Any]) -> dict[str, Any]:
    """The `tools` and `functions` in the configuration of a provider, those in files included; as in promptfoo, the
    templates of these are filled in as well, for judging calls if not for the model."""
    config, keys = provider.get("config", {}), ("tools", "functions")
    offered = {key: sent_part(key, config[key], folder, variables) for key in keys if config.get(key) is not None}
    return {key: render_all(value, variables) for key, value in offered.items()}


def _responding(request: ChatRequest) -> ChatRequest:
    import msgspec

    return msgspec.structs.replace(request, api="responses", extra=_responses_settings(request.extra))


def _model_name(prefix: str, company: str, model: str) -> str:
    if prefix in _LITELLM:
        return f"litellm/{_LITELLM[prefix]}/{model}"
    if company in ("openai", "anthropic", "azure"):
        return model
    return f"openai/{model}" if prefix == "ollama" else f"{company}/{model}"


def _company_address(prefix: str, model: str, config: Mapping[str, Any]) -> str | None:
    return _azure(model, config) if COMPANIES[prefix] == "azure" else _address(prefix, config)


def _address(prefix: str, config: Mapping[str, Any]) -> str | None:
    if address := config.get("apiBaseUrl"):
        return str(address)
    if host := config.get("apiHost"):
        return f"{_with_scheme(str(host)).rstrip('/')}/v1"
    if prefix == "ollama":
        return f"{os.environ['OLLAMA_BASE_URL'].rstrip('/')}/v1" if "OLLAMA_BASE_URL" in os.environ else _OLLAMA
    return os.environ.get("OPENAI_API_BASE_URL") if prefix == "openai" and "OPENAI_BASE_URL" not in os.environ else None


def _azure(model: str, config: Mapping[str, Any]) -> str | None:
    """The address of a resource on Azure, or of its deployment if the configuration names a version of the API."""
    known = environment()
    named = (config.get("apiBaseUrl"), config.get("apiHost"), *map(known.get, _AZURE))
    host = next((str(name) for name in named if name), None)
    if host is None:
        return None
    address, version = _with_scheme(host), config.get("apiVersion")
    if not version or "/openai" in address:
        return address
    return f"{address.rstrip('/')}/openai/deployments/{quote(model)}?api-version={version}"


def _with_scheme(host: str) -> str:
    return host if "://" in host else f"https://{host}"


def _key(provider: Provider, config: Mapping[str, Any]) -> str | None:
    """The variable with the key; a key that is written in the configuration is put into a variable of its own."""
    key = config.get("apiKey")
    if (named := config.get("apiKeyEnvar")) and named not in provider.get("env", {}):
        return str(named)
    if not isinstance(key, str) or not key:
        return _AZURE_KEY if called_of(provider).startswith("azure") and environment().get(_AZURE_KEY) else None
    name = "PROMPTFOO_" + "".join(sign if sign.isalnum() else "_" for sign in provider["label"].upper()) + "_KEY"
    learn({name: key})
    hide({name: key})
    return name


def _message(message: Mapping[str, Any]) -> ChatMessage:
    calls = message.get("tool_calls")
    return ChatMessage(
        str(message["role"]),
        message.get("content"),
        message.get("name"),
        [_call(call) for call in calls if isinstance(call, dict)] if isinstance(calls, list) else [],
        message.get("tool_call_id"),
    )


def _call(call: Mapping[str, Any]) -> ToolCall:
    function = call.get("function")
    function = function if isinstance(function, dict) else {}
    arguments = function.get("arguments")
    known = arguments if isinstance(arguments, dict) else arguments_in(arguments)
    return ToolCall(str(function.get("name", "")), call.get("id"), known)


def _responses_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings in the form of OpenAI's Responses API; configurations have them in that of chat completions.

    `response_format` and `verbosity` are parts of `text`, and functions have no level of their own.
    """
    sent = {key: value for key, value in settings.items() if key not in ("response_format", "verbosity")}
    text = {
        **({"format": _format(form)} if isinstance(form := settings.get("response_format"), dict) else {}),
        **({"verbosity": settings["verbosity"]} if settings.get("verbosity") else {}),
    }
    if text:
        sent["text"] = {**text, **(sent.get("text") or {})}
    if isinstance(tools := sent.get("tools"), list):
        sent["tools"] = [_flat_tool(tool) for tool in tools]
    if (choice := _function_in(sent.get("tool_choice"))) is not None:
        sent["tool_choice"] = {"type": "function", "name": choice.get("name")}
    return sent


def _format(form: Mapping[str, Any]) -> dict[str, Any]:
    if form.get("type") != "json_schema":
        return {"type": "json_object" if form.get("type") == "json_object" else "text"}
    inner: Mapping[str, Any] = form.get("json_schema") or {}
    schema, name = form.get("schema") or inner.get("schema"), inner.get("name") or form.get("name") or _SCHEMA_NAME
    return {"type": "json_schema", "name": name, "schema": schema, "strict": True}


def _flat_tool(tool: Any) -> Any:
    function = _function_in(tool)
    return tool if function is None else {**{key: tool[key] for key in tool if key != "function"}, **function}


def _function_in(value: Any) -> dict[str, Any] | None:
    """The function of a tool, or of the choice of one, in the form of chat completions."""
    inner = value.get("function") if isinstance(value, dict) and value.get("type") == "function" else None
    return inner if isinstance(inner, dict) else None
