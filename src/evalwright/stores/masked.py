"""How every kind of store masks secrets."""

from __future__ import annotations

import os
from functools import cached_property

from evalwright.files.masker import Masker

__all__ = ["Masked"]


class Masked:
    """Masks with the given masker, or else the secrets of the environment as it is at the first write."""

    def __init__(self, masker: Masker | None) -> None:
        self._given_masker = masker

    @cached_property
    def _masker(self) -> Masker:
        return Masker.of({}, os.environ) if self._given_masker is None else self._given_masker
