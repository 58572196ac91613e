"""What a configuration contains, in numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evalwright.errors import counted
from evalwright.formats.promptfoo.columns import AuthoredColumns
from evalwright.formats.promptfoo.prompts import allows
from evalwright.model.plan import Variant
from evalwright.model.snapshot import Case

__all__ = ["content_counts"]


def content_counts(
    chosen: AuthoredColumns,
    variants: Sequence[Variant],
    cases: Sequence[Case],
    trials: int,
    for_node: Callable[[], int],
) -> str:
    """The numbers of tests, prompts, providers and cells, and of the places that need Node."""
    cells = sum(_cells(case, variants, trials) for case in cases)
    counts = [
        (len(cases), "test"), (len(chosen.prompts), "prompt"), (len(chosen.providers), "provider"), (cells, "cell"),
    ]  # fmt: skip
    places = for_node()
    node = f"; Node runs {counted(places, 'place')} of it" if places else "; nothing needs Node"
    return ", ".join(counted(number, noun) for number, noun in counts) + node


def _cells(case: Case, variants: Sequence[Variant], trials: int) -> int:
    """How often a test is run in all columns that it is meant for."""
    own = case.extra["promptfoo"]
    meant = [
        variant.config.get("repeat")
        for variant in variants
        if allows(own.get("prompts"), variant.config["prompt"])
        and allows(own.get("providers"), variant.config["provider"])
    ]
    repeats = (own.get("options", {}).get("repeat", repeat) for repeat in meant)
    return sum(trials if repeat is None else min(repeat, trials) for repeat in repeats)
