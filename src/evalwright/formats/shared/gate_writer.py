"""Gates as their authors write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["written_gate"]


def written_gate(gate: Mapping[str, Any]) -> dict[str, Any]:
    """A checked gate; one of the first era has no `kind`, and `metric` for its aggregation."""
    if gate["kind"] != "legacy":
        return dict(gate)
    return {"metric" if key == "aggregation" else key: value for key, value in gate.items() if key != "kind"}
