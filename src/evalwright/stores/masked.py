"""What every kind of store does about secrets."""

from __future__ import annotations

import os
from functools import cached_property

from evalwright.files.masker import Masker

__all__ = ["Masked"]


class Masked:
    """Masks what its masker knows, or else the secrets of the environment as it is at the first write."""

    def __init__(self, masker: Masker | None) -> None:
        self._given_masker = masker

    @cached_property
    def _masker(self) -> Masker:
        return Masker.of({}, os.environ) if self._given_masker is None else self._given_masker
