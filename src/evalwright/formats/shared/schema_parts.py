"""Parts for the JSON Schemas of files (draft 7), for formats whose readers are code and not models.

What a reader only warns about, its schema accepts: a schema rejects nothing that the reader takes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from evalwright import registry
from evalwright.evaluators.build import fields_by_key
from evalwright.formats.shared.isolation import ISOLATING, OFF, SETTINGS
from evalwright.formats.shared.json_schema import REFERENCES, lenient

__all__ = [
    "ANYTHING",
    "ANY_TEXT",
    "COUNT",
    "NOT_BLANK",
    "NULL",
    "NUMBER",
    "WORD",
    "Schema",
    "absent",
    "evaluator_keys",
    "given",
    "having",
    "list_of",
    "mapping",
    "offered",
    "one_of",
    "or_null",
    "reference",
    "unless_off",
    "when",
]

Schema = dict[str, Any]

ANYTHING: Schema = {}
NULL: Schema = {"type": "null"}
ANY_TEXT: Schema = {"type": "string"}
NOT_BLANK: Schema = {"type": "string", "pattern": r"\S"}
WORD: Schema = {"type": "string", "minLength": 1}
NUMBER: Schema = {"type": "number"}
COUNT: Schema = {"type": "integer", "minimum": 1}


def or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, NULL]}


def one_of(words: Iterable[Any]) -> Schema:
    return {"enum": sorted(words)}


def offered(words: Iterable[str], otherwise: Schema = ANY_TEXT) -> Schema:
    """Names to complete; others are allowed, because a plug-in or the user's own folder may define them."""
    return {"anyOf": [one_of(words), otherwise]}


def list_of(items: Schema, least: int = 0) -> Schema:
    return {"type": "array", "items": items, **({"minItems": least} if least else {})}


def mapping(known: Mapping[str, Schema], required: Collection[str] = (), *, closed: bool = False) -> Schema:
    """An object; unless it is `closed` it may have other keys, which nothing reads."""
    schema: Schema = {"type": "object", "properties": dict(known)}
    if required:
        schema["required"] = [*required]
    return {**schema, "additionalProperties": False} if closed else schema


def absent(*keys: str) -> Schema:
    """None of the keys is present."""
    return {"not": {"anyOf": [{"required": [key]} for key in keys]}}


def reference(name: str) -> Schema:
    """A reference to one of the schema's definitions."""
    return {"$ref": REFERENCES.format(name=name)}


def having(key: str, value: Schema = WORD) -> Schema:
    """The key is present and has such a value."""
    return {"required": [key], "properties": {key: value}}


def given(key: str) -> Schema:
    """The key is present, and not null."""
    return having(key, {"not": NULL})


def when(key: str, value: Schema, then: Schema) -> Schema:
    """What applies if a key has such a value."""
    return {"if": {"properties": {key: value}, "required": [key]}, "then": then}


def unless_off(known: Collection[str], keys: Sequence[str] = ISOLATING) -> Schema:
    """For a mapping: keys that isolate or limit and are not `known` must ask for nothing.

    A file that asks for more is rejected, because that would not be done.
    """
    off: Schema = {"enum": [*OFF]}
    inside: Schema = {"if": {"type": "object"}, "then": {"patternProperties": {_any_of(keys): off}}}
    limits = {_any_of(key for key in keys if key not in known): off}
    return {"patternProperties": limits | {_any_of(key for key in SETTINGS if key not in known): inside}}


def _any_of(words: Iterable[str]) -> str:
    return f"^({'|'.join(words)})$"


def evaluator_keys(name: str, definitions: Schema) -> tuple[dict[str, Schema], list[str]] | None:
    """The keys of an evaluator's configuration with their types, and the required ones; None if it declares none.

    Definitions that the types refer to are put into `definitions`.
    """
    kind = registry.load("evaluators", name)
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return None
    fields = fields_by_key(kind)
    types, used = msgspec.json.schema_components([field.type for field in fields.values()], ref_template=REFERENCES)
    definitions.update({key: lenient(definition) for key, definition in used.items()})
    keys = dict(_with_defaults(fields, map(lenient, types)))
    return keys, [key for key, field in fields.items() if field.required]


def _with_defaults(
    fields: Mapping[str, msgspec.structs.FieldInfo], types: Iterable[Schema]
) -> Iterator[tuple[str, Schema]]:
    for (key, field), schema in zip(fields.items(), types, strict=True):
        plain = isinstance(field.default, str | int | float | bool)
        yield key, {**schema, "default": field.default} if plain else schema
