"""JSON Schema of pixie's datasets, for editors."""

from __future__ import annotations

from evalwright.formats.pixie.dataset_oddities import DATASET_KEYS, ENTRY_KEYS
from evalwright.formats.pixie.test_cases import TEST_CASE
from evalwright.formats.shared.schema_parts import (
    ANY_TEXT,
    ANYTHING,
    NOT_BLANK,
    Schema,
    absent,
    having,
    list_of,
    mapping,
    offered,
    or_null,
    reference,
    unless_off,
)
from evalwright.registry import PREMADE

__all__ = ["dataset_schema"]

_PREMADE = rf"^\s*({'|'.join(PREMADE)})\s*$"


def dataset_schema() -> Schema:
    """For a dataset. Older files have `items` instead of `entries`, which may belong to no application yet."""
    place: Schema = {"type": "string", "pattern": ":"}
    shared = or_null(list_of(offered(PREMADE, {"anyOf": [place, {"type": "string", "pattern": _PREMADE}]})))
    evaluators = or_null(
        list_of({"anyOf": [{"type": "string", "pattern": r"^\s*\.\.\.\s*$"}, *shared["anyOf"][0]["items"]["anyOf"]]})
    )
    named = mapping({"name": ANY_TEXT, "value": ANYTHING}, ["name", "value"])
    common: dict[str, Schema] = {"eval_metadata": {"type": ["object", "null"]}, "evaluators": evaluators}
    case = {**dict.fromkeys(ENTRY_KEYS, ANYTHING), **common, "description": NOT_BLANK, "eval_input": list_of(named)}
    tested = mapping({**case, "eval_input": list_of(named, 1)}, ["description", "eval_input"])
    entry = mapping({**case, TEST_CASE: tested}) | unless_off(ENTRY_KEYS)
    older = {
        **having("entry_kwargs", {"type": "object"}),
        "allOf": [having("eval_input", {"minItems": 1}), having("description", NOT_BLANK), absent("input_data")],
    }
    newer = {
        **having("input_data", {"type": "object"}),
        "allOf": [having("description", NOT_BLANK), absent("entry_kwargs")],
    }
    oldest = {**having("entry_kwargs", {"type": "object"}), "allOf": [having(TEST_CASE, {"type": "object"})]}
    entry["anyOf"] = [older, newer, oldest]
    item = mapping({**dict.fromkeys(ENTRY_KEYS, ANYTHING), **common}) | unless_off(ENTRY_KEYS)
    known: dict[str, Schema] = {
        **dict.fromkeys(DATASET_KEYS, ANYTHING),
        "name": {"type": ["string", "null"]},
        "runnable": place,
        "evaluators": shared,
        "entries": list_of(reference("Entry")),
        "items": list_of(reference("Item")),
    }
    dataset = mapping(known) | unless_off(DATASET_KEYS)
    described: Schema = {"items": {"required": ["description"], "properties": {"description": NOT_BLANK}}}
    dataset["oneOf"] = [
        {"required": ["runnable", "entries"], **absent("items")},
        {**having("items", described), "required": ["runnable", "items"], **absent("entries")},
        {"required": ["items"], **absent("entries", "runnable")},
    ]
    return {"title": "pixie: a dataset", **dataset, "definitions": {"Entry": entry, "Item": item}}
