"""JSON Schemas as promptfoo reads them: draft 7 by ajv 8, strict about schemas, with the formats of ajv-formats."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from math import isfinite
from typing import Any

from evalwright.files.key_paths import as_written
from evalwright.formats.promptfoo.ajv_formats import NUMBERS, TEXTS
from evalwright.formats.promptfoo.switches import is_on
from evalwright.formats.shared.javascript.characters import InvalidPattern
from evalwright.formats.shared.javascript.patterns import pattern_of

__all__ = ["patterns_in", "validator_of"]

_KNOWN = frozenset((
    "$id", "$schema", "$defs", "$vocabulary", "$comment", "definitions", "$ref", "maximum", "minimum",
    "exclusiveMaximum", "exclusiveMinimum", "multipleOf", "maxLength", "minLength", "pattern", "maxProperties",
    "minProperties", "required", "maxItems", "minItems", "uniqueItems", "type", "nullable", "const", "enum", "not",
    "anyOf", "oneOf", "allOf", "if", "then", "else", "propertyNames", "additionalProperties", "dependencies",
    "properties", "patternProperties", "additionalItems", "items", "contains", "format", "title", "description",
    "default", "deprecated", "readOnly", "writeOnly", "examples", "contentMediaType", "contentEncoding",
    "contentSchema",
))  # fmt: skip
_BEYOND = frozenset(("$async", "formatMaximum", "formatMinimum", "formatExclusiveMaximum", "formatExclusiveMinimum"))
"""Keywords that ajv supports and we do not."""
_ONE = ("not", "if", "then", "else", "propertyNames", "additionalProperties", "additionalItems", "items", "contains")
_LISTED = ("anyOf", "oneOf", "allOf", "items")
_NAMED = ("properties", "patternProperties", "dependencies")
_DRAFTS = ("", "http://json-schema.org/draft-07/schema", "http://json-schema.org/schema")
_STRICT = "PROMPTFOO_DISABLE_AJV_STRICT_MODE"
_LARGEST = 1e21
"""From here on JavaScript writes numbers with an exponent, which is never a multiple."""


def validator_of(schema: Any) -> Any:
    """The validator of a schema. Raises ValueError for a schema that promptfoo cannot compile, whatever the output
    is."""
    strict = not is_on(_STRICT)
    return _compiled_schema(json.dumps(schema), strict)


def patterns_in(schema: Any) -> Iterator[str]:
    """Every pattern in a schema, at any depth."""
    if isinstance(schema, Mapping):
        if isinstance(schema.get("pattern"), str):
            yield schema["pattern"]
        if isinstance(schema.get("patternProperties"), Mapping):
            yield from schema["patternProperties"]
    for inner in schema.values() if isinstance(schema, Mapping) else schema if isinstance(schema, list) else ():
        yield from patterns_in(inner)


@lru_cache(64)
def _compiled_schema(written: str, strict: bool) -> Any:
    from jsonschema import Draft7Validator
    from referencing import Registry
    from referencing.jsonschema import DRAFT7

    schema = json.loads(written)
    if isinstance(schema, Mapping):
        draft = schema.get("$schema", "")
        if not isinstance(draft, str) or draft.removesuffix("#") not in _DRAFTS:
            raise ValueError(
                f"$schema: expected draft 7 (http://json-schema.org/draft-07/schema#), found {as_written(draft)}"
            )
    elif not isinstance(schema, bool):
        raise ValueError(f"expected a mapping, true or false, found {as_written(schema)}")
    if (error := next(Draft7Validator(Draft7Validator.META_SCHEMA).iter_errors(schema), None)) is not None:
        raise ValueError(f"{'.'.join(map(str, error.absolute_path)) or 'the schema'}: {error.message:.200}")
    resource = DRAFT7.create_resource(schema)
    registry = Registry().with_resource(resource.id() or "", resource)
    _Compiler(strict).check(schema, registry.resolver(resource.id() or ""))
    return _kind()(schema, registry=registry)


class _Compiler:
    """Checks all that a schema reaches for what ajv rejects."""

    def __init__(self, strict: bool) -> None:
        self._strict = strict
        self._seen: dict[int, Any] = {}

    def check(self, schema: Any, resolver: Any) -> None:
        if not isinstance(schema, Mapping) or id(schema) in self._seen:
            return
        self._seen[id(schema)] = schema
        self._keywords(schema)
        _check_types(schema)
        self._patterns(schema)
        for inner in _inner(schema):
            self.check(inner, _within(resolver, inner))
        if "$ref" in schema:
            from referencing.exceptions import Unresolvable

            try:
                target = resolver.lookup(schema["$ref"])
            except (Unresolvable, ValueError):
                raise ValueError(f"$ref: nothing is at {schema['$ref']!r}") from None
            self.check(target.contents, target.resolver)

    def _keywords(self, schema: Mapping[str, Any]) -> None:
        if schema.get("enum") == []:
            raise ValueError("enum: expected at least one value")
        if "id" in schema:
            raise ValueError("the keyword 'id' is of older drafts; '$id' is meant")
        for key in schema.keys() & _BEYOND:
            raise ValueError(f"the keyword {key!r} is not supported")
        if not self._strict:
            return
        for key in schema:
            if key not in _KNOWN:
                raise ValueError(f"unknown keyword {key!r}; {_STRICT}=true lets it be")
        if "format" in schema and schema["format"] not in TEXTS and schema["format"] not in NUMBERS:
            raise ValueError(f"unknown format {schema['format']!r}; {_STRICT}=true lets it be")
        if "if" in schema and "then" not in schema and "else" not in schema:
            raise ValueError("'if' needs 'then' or 'else'")
        if "if" not in schema and (lonely := schema.keys() & {"then", "else"}):
            raise ValueError(f"{min(lonely)!r} needs 'if'")
        if "additionalItems" in schema and not isinstance(schema.get("items"), list):
            raise ValueError("'additionalItems' needs 'items' that are a list")

    def _patterns(self, schema: Mapping[str, Any]) -> None:
        if "pattern" in schema:
            _unicode(schema["pattern"])
        patterns = schema.get("patternProperties", {})
        judging = any(inner not in (True, {}) for inner in patterns.values())
        for pattern in patterns if judging or "additionalProperties" in schema else ():
            _unicode(pattern)
            for name in schema.get("properties", {}) if judging and self._strict else ():
                if pattern_of(pattern).found_in(name):
                    raise ValueError(f"the property {name!r} matches the pattern {pattern!r}, too")


def _check_types(schema: Mapping[str, Any]) -> None:
    if "nullable" not in schema:
        return
    nullable = schema["nullable"]
    if not isinstance(nullable, bool):
        raise ValueError("nullable: expected true or false")
    if "type" not in schema:
        raise ValueError("'nullable' needs 'type'")
    if not nullable and "null" in _types(schema):
        raise ValueError("nullable: false contradicts the type null")


def _unicode(pattern: str) -> Any:
    try:
        return pattern_of(pattern, "u")
    except InvalidPattern as error:
        raise ValueError(f"the pattern {pattern!r:.80} is invalid: {error}") from None


def _matches(pattern: str, text: str) -> bool:
    is_found: bool = _unicode(pattern).found_in(text)
    return is_found


def _inner(schema: Mapping[str, Any]) -> Iterator[Any]:
    """The schemas that ajv compiles with this one; definitions only if something refers to them."""
    for key in _ONE:
        if isinstance(schema.get(key), Mapping):
            yield schema[key]
    for key in _LISTED:
        if isinstance(schema.get(key), list):
            yield from schema[key]
    for key in _NAMED:
        yield from (subschema for subschema in schema.get(key, {}).values() if isinstance(subschema, Mapping))


def _within(resolver: Any, schema: Any) -> Any:
    from referencing.jsonschema import DRAFT7

    return resolver.in_subresource(DRAFT7.create_resource(schema)) if isinstance(schema, Mapping) else resolver


def _types(schema: Mapping[str, Any]) -> list[str]:
    types = schema["type"]
    return [*(types if isinstance(types, list) else [types]), *(["null"] if schema.get("nullable") else [])]


@cache
def _kind() -> Any:
    """The class of validators: draft 7, except for keywords that ajv judges differently from `jsonschema`."""
    from jsonschema import Draft7Validator, validators

    judges = {
        **Draft7Validator.VALIDATORS, "type": _type, "format": _format, "pattern": _pattern, "multipleOf": _multiple,
        "patternProperties": _pattern_properties, "additionalProperties": _additional_properties,
    }  # fmt: skip
    # Keywords beside $ref count as well, which draft 7 ignores.
    types = Draft7Validator.TYPE_CHECKER
    return validators.create(
        Draft7Validator.META_SCHEMA,
        judges,
        type_checker=types.redefine("number", lambda _, value: types.is_type(value, "number") and isfinite(value)),
        id_of=Draft7Validator.ID_OF,  # type: ignore[arg-type]
    )


def _wrong(message: str) -> Any:
    from jsonschema import ValidationError

    return ValidationError(message)


def _type(validator: Any, _: Any, value: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
    types = _types(schema)
    if not any(validator.is_type(value, type_name) for type_name in types):
        yield _wrong(f"{value!r:.80} is not of type {' or '.join(types)}")


def _format(validator: Any, name: str, value: Any, _schema: Any) -> Iterator[Any]:
    formats: Mapping[str, Any] = TEXTS if isinstance(value, str) else NUMBERS
    judged = name in formats and (validator.is_type(value, "string") or validator.is_type(value, "number"))
    if judged and not formats[name](value):
        yield _wrong(f"{value!r:.80} is no {name}")


def _pattern(_: Any, pattern: str, value: Any, _schema: Any) -> Iterator[Any]:
    if isinstance(value, str) and not _matches(pattern, value):
        yield _wrong(f"{value!r:.80} does not match {pattern!r}")


def _multiple(validator: Any, unit: float, value: Any, _schema: Any) -> Iterator[Any]:
    if validator.is_type(value, "number"):
        times = value / unit  # in floating point, so that 0.3 is not a multiple of 0.1
        if not (abs(times) < _LARGEST and times == int(times)):
            yield _wrong(f"{value!r} is not a multiple of {unit!r}")


def _pattern_properties(validator: Any, patterns: Mapping[str, Any], value: Any, _schema: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for pattern, inner in patterns.items():
            for name in [] if inner in (True, {}) else [name for name in value if _matches(pattern, name)]:
                yield from validator.descend(value[name], inner, path=name, schema_path=pattern)


def _additional_properties(validator: Any, inner: Any, value: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
    if isinstance(value, dict):
        named, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        for name, item in value.items():
            if name not in named and not any(_matches(pattern, name) for pattern in patterns):
                yield from validator.descend(item, inner, path=name)
