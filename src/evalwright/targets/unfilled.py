"""Places in the templates of systems for which no case has a value: each of their cells would be an error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from evalwright.errors import InputError, Problem
from evalwright.model.plan import Variant
from evalwright.registry import knows, load
from evalwright.targets.templates import Template

if TYPE_CHECKING:
    from evalwright.model.case import EvalCase
    from evalwright.model.snapshot import Case

__all__ = ["UnfilledPlaces"]

_C = TypeVar("_C", bound="Case | EvalCase")


class UnfilledPlaces:
    """Notes, while cases are read, which places of the templates of `variants` find a value in one of them."""

    def __init__(self, variants: Iterable[Variant]) -> None:
        self._templates = {place: template for variant in variants for place, template in _templates(variant)}
        self._left: dict[tuple[str, str], dict[str, str]] | None = None
        """For each key of a system the paths that no case has had yet, with what the first case has instead."""

    def watched(self, cases: Iterable[_C]) -> Iterator[_C]:
        """The same cases."""
        for case in cases:
            if self._left is None:
                self._left = {place: template.missing(case) for place, template in self._templates.items()}
            for place, paths in self._left.items():
                if paths:
                    missing = self._templates[place].missing(case)
                    self._left[place] = {path: instead for path, instead in paths.items() if path in missing}
            yield case

    def problems(self, file: str) -> list[Problem]:
        """One for each path that none of the cases has; `file` is that of the suite."""
        return [
            Problem(file, f"no case has {path}{instead}", key=f"{variant}.{key}")
            for (variant, key), paths in (self._left or {}).items()
            for path, instead in paths.items()
        ]


def _templates(variant: Variant) -> Iterator[tuple[tuple[str, str], Template]]:
    if variant.evalh_rules or not knows("targets", variant.adapter):
        return  # by evalh's rules, what is not found is empty
    for key in getattr(load("targets", variant.adapter), "template_keys", ()):
        if isinstance(text := variant.config.get(key), str):
            try:
                yield (variant.name, key), Template(text)
            except InputError:
                continue  # the target reports it
