"""The allowed values of each key of a configuration, part by part; other values are reported and left out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from evalwright.files.key_paths import as_written, kind_in_words
from evalwright.files.masker import looks_secret
from evalwright.files.numbers import is_number
from evalwright.files.plain import not_finite
from evalwright.formats.promptfoo.origin import Origin

__all__ = [
    "ASSERTION",
    "CHAT",
    "COMMAND_LINE",
    "CONFIG",
    "DERIVED",
    "FACTUALITY",
    "GENERATOR",
    "HTTP",
    "OPTIONS",
    "PROMPT",
    "PROVIDER",
    "RUNNING",
    "SCENARIO",
    "TEST",
    "KeyKind",
    "Shape",
    "warn_of_others",
    "what_fits",
]  # fmt: skip


class KeyKind(NamedTuple):
    """What a value must be: in words, as a predicate and as a JSON Schema."""

    expected: str
    fits: Callable[[Any], bool]
    schema: Mapping[str, Any]
    each: KeyKind | None = None
    """What each value in a mapping must be, if all must be the same."""


Shape = Mapping[str, KeyKind]


def _is_text(value: Any) -> bool:
    """Whether it is a string, or a number in place of one."""
    return isinstance(value, (str, int, float)) and not isinstance(value, bool)


def _is_whole(least: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= least


def _instance_of(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kinds)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


_STRING = {"type": "string"}
_SCALAR = {"type": ["string", "number"]}


def _mapping_of(words: str, each: KeyKind, types: str) -> KeyKind:
    """A mapping whose values, if they are not null, are each of that kind; `types` are JSON Schema's."""
    return KeyKind(
        f"a mapping of {words}",
        lambda value: isinstance(value, dict) and all(item is None or each.fits(item) for item in value.values()),
        {"type": "object", "additionalProperties": {"type": types.split()}},
        each,
    )


ANYTHING = KeyKind("a value", lambda value: True, {})
TEXT = KeyKind("a text", _is_text, _SCALAR)
NAME = KeyKind("a text", _instance_of(str), _STRING)
NUMBER = KeyKind("a number", is_number, {"type": "number"})
FLAG = KeyKind("true or false", _instance_of(bool), {"type": "boolean"})
LIST = KeyKind("a list", _instance_of(list), {"type": "array"})
MAPPING = KeyKind("a mapping", _instance_of(dict), {"type": "object"})
TEXTS = KeyKind("a list of texts", _are_texts, {"type": "array", "items": _SCALAR})
SCALARS = _mapping_of("texts", KeyKind("a text", _instance_of(str, int, float), _SCALAR), "string number boolean null")
FILES = _mapping_of("names of files", KeyKind("the name of a file", _instance_of(str), _STRING), "string null")
NUMBERS = _mapping_of("numbers", NUMBER, "number null")
MILLISECONDS = KeyKind(
    "milliseconds, a number from 0",
    lambda value: is_number(value) and value >= 0,
    {"type": "number", "minimum": 0},
)
ENTRY = KeyKind("a text or a mapping", _instance_of(str, dict), {"type": ["string", "object"]})
ENTRIES = KeyKind("a text, a mapping or a list", _instance_of(str, dict, list), {"type": ["string", "object", "array"]})
MESSAGES = KeyKind(
    "a text, a list or a mapping", _instance_of(str, list, dict), {"type": ["string", "object", "array"]}
)
VARIABLES = KeyKind(
    "a mapping, or the names of files",
    lambda value: isinstance(value, (dict, str)) or _are_texts(value),
    {"type": ["object", "string", "array"], "items": _SCALAR},
)
DEFAULT = KeyKind("a mapping, or the name of a file", _instance_of(str, dict), {"type": ["string", "object"]})
ASSERTIONS = KeyKind("a list of assertions", _instance_of(list), {"type": "array"})
CODE = KeyKind("code or the name of a file", _instance_of(str), _STRING)


def _count(least: int) -> KeyKind:
    return KeyKind(f"a whole number from {least}", _is_whole(least), {"type": "integer", "minimum": least})


CONFIG: Shape = {
    "description": TEXT, "prompts": ENTRIES, "providers": ENTRIES, "targets": ENTRIES, "tests": ENTRIES,
    "scenarios": LIST, "defaultTest": DEFAULT, "env": SCALARS, "evaluateOptions": MAPPING, "derivedMetrics": LIST,
    "nunjucksFilters": FILES, "assertionTemplates": MAPPING, "extensions": TEXTS, "commandLineOptions": MAPPING,
}  # fmt: skip
RUNNING: Shape = {
    "maxConcurrency": _count(1), "repeat": _count(1), "delay": MILLISECONDS, "timeoutMs": MILLISECONDS,
    "maxEvalTimeMs": MILLISECONDS, "filterRange": TEXT, "filterSample": _count(1), "filterSampleSeed": _count(0),
}  # fmt: skip
"""For `evaluateOptions` and `commandLineOptions`."""
COMMAND_LINE: Shape = {
    **RUNNING, "envPath": KeyKind(
        "the name of a file, or a list of names",
        lambda value: isinstance(value, str) or _are_texts(value),
        {"type": ["string", "array"], "items": _SCALAR},
    ),
}  # fmt: skip
TEST: Shape = {
    "description": TEXT, "vars": VARIABLES, "assert": ASSERTIONS, "threshold": NUMBER, "options": MAPPING,
    "metadata": MAPPING, "provider": ENTRY, "providers": TEXTS, "providerOutput": ANYTHING, "prompts": TEXTS,
    "assertScoringFunction": KeyKind("file://FILE:FUNCTION", _instance_of(str), _STRING), "disableDefaultAsserts": FLAG,
}  # fmt: skip
FACTUALITY: Shape = dict.fromkeys(("subset", "superset", "agree", "disagree", "differButFactual"), NUMBER)
"""The score of each category of `factuality`, in the order of the letters that its judge replies, A to E."""
GENERATOR: Shape = {"path": NAME, "config": ANYTHING}
SCENARIO: Shape = {"config": ENTRIES, "tests": ENTRIES, "description": TEXT}
ASSERTION: Shape = {
    "type": NAME, "value": ANYTHING, "threshold": NUMBER, "weight": NUMBER, "metric": TEXT, "provider": ENTRY,
    "rubricPrompt": MESSAGES, "transform": CODE, "contextTransform": CODE, "config": MAPPING, "assert": ANYTHING,
    "description": ANYTHING, "name": ANYTHING, "id": ANYTHING, "$ref": ANYTHING,
}  # fmt: skip
PROMPT: Shape = {"id": TEXT, "label": TEXT, "raw": NAME, "config": MAPPING}
PROVIDER: Shape = {
    "id": NAME, "label": TEXT, "config": MAPPING, "prompts": TEXTS, "transform": CODE, "delay": MILLISECONDS,
    "env": SCALARS, "inputs": ANYTHING,
}  # fmt: skip
DERIVED: Shape = {"name": NAME, "value": TEXT, "description": TEXT}
CHAT: Shape = {
    **dict.fromkeys(
        ("model", "instructions", "systemPrompt", "apiBaseUrl", "apiHost", "apiVersion", "apiKey", "apiKeyEnvar"), NAME
    ),
    **dict.fromkeys(("temperature", "top_p", "topP", "frequency_penalty", "presence_penalty"), NUMBER),
    **dict.fromkeys(("max_tokens", "max_output_tokens", "max_completion_tokens", "maxOutputTokens"), _count(1)),
    "num_predict": _count(-2), "generationConfig": MAPPING, "omitDefaults": FLAG,
    "headers": SCALARS, "passthrough": MAPPING, "replyRetries": KeyKind(
        "a whole number from 0 to 3",
        lambda value: _is_whole(0)(value) and value <= 3,
        {"type": "integer", "minimum": 0, "maximum": 3},
    ),
}  # fmt: skip
"""For the `config` of a model; keys that are sent unchanged have no shape here."""
OPTIONS: Shape = {
    "transform": CODE, "postprocess": CODE, "transformVars": CODE, "prefix": TEXT, "suffix": TEXT, "provider": ENTRY,
    "rubricPrompt": MESSAGES, "factuality": NUMBERS, "disableVarExpansion": FLAG, "disableDefaultAsserts": FLAG,
    "disableConversationVar": FLAG, "storeOutputAs": TEXT, "runSerially": FLAG, "repeat": _count(1), **CHAT,
}  # fmt: skip
"""Of a test; settings of a model, too, which take precedence over its own."""
HTTP: Shape = {
    "url": NAME, "method": NAME, "headers": SCALARS, "queryParams": SCALARS, "transformResponse": CODE,
    "responseParser": CODE, "transformRequest": CODE, "validateStatus": ANYTHING, "body": ANYTHING,
    "request": NAME, "useHttps": FLAG, "auth": MAPPING, "tools": ANYTHING, "tool_choice": ANYTHING,
}  # fmt: skip


def what_fits(raw: dict[str, Any], shape: Shape, origin: Origin) -> dict[str, Any]:
    """A part of a configuration without values of the wrong type, which are reported, and without keys that have no
    value. Numbers that JSON does not have are reported, too."""
    wrong = [key for key, value in raw.items() if key in shape and not shape[key].fits(value)]
    for key in wrong:
        if raw[key] is not None:
            _report(shape[key], key, raw[key], origin.at(key), secret=shape[key] is SCALARS)
    for place, number in not_finite({key: raw[key] for key in shape if key in raw}):
        origin.at(*place).report(f"expected a finite number, found {number}")
    return {key: value for key, value in raw.items() if key not in wrong} if wrong else raw


def _report(kind: KeyKind, key: str, value: Any, origin: Origin, *, secret: bool) -> None:
    """Report a value of the wrong type; in a mapping whose values are alike, only those that are wrong."""
    if kind.each is not None and isinstance(value, dict):
        for name, part in value.items():
            if part is not None and not kind.each.fits(part):
                _report(kind.each, str(name), part, origin.at(name), secret=secret)
        return
    shown = kind_in_words(value) if secret or looks_secret(key) else as_written(value)
    origin.report(f"{key}: expected {kind.expected}, found {shown}")


def warn_of_others(raw: Mapping[str, Any], known: Collection[str], origin: Origin) -> None:
    """Warn of the keys that nothing reads."""
    for key in raw:
        if key not in known:
            origin.at(key).warn_unread(known)
