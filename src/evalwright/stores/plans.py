"""Plans of runs as JSON, with secrets written as `${NAME}`."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from evalwright.errors import InputError, Problem
from evalwright.files.masker import Masker, expand
from evalwright.model.plan import Plan
from evalwright.stores.local_files.lines import newer_version

__all__ = ["plan_from_json", "plan_to_json"]


def plan_to_json(plan: Plan, masker: Masker, unresolved: Mapping[str, str] = {}) -> bytes:
    """The plan as stored: secrets as `${NAME}`, including those that were never resolved."""
    plain = masker.placeholders(msgspec.to_builtins(plan), unresolved)
    return msgspec.json.format(msgspec.json.encode(plain), indent=2) + b"\n"


def plan_from_json(place: str, data: bytes, environ: Mapping[str, str]) -> tuple[Plan, dict[str, str]]:
    """The plan with its secrets from `environ`, and the placeholders that `environ` lacks. Raises InputError."""
    try:
        unresolved: dict[str, str] = {}
        plain = expand(msgspec.json.decode(data), environ, unresolved)
        version = plain.get("schema_version", "1.0") if isinstance(plain, dict) else "1.0"
        if not str(version).startswith("1."):
            raise newer_version(place, str(version))
        return msgspec.convert(plain, Plan), unresolved
    except (ValueError, RecursionError) as error:
        raise InputError(Problem(place, f"is not a valid plan of a run: {error}")) from error
