"""What all records of a cell share: the case that they belong to."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Protocol

import msgspec

__all__ = ["Attempt", "AttemptKey", "OfCase", "attempt_key", "case_key", "cell_key"]


Attempt = Annotated[int, msgspec.Meta(ge=0, le=0xFFFF)]
"""The number of an attempt at a cell in its records. A larger one is damage: each retry of a run adds one, and what
counts attempts cell by cell has two bytes for each."""

AttemptKey = tuple[str, str, int, int]
"""The key of the case, the name of the variant, the trial, the number of the attempt."""


def case_key(case_id: str, occurrence: int | msgspec.UnsetType) -> str:
    """A name that is unique in the run: the id, followed by `#2` and so on if several cases share it."""
    return case_id if occurrence is msgspec.UNSET else f"{case_id}#{occurrence}"


def cell_key(case_key: str, variant: str, trial: int) -> str:
    """The name of a cell in addresses: the first 16 hex digits of SHA-256 of the JSON array of the three."""
    text = json.dumps([case_key, variant, trial], ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


class OfCase(msgspec.Struct, gc=False, kw_only=True, repr_omit_defaults=True):
    """A record of a case, or a part of one. `occurrence` is not written if the id is enough."""

    case_id: str
    occurrence: int | msgspec.UnsetType = msgspec.UNSET

    @property
    def case_key(self) -> str:
        """The name of the case, unique in the run: its id, followed by `#2` and so on if several cases share it."""
        return case_key(self.case_id, self.occurrence)


class _OfAttempt(Protocol):
    variant_name: str
    trial: int
    attempt: Attempt

    @property
    def case_key(self) -> str: ...


def attempt_key(record: _OfAttempt) -> AttemptKey:
    """What the trace, the results and the verdict of one attempt at a cell have in common, and no other record has."""
    return record.case_key, record.variant_name, record.trial, record.attempt
