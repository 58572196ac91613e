"""The providers of a configuration: what is called, under which name, and promptfoo's name for it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from evalwright.errors import did_you_mean
from evalwright.files.credentials import without_credentials
from evalwright.files.key_paths import as_written
from evalwright.files.masker import looks_secret, may_be_secret
from evalwright.formats.promptfoo.default_graders import DEFAULT_EMBEDDER, DEFAULT_MODERATOR, default_model
from evalwright.formats.promptfoo.http_settings import plain_settings, without_unsupported
from evalwright.formats.promptfoo.origin import Origin
from evalwright.formats.promptfoo.own_variables import with_own_variables
from evalwright.formats.promptfoo.shapes import CHAT, HTTP, PROVIDER, warn_of_others, what_fits
from evalwright.formats.promptfoo.sources import SCRIPTS, Sources, in_file, split_function
from evalwright.formats.promptfoo.unsupported import nearest_of
from evalwright.formats.promptfoo.values import as_javascript, compact_json
from evalwright.session import environment

__all__ = [
    "COMPANIES",
    "KEYS_OF_COMPANIES",
    "PASSED_ON",
    "REPLY_RETRIES",
    "Provider",
    "Providers",
    "called_of",
    "can_be_called",
    "check_files_of_request",
    "provider_kind",
    "unfit_grader",
    "with_our_names",
    "without_values",
]

Provider = dict[str, Any]
"""`id`, `label`, `config`, and possibly `prompts`, `transform`, `delay`, `env`, `inputs`: plain data. `calls` is
what is called, if the id is another name for it."""

COMPANIES: Mapping[str, str] = {
    "openai": "openai", "azure": "azure", "azureopenai": "azure", "anthropic": "anthropic", "openrouter": "openrouter",
    "ollama": "ollama", "groq": "groq", "mistral": "mistral", "deepseek": "deepseek", "together": "together",
    "togetherai": "together", "google": "google", "vertex": "litellm/vertex_ai", "bedrock": "litellm/bedrock",
    "litellm": "litellm", "xai": "xai",
}  # fmt: skip
"""Providers of models by the name before the first colon, and their prefix in our model names."""
PASSED_ON = (
    "top_p", "top_k", "stop", "seed", "response_format", "tools", "tool_choice", "functions", "function_call",
    "frequency_penalty", "presence_penalty", "max_completion_tokens", "reasoning_effort", "reasoning", "verbosity",
    "logprobs", "top_logprobs", "thinking", "text", "parallel_tool_calls",
)  # fmt: skip
"""Keys of a model's `config` that are sent unchanged."""
_OF_GEMINI = {"maxOutputTokens": "max_tokens", "topP": "top_p", "stopSequences": "stop"}
KEYS_OF_COMPANIES: Mapping[str, Mapping[str, str]] = {
    "google": _OF_GEMINI,
    "vertex": _OF_GEMINI,
    "ollama": {"num_predict": "max_tokens", "system": "instructions"},
}
"""Keys of a model's `config` that these companies have instead of ours. promptfoo sends them no defaults."""
_INNER = {"google": "generationConfig", "vertex": "generationConfig"}
"""Keys below which these companies have settings, too."""
REPLY_RETRIES = "replyRetries"
"""Our own key in the `config` of a judging provider: how often it is called again if its reply is unreadable."""
_READ = (
    "model", "temperature", "max_tokens", "max_output_tokens", "instructions", "systemPrompt", "passthrough", "headers",
    "apiBaseUrl", "apiHost", "apiVersion", "apiKey", "apiKeyEnvar", "omitDefaults", "showThinking", REPLY_RETRIES,
    *PASSED_ON,
)  # fmt: skip
_READ_OF_EMBEDDERS = ("model", "apiBaseUrl", "apiHost", "apiVersion", "apiKey", "apiKeyEnvar")
_MADE = {"embedding": ("embeddings", DEFAULT_EMBEDDER), "moderation": ("moderations", DEFAULT_MODERATOR)}
"""What judges make that write no text, and the default ones."""
_KNOWN = ("echo", "exec", "python", "javascript", "http", "https", *COMPANIES)
_URL = re.compile(r"https?:")
_NAMES_NO_MODEL = re.compile(r":(?:chat|responses|messages|completion|embeddings?)?:?\Z")


class Providers:
    """Reads providers; `env` has the variables of the configuration, in place of which a provider may have its own."""

    def __init__(self, sources: Sources, env: Mapping[str, str] = MappingProxyType({})) -> None:
        self._sources, self._env = sources, env
        self._silent: dict[int, tuple[str, Origin]] = {}
        """The listed providers that answer no prompts by their numbers: what they are, and where."""

    def listed(self, raw: Any, origin: Origin) -> list[Provider]:
        """Every provider under the key `providers` or `targets`; an entry that is there twice is read once.

        Those that answer no prompts are among them until `refuse` is called: a filter may leave them out.
        """
        if not isinstance(raw, list):
            return self._with_silent_noted(self._entry(raw, origin), 0, origin)
        providers: list[Provider] = []
        texts = [compact_json(entry) for entry in raw]  # which tell 1 and true apart
        for i, entry in enumerate(raw):
            if texts[i] in texts[:i]:
                origin.at(i).warn("the same entry again: as in promptfoo, it is one provider; a label makes it another")
            else:
                place = origin.at(i)
                providers += self._with_silent_noted(self._entry(entry, place), len(providers), place)
        return providers

    def _with_silent_noted(self, providers: list[Provider], first: int, origin: Origin) -> list[Provider]:
        for i, provider in enumerate(providers, first):
            if not _answers(provider):
                self._silent[i] = called_of(provider), origin
        return providers

    def refuse(self, numbers: Iterable[int]) -> None:
        """Report the listed providers with these numbers that answer no prompts."""
        for number in sorted(self._silent.keys() & set(numbers)):
            _refuse(*self._silent[number])

    def of_test(self, raw: Any, origin: Origin) -> Provider | None:
        """The provider of a test; None, after a report, if it is not a valid one."""
        provider = self.grader(raw, origin)
        if provider is None or _answers(provider):
            return provider
        _refuse(called_of(provider), origin)
        return None

    def grader(self, raw: Any, origin: Origin) -> Provider | None:
        """The provider of an assertion; None, after a report, if it is not a valid one."""
        entry = self._entry(raw, origin)
        if not entry or can_be_called(entry[0]):
            return entry[0] if entry else None
        _refuse(called_of(entry[0]), origin)
        return None

    def default_graders(self, origin: Origin) -> dict[str, Provider]:
        """promptfoo's own judges, by what they have to produce, if the configuration's variables say how to call them;
        otherwise none, as the environment of each run chooses."""
        text = default_model({**environment(), **self._env})
        ids = {"text": text, "embedding": DEFAULT_EMBEDDER, "moderation": DEFAULT_MODERATOR} if self._env else {}
        graders = {kind: self._checked_provider({"id": id}, origin)[0] for kind, id in ids.items()}
        return graders if any("config" in grader for grader in graders.values()) else {}

    def _entry(self, entry: Any, origin: Origin) -> list[Provider]:
        if isinstance(entry, str) and entry.startswith("file://") and entry.endswith((".yaml", ".yml", ".json")):
            path = self._sources.path(entry, origin)
            document = None if path is None else self._sources.document(path, origin)
            if document is None:
                return []
            value = as_javascript(document.value)
            return [p for item in (value if isinstance(value, list) else [value]) for p in self._entry(item, origin)]
        if isinstance(entry, str):
            return self._checked_provider({"id": _full_name(entry)}, origin)
        if isinstance(entry, dict) and "id" not in entry and len(entry) == 1:
            ((name, inner),) = entry.items()
            if isinstance(inner, dict) and name not in PROVIDER and isinstance(inner.get("id", name), str):
                return self._checked_provider({**inner, "id": name}, origin, inner.get("id", name))
        if isinstance(entry, dict) and isinstance(entry.get("id"), str):
            return self._checked_provider(entry, origin)
        origin.report(f"expected the id of a provider, or a mapping with one, found {as_written(entry)}")
        return []

    def _checked_provider(self, entry: dict[str, Any], origin: Origin, other: str | None = None) -> list[Provider]:
        """The provider, under its `other` name if it has one."""
        warn_of_others(entry, PROVIDER, origin)
        entry = what_fits(entry, PROVIDER, origin)
        named = str(entry["id"])
        kind = provider_kind(named)
        if kind in ("python", "javascript") and self._sources.path(_file_of(named)[0], origin) is None:
            return []
        entry = with_own_variables(entry, self._env, kind, origin)
        config = _config(entry.get("config", {}), kind, named, self._sources, origin.at("config"))
        self._sources.code(entry.get("transform"), origin.at("transform"))
        if (
            kind == "http"
            and "://" not in named
            and not config.get("url")
            and not (entry.get("config") or {}).get("request")
        ):
            origin.at("config").report("config.url: the address is missing")
            return []
        if kind in ("chat", "embedding") and _NAMES_NO_MODEL.search(named) and not config.get("model"):
            origin.report(f"the provider {named!r} names no model: expected {named.removesuffix(':')}:MODEL")
            return []
        kept = {key: entry[key] for key in PROVIDER if entry.get(key) is not None}
        own = {"config": config} if config else {}
        name = {"id": named} if other is None or other == named else {"id": other, "calls": named}
        return [{**kept, **own, **name, "label": str(entry.get("label") or without_credentials(name["id"]))}]


def can_be_called(provider: Provider) -> bool:
    """Whether it is known and supported."""
    return provider_kind(called_of(provider)) != ""


def _answers(provider: Provider) -> bool:
    """Whether it can be called with prompts."""
    return provider_kind(called_of(provider)) not in ("", "moderation")


def without_values(provider: Provider, taken: Mapping[str, str]) -> Provider:
    """The provider with `<NAME>` in its name for each variable of its address, and for secret ones of any name: names
    are stored and shown."""
    label = provider["label"]
    is_address = provider_kind(provider["id"]) == "http" and label == without_credentials(provider["id"])
    for name, value in sorted(taken.items(), key=lambda item: -len(item[1])):
        if may_be_secret(value) and (is_address or looks_secret(name)):
            label = label.replace(value, f"<{name}>")
    return {**provider, "label": label}


def _file_of(named: str) -> tuple[str, str]:
    """The file of a provider, and its function."""
    return split_function(re.sub(r"^(python|javascript):", "", named))


def _full_name(named: str) -> str:
    """promptfoo's name for a provider that is written as a string: a function has the name of its default, a chat model
    no `chat`. One in a mapping keeps its id."""
    if named.startswith("openai:chat:"):
        return named.replace(":chat:", ":", 1)
    if provider_kind(named) != "python":
        return named
    path, function = _file_of(named)
    return f"python:{path}:{function or 'default'}"


def _config(config: dict[str, Any], kind: str, named: str, sources: Sources, origin: Origin) -> dict[str, Any]:
    """The settings of a provider, with the files that they name checked."""
    prefix = named.partition(":")[0]
    if kind in ("chat", "embedding", "moderation"):
        config = what_fits(config, CHAT, origin)
        if kind != "chat":
            warn_of_others(config, _READ_OF_EMBEDDERS, origin)
        else:
            own, inner = KEYS_OF_COMPANIES.get(prefix, {}), _INNER.get(prefix, "")
            warn_of_others(config, (*_READ, *own, inner), origin)
            if isinstance(settings := config.get(inner), dict):
                warn_of_others(settings, ("temperature", *own), origin.at(inner))
        if config.get("showThinking") is True:
            origin.at("showThinking").warn("the reasoning of a model is no part of its output here", unread=True)
        check_files_of_request(config, sources, origin)
    elif kind == "http":
        config = without_unsupported(what_fits(config, HTTP, origin), origin)
        warn_of_others(config, HTTP, origin)
        config = plain_settings(config, named, sources, origin)
        if "{{" in (code := config.get("transformRequest", "")) and not in_file(code):
            meant = "is JavaScript, in which no templates are filled in: write prompt for {{prompt}}, vars.x for {{x}}"
            origin.at("transformRequest").warn(meant)
    for key in ("transformResponse", "responseParser", "transformRequest"):
        sources.code(config.get(key), origin.at(key))
    return config


def check_files_of_request(config: Mapping[str, Any], sources: Sources, origin: Origin) -> None:
    """Report files that are not there among those with parts of a model's requests."""
    for key in PASSED_ON:
        for name in config[key] if isinstance(config.get(key), list) else [config.get(key)]:
            sources.code(name, origin.at(key))
    form, place = config.get("response_format"), origin.at("response_format")
    if isinstance(form, dict) and isinstance(inner := form.get("json_schema"), dict):
        form, place = inner, place.at("json_schema")
    if isinstance(form, dict):
        sources.code(form.get("schema"), place.at("schema"))


def called_of(provider: Mapping[str, Any]) -> str:
    """What is called, under promptfoo's name for it."""
    return str(provider.get("calls", provider["id"]))


def with_our_names(prefix: str, config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The settings of a model with our names for those that its company calls otherwise."""
    if (own := KEYS_OF_COMPANIES.get(prefix)) is None:
        return config
    inner = config.get(_INNER.get(prefix, ""))
    settings = {**config, **(inner if isinstance(inner, dict) else {})}
    return {own.get(key, key): value for key, value in settings.items()}


def provider_kind(named: str) -> str:
    """How a provider is called: echo, exec, python, javascript, http, chat, embedding, moderation; "" if it is
    unknown."""
    if named == "echo":
        return "echo"
    if named.startswith("exec:"):
        return "exec"
    path, _ = split_function(named)
    if named.startswith("python:") or (named.startswith("file://") and path.endswith(".py")):
        return "python"
    if named.startswith("javascript:") or (named.startswith("file://") and path.endswith(SCRIPTS)):
        return "javascript"
    if named in ("http", "https") or _URL.match(named):
        return "http"
    prefix, colon, _ = named.partition(":")
    if nearest_of(named) is not None:
        return ""
    if named.startswith("openai:moderation"):
        return "moderation"
    if colon and prefix in COMPANIES:
        return "embedding" if ":embedding" in named else "chat"
    return "javascript" if named.endswith(SCRIPTS) and not named.endswith(".py") else ""


def unfit_grader(grader: Mapping[str, Any], kind: str) -> str:
    """Why a grader, or each of several by what they produce, cannot produce `text`, an `embedding` or a `moderation`;
    empty if it can."""
    chosen = grader if "id" in grader else grader.get(kind)
    if chosen is None:
        return f"provider: expected the key {kind!r} for this assertion, found {' and '.join(grader)}"
    made, name = provider_kind(called_of(chosen)), f"the provider {chosen['label']}"
    if kind in _MADE and made != kind:
        what, default = _MADE[kind]
        expected = f"one such as {default}, or {{text: ..., {kind}: ...}} for both kinds of judges"
        return f"{name} makes no {what}: expected {expected}"
    if kind == "text" and made in _MADE:
        return f"{name} only makes {_MADE[made][0]}: it cannot judge"
    return ""


def _refuse(named: str, origin: Origin) -> None:
    if (nearest := nearest_of(named)) is not None:
        origin.report(f"the provider {named!r} is not supported: {nearest}")
        return
    if provider_kind(named) == "moderation":
        origin.report(f"the provider {named!r} only judges outputs: use it in an assertion of type moderation")
        return
    if named.startswith("file://"):
        expected = f"expected one of {', '.join(SCRIPTS)}; an exec provider calls any program"
        origin.report(f"{named!r} is not a file of a provider: {expected}")
        return
    prefix = named.partition(":")[0]
    if prefix in COMPANIES:
        origin.report(f"the provider {named!r} names no model: expected {prefix}:MODEL")
        return
    if named.endswith(".py"):
        origin.report(f"unknown provider {named!r}: expected file://{named}")
        return
    known = ", ".join(("echo", "exec:", "python:", "file://", "http", "openai:", "anthropic:"))
    others = "other models are litellm:PROVIDER/MODEL, or openai:MODEL with config.apiBaseUrl"
    origin.report(f"unknown provider {named!r}{did_you_mean(prefix, _KNOWN)}; expected one of {known}; {others}")
