"""The columns of a run: every prompt with every provider that may be asked it, each a variant with a name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evalwright.formats.promptfoo.prompts import AuthoredPrompt, allows
from evalwright.formats.promptfoo.providers import Provider
from evalwright.model.plan import Variant

__all__ = ["columns"]

_SHORT = re.compile(r"[A-Za-z0-9 ._-]{1,40}")
_SECONDS = 600.0
"""The limit of one call: promptfoo has none, and agents behind a provider take minutes."""


def columns(
    prompts: Sequence[AuthoredPrompt], providers: Sequence[Provider], shared: Mapping[str, Any]
) -> list[Variant]:
    """The variants; `shared` is what the configuration says for all of them."""
    taken: Counter[str] = Counter()
    return [
        Variant(_unique(name, taken), "promptfoo", {**shared, "provider": provider, "prompt": prompt}, {}, _SECONDS)
        for provider, prompt, name in _named(prompts, providers)
    ]


def _named(
    prompts: Sequence[AuthoredPrompt], providers: Sequence[Provider]
) -> Iterator[tuple[Provider, AuthoredPrompt, str]]:
    for provider in providers:
        kept = {key: value for key, value in provider.items() if key != "prompts"}
        for k, prompt in enumerate(prompts):
            if not allows(provider.get("prompts"), prompt):
                continue
            label = str(prompt["label"])
            short = label if _SHORT.fullmatch(label) else f"prompt-{k}"
            yield kept, prompt, f"{provider['label']}@{short}" if len(prompts) > 1 else provider["label"]


def _unique(name: str, taken: Counter[str]) -> str:
    taken[name] += 1
    return name if taken[name] == 1 else f"{name}#{taken[name]}"
