"""JSON Schema of a skill's `evals.json`, for editors."""

from __future__ import annotations

from evalwright.formats.shared.schema_parts import (
    ANY_TEXT,
    ANYTHING,
    NOT_BLANK,
    Schema,
    having,
    list_of,
    mapping,
    or_null,
    reference,
)
from evalwright.formats.skills.criteria import CRITERION_TEXTS, LISTS
from evalwright.formats.skills.evals import DOCUMENT_KEYS, EVAL_KEYS, PATTERNS, TEXTS

__all__ = ["evals_schema"]


def evals_schema() -> Schema:
    """For `evals/evals.json`."""
    criterion: Schema = {
        "anyOf": [ANY_TEXT, {"type": "object", "anyOf": [having(key, ANY_TEXT) for key in CRITERION_TEXTS]}]
    }
    text: Schema = {"type": ["string", "null"]}
    truth: Schema = {"type": ["boolean", "null"]}
    texts = or_null(list_of(NOT_BLANK))
    eval_schema = mapping(
        {
            **dict.fromkeys(EVAL_KEYS, ANYTHING),
            "id": {"anyOf": [{"type": ["integer", "null"]}, {"type": "string", "minLength": 1}]},
            "prompt": NOT_BLANK,
            **dict.fromkeys(("expected_output", "name", "eval_name"), text),
            **dict.fromkeys(LISTS, or_null(list_of(reference("Criterion")))),
            **dict.fromkeys(("should_trigger", "skill_should_trigger"), truth),
            **dict.fromkeys((*PATTERNS, *TEXTS, "tags"), texts),
            "files": or_null(list_of({**NOT_BLANK, "not": {"pattern": "^/"}})),
        },
        ["prompt"],
    )
    evals = list_of(reference("Eval"), 1)
    document = mapping({**dict.fromkeys(DOCUMENT_KEYS, ANYTHING), "skill_name": text, "evals": evals})
    newer: Schema = {**having("evaluations", evals), "not": {"required": ["evals"]}}
    document["anyOf"] = [{"required": ["evals"]}, newer]
    return {
        "title": "Agent Skills: evals.json",
        **document,
        "definitions": {"Eval": eval_schema, "Criterion": criterion},
    }
