"""Checks of structured answers: equality, fields, JSON, schemas."""

from evalwright.model.format import EvaluatorEntry, entry

__all__ = ["EVALUATORS"]

EVALUATORS: dict[str, EvaluatorEntry] = {
    "exact_match": entry(
        "evalwright.evaluators.values.field_checks:ExactMatch",
        "A field equals `expected`, or the case's fact at `expected_from` (Python equality).",
        see={"field_check": "several comparisons", "field_accuracy": "a share of several fields"},
        example={"field": "output.structured.cents", "expected": 2400},
    ),
    "field_accuracy": entry(
        "evalwright.evaluators.values.field_accuracy:FieldAccuracy",
        "Score: the weighted share of fields of a JSON answer that have the expected value.",
        format="AgentV",
        see={"exact_match": "one field"},
        example={"fields": [{"path": "invoice.total", "match": "numeric_tolerance", "tolerance": 0.01}]},
    ),
    "field_check": entry(
        "evalwright.evaluators.values.field_checks:FieldCheck",
        "A field of the trace, or of the case under `case.`, satisfies every given comparison.",
        see={"exact_match": "equality with a fact of the case"},
        example={"field": "output.structured.cents", "above": 0, "at_most": 2000},
    ),
    "schema_match": entry(
        "evalwright.evaluators.values.field_checks:SchemaMatch",
        "A field satisfies a JSON Schema (draft 2020-12; `format` is not asserted).",
        see={"ValidJSON": "a text that is JSON"},
        example={"schema": {"required": ["order"], "properties": {"order": {"type": "string"}}}},
    ),
}
