"""The name and the address of a model, and the variable with its key, as users write them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from evalwright.errors import Problem

__all__ = ["endpoint_problems", "nameless"]

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FUNCTION = re.compile(r"python:[^:\s]+:[^:\s]+")
_SHOWN = 40


def endpoint_problems(values: Mapping[str, Any]) -> list[Problem]:
    """Problems of `model`, `base_url` and `api_key_env` of a judge or a system, if they are strings."""
    address, variable = values.get("base_url"), values.get("api_key_env")
    problems = []
    for key, name in _models(values):
        if (message := nameless(name)) is not None:
            problems.append(Problem("", message, key=key))
    if isinstance(address, str) and not _is_address(address):
        expected = "expected an address such as https://models.example.com/v1"
        problems.append(Problem("", f"{expected}, found {_address_without_secrets(address)}", key="base_url"))
    if isinstance(variable, str) and not _VARIABLE.fullmatch(variable):
        # the value may be the key itself, which no message shows
        expected = "expected the name of the environment variable that holds the key, such as OPENAI_API_KEY"
        problems.append(Problem("", f"{expected}, found something else, which is not shown", key="api_key_env"))
    return problems


def nameless(model: str) -> str | None:
    """What is wrong with the name of a model that names none; None for a valid one."""
    if not model.strip():
        return f"expected the name of a model, found {model!r}"
    if model.rstrip().endswith("/"):
        return f"expected the name of a model behind {model.strip()!r}, as in 'openai/gpt-4o-mini'"
    if model.startswith("python:") and not _FUNCTION.fullmatch(model):
        return f"expected 'python:module:attribute', found {model!r}"
    return None


def _models(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    several = values.get("models")
    named = [("model", values.get("model"))]
    named += [(f"models[{i}]", model) for i, model in enumerate(several if isinstance(several, list) else ())]
    yield from ((key, name) for key, name in named if isinstance(name, str))


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _address_without_secrets(address: str) -> str:
    """The beginning of an address, without what may be a credential in it."""
    return "a text with credentials" if "@" in address else repr(address.partition("?")[0][:_SHOWN])
