"""The plan of a stored run and the secrets in it, of which stores keep only the names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

from evalwright.files.masker import Masker
from evalwright.model.plan import Plan
from evalwright.stores.documents import named_in_plan, plan_from_json
from evalwright.stores.local_files.lines import reserved_words

__all__ = ["PlanSecrets"]


class PlanSecrets:
    """What readers and writers of a run have in common: its plan, with the secrets that they are given."""

    plan: Plan | None
    unresolved: list[str]

    def __init__(
        self, place: str, stored: Callable[[], bytes | None], masker: Masker, variables: Mapping[str, str]
    ) -> None:
        """`stored` reads the plan, which messages call `place`; `variables` replace `${NAME}` in it."""
        self._place, self._stored, self._given_masker = place, stored, masker
        self._recorded = False
        self._fill_in(stored(), variables)

    def _fill_in(self, stored: bytes | None, variables: Mapping[str, str]) -> None:
        self._variables = variables
        self.plan, self._placeholders = (None, {}) if stored is None else plan_from_json(self._place, stored, variables)
        self.unresolved = sorted(self._placeholders)

    @cached_property
    def _masker(self) -> Masker:
        """Made when it is first needed: most readers mask nothing."""
        return self._given_masker if self.plan is None else self._given_masker.keeping(reserved_words(self.plan))

    def reveal(self, variables: Mapping[str, str]) -> dict[str, str]:
        """See `RunReader.reveal`."""
        stored = self._stored()
        named = named_in_plan(stored, variables)
        self._masker = self._masker.hiding(named)
        self._fill_in(stored, {**variables, **self._masker.secrets})
        return named

    def mask(self, text: str) -> str:
        """See `RunReader.mask`."""
        return self._masker.mask_text(text)

    def mask_cases(self, masked: bool = True) -> None:
        """See `RunReader`."""
        self._recorded = masked
