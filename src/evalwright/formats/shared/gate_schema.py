"""JSON Schemas of gates, for editors."""

from __future__ import annotations

from typing import Any

from evalwright.formats.shared.gates import GATE_KEYS, GATE_KINDS
from evalwright.formats.shared.json_schema import REFERENCES, lenient
from evalwright.scoring.gate import AGGREGATIONS, OPERATORS

__all__ = ["gate_schemas"]


def gate_schemas() -> dict[str, Any]:
    """The JSON Schemas `Gate` and `Condition`, a gate within another; they do not know the names of metrics."""
    number = lenient({"type": "number"})
    optional = {"anyOf": [number, {"type": "null"}]}
    types: dict[str, Any] = {
        "op": {"enum": list(OPERATORS)},
        "pass_op": {"enum": list(OPERATORS)},
        "value": number,
        "pass_value": optional,
        "pass_threshold": optional,
        "aggregation": {"enum": list(AGGREGATIONS)},
        "metric": {"enum": ["avg_score", "accuracy"]},
        "operator": {"enum": ["and", "or"]},
        "weights": {"type": "object", "additionalProperties": number, "minProperties": 1},
        "conditions": {"type": "array", "items": {"$ref": REFERENCES.format(name="Condition")}, "minItems": 1},
    }
    compared = ["op", "value"]

    def then(kind: str | None, required: list[str]) -> dict[str, Any]:
        return {"properties": {key: types[key] for key in GATE_KEYS[kind] if key in types}, "required": required}

    def either(nested: bool) -> dict[str, Any]:
        simple = then("simple", ["aggregation", *compared] if nested else compared)
        kinds = {
            "simple": simple,
            "weighted_average": then("weighted_average", ["aggregation", "weights", *compared]),
            "logical": then("logical", ["operator", "conditions"]),
        }
        branches = [{"if": _is(kind), "then": schema} for kind, schema in kinds.items()]
        newer = {"anyOf": [{"required": ["aggregation"]}, {"required": ["pass_threshold"]}]}
        oldest = simple if nested else {"if": newer, "then": simple, "else": then(None, compared)}
        branches.append({"if": {"properties": {"kind": {"type": "null"}}}, "then": oldest})
        return {"type": "object", "properties": {"kind": {"enum": [*GATE_KINDS, None]}}, "allOf": branches}

    return {"Gate": either(nested=False), "Condition": either(nested=True)}


def _is(kind: str) -> dict[str, Any]:
    return {"properties": {"kind": {"const": kind}}, "required": ["kind"]}
