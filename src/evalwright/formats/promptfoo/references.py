"""Names with which tests choose their prompts and providers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from evalwright.errors import did_you_mean
from evalwright.formats.promptfoo.prompts import AuthoredPrompt, allows
from evalwright.formats.promptfoo.providers import Provider
from evalwright.model.snapshot import Case

__all__ = ["unknown_names"]

_MOST_NAMED = 10


def unknown_names(
    cases: Iterable[Case], prompts: Sequence[AuthoredPrompt], providers: Sequence[Provider]
) -> Iterator[str]:
    """Names that tests use but that do not exist, each once; promptfoo rejects them, too."""
    known: dict[str, Sequence[Any]] = {"prompts": prompts, "providers": providers}
    references = ((key, case.extra["promptfoo"].get(key)) for case in cases for key in known)
    named = dict.fromkeys((key, str(name)) for key, names in references if isinstance(names, list) for name in names)
    for key, name in named:
        there = known[key]
        if there and not any(allows([name], pattern) for pattern in there):
            labels = [str(prompt["label"]) for prompt in there]
            shown = ", ".join(f"{label:.60}" for label in labels[:_MOST_NAMED])
            yield f"{key}: there is no {name!r}{did_you_mean(name, labels)} (there are: {shown})"
