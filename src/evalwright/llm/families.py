"""What families of models accept: a dated table (`families.json`), and what is assumed about all others."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec

__all__ = ["Family", "family_of"]


class Family(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A family of models, by a pattern of their names without the provider."""

    tokens: int
    """The limit on a reply if none was chosen: a reasoning model spends most of it on its thinking."""
    models: str = ""
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """The parameter of the OpenAI API that limits tokens."""
    temperature: bool = True
    """Whether it accepts a temperature other than its default."""
    format: Literal["json_schema", "json_object", "tool"] = "json_schema"
    """The most reliable way to make it follow a format."""


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    as_of: str
    families: list[Family]
    """The first family that matches a model's name applies."""
    others: Family


@cache
def _table() -> _Table:
    return msgspec.json.decode(files("evalwright.llm").joinpath("families.json").read_bytes(), type=_Table)


@cache
def family_of(model: str) -> Family:
    """The family of a model, by its name with or without a prefix for its provider (`us.anthropic.claude-...`)."""
    matching = (family for family in _table().families if re.search(rf"(?:^|[/.:@])(?:{family.models})", model.lower()))
    return next(matching, _table().others)
