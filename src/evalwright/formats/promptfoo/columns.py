"""The columns of a run: every prompt with every provider that may get it, each a variant with a name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from evalwright.formats.promptfoo.prompts import AuthoredPrompt, allows
from evalwright.formats.promptfoo.providers import Provider
from evalwright.model.plan import Variant

__all__ = ["AuthoredColumns", "columns"]

_SHORT = re.compile(r"[A-Za-z0-9 ._-]{1,40}")
_SECONDS = 600.0
"""The limit of one call: promptfoo has none, and agents behind a provider take minutes."""


class AuthoredColumns(NamedTuple):
    """The prompts and providers of a configuration: all of them, or those that filters leave."""

    prompts: Sequence[AuthoredPrompt]
    providers: Sequence[Provider]


def columns(every: AuthoredColumns, chosen: AuthoredColumns, shared: Mapping[str, Any]) -> dict[int, Variant]:
    """The variants of the chosen columns, by their numbers among all; they keep their names, so that `compare` finds
    them.

    `shared` are the configuration's settings for all of them.
    """
    names: Counter[str] = Counter()
    chosen_ids = {*map(id, chosen.prompts), *map(id, chosen.providers)}
    variants = {}
    for number, (provider, prompt, name) in enumerate(_named_columns(every)):
        name = _unique(name, names)
        if id(provider) in chosen_ids and id(prompt) in chosen_ids:
            config = {**shared, "provider": {k: v for k, v in provider.items() if k != "prompts"}, "prompt": prompt}
            variants[number] = Variant(name, "promptfoo", config, {}, _SECONDS)
    return variants


def _named_columns(every: AuthoredColumns) -> Iterator[tuple[Provider, AuthoredPrompt, str]]:
    for provider in every.providers:
        for k, prompt in enumerate(every.prompts):
            if not allows(provider.get("prompts"), prompt):
                continue
            label = str(prompt["label"])
            short = label if _SHORT.fullmatch(label) else f"prompt-{k}"
            yield provider, prompt, f"{provider['label']}@{short}" if len(every.prompts) > 1 else provider["label"]


def _unique(name: str, names: Counter[str]) -> str:
    names[name] += 1
    return name if names[name] == 1 else f"{name}#{names[name]}"
