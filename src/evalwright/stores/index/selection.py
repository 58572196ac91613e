"""Which rows of a run index a selection of cells means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from evalwright.model.cell_index import CellSelection
from evalwright.stores.index.codes import Profile, clean_profile, status_of_code

__all__ = ["clause_of", "fitting_profiles"]


def clause_of(chosen: CellSelection, profiles: Mapping[int, Profile]) -> tuple[str, dict[str, Any]]:
    """The clause of a query of `cells` for a selection, and its parameters."""
    conditions: list[str] = []
    values: dict[str, Any] = {}
    if chosen.case is not None:
        conditions.append(
            # '$' follows '#': by the range, the few cells that may be meant are found by name
            "(case_key = :case OR case_key > :case || '#' AND case_key < :case || '$' "
            "AND case_key = :case || '#' || occurrence)"
        )
        values["case"] = chosen.case
    if chosen.trial is not None:
        conditions.append("trial = :trial")
        values["trial"] = chosen.trial
    if chosen.singular:
        conditions.append("numbers IS NOT NULL")
    if chosen.case_contains is not None:
        escaped = chosen.case_contains.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        conditions.append("case_key LIKE :part ESCAPE '\\'")
        values["part"] = f"%{escaped}%"
    fitting = fitting_profiles(chosen, profiles)
    if len(fitting) < len(profiles):
        conditions.append("profile IN (SELECT value FROM json_each(:profiles))")
        values["profiles"] = msgspec.json.encode(fitting).decode()
        if not any(clean_profile(profiles[number]) for number in fitting):
            conditions.append("clean = 0")  # so that the index of the few unclean cells is used
    return (f"WHERE {' AND '.join(conditions)}" if conditions else ""), values


def fitting_profiles(chosen: CellSelection, profiles: Mapping[int, Profile]) -> list[int]:
    """The numbers of the profiles whose cells a selection may mean."""
    return [number for number, profile in profiles.items() if _fits(profile, chosen)]


def _fits(profile: Profile, chosen: CellSelection) -> bool:
    variant, status, error, outcomes = profile
    if chosen.variant not in (None, variant) or chosen.error not in (None, error):
        return False
    if chosen.statuses is not None and status not in chosen.statuses:
        return False
    if chosen.failed and error is None and all(code & 3 for _, code in outcomes):
        return False
    if chosen.evaluator is None and chosen.outcome is None:
        return True
    return any(
        chosen.evaluator in (None, name) and chosen.outcome in (None, status_of_code(code)) for name, code in outcomes
    )
