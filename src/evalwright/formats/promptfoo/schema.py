"""JSON Schema of promptfoo's configurations, for editors: the shapes by which they are read."""

from __future__ import annotations

from evalwright.formats.promptfoo.kinds import CHECKS, COMPARISONS, SET
from evalwright.formats.promptfoo.providers import COMPANIES
from evalwright.formats.promptfoo.shapes import (
    ASSERTION,
    CHAT,
    CONFIG,
    DERIVED,
    OPTIONS,
    PROMPT,
    PROVIDER,
    RUNNING,
    SCENARIO,
    TEST,
    Shape,
)
from evalwright.formats.shared.schema_parts import (
    ANY_TEXT,
    NULL,
    Schema,
    given,
    having,
    list_of,
    mapping,
    one_of,
    reference,
    when,
)

__all__ = ["configuration_schema"]

_ELSEWHERE: Schema = {"type": "object", "required": ["$ref"]}
"""A value that stands elsewhere in the file."""
_REFUSED = ("redteam", "plugins", "strategies")


def configuration_schema() -> Schema:
    """Of a configuration."""
    either = {"anyOf": [ANY_TEXT, reference("Test"), list_of(_or_elsewhere(reference("TestEntry")))]}
    assertions = {"type": "array", "items": _or_elsewhere({"anyOf": [ANY_TEXT, reference("Assertion")]})}
    entry: Schema = {"anyOf": [ANY_TEXT, reference("Provider")]}
    providers: Schema = {"anyOf": [*entry["anyOf"], list_of(_or_elsewhere(entry))]}
    prompts = [ANY_TEXT, {**_part(PROMPT), **_either_of("raw", "id")}]
    prompt: Schema = {"anyOf": [*prompts, {"type": "array"}]}
    test = _part(TEST, assert_=assertions, options=_part(OPTIONS))
    top = {
        "prompts": {"anyOf": [*prompts, list_of(_or_elsewhere(prompt))]},
        "providers": providers,
        "targets": providers,
        "tests": either,
        "scenarios": list_of(_or_elsewhere(_part(SCENARIO, config=either, tests=either))),
        "defaultTest": {"anyOf": [ANY_TEXT, reference("Test")]},
        "derivedMetrics": list_of(_or_elsewhere({**_part(DERIVED), "required": ["name"]})),
        "evaluateOptions": _part(RUNNING),
        "commandLineOptions": _part(RUNNING),
    }
    return {
        "title": "promptfoo: a configuration",
        **_part(CONFIG, **top),
        "allOf": [_either_of("providers", "targets"), {"not": _either_of(*_REFUSED, value={})}],
        "definitions": {
            "Test": test,
            "TestEntry": {"anyOf": [ANY_TEXT, reference("Test")]},
            "Assertion": _assertion(assertions),
            "Provider": _provider(),
        },
    }


def _provider() -> Schema:
    """A provider with its id, or `{openai:gpt-4o: {config: ...}}`, where the only key is the id."""
    part = _part(PROVIDER)
    known: Schema = {"type": "string", "pattern": f"^({'|'.join(COMPANIES)}):"}
    settings = {"properties": {"config": {"anyOf": [_part(CHAT), NULL, _ELSEWHERE]}}}
    named = {**part, "allOf": [having("id", ANY_TEXT), when("id", known, settings)]}
    alone: Schema = {"type": "object", "additionalProperties": part, "minProperties": 1, "maxProperties": 1}
    inside: Schema = {"patternProperties": {known["pattern"]: settings}}
    return {"if": {"required": ["id"]}, "then": named, "else": {**alone, **inside}}


def _assertion(members: Schema) -> Schema:
    """An assertion; types that are not supported are refused, as the reader refuses them."""
    kinds = {*CHECKS, SET, *COMPARISONS}
    known = one_of({*kinds, *(f"not-{kind}" for kind in CHECKS)})
    found = _part(ASSERTION, type=known, assert_=members)
    found["anyOf"] = [given("type"), {"required": ["$ref"]}]
    found["allOf"] = [when("type", {"const": SET}, given("assert"))]
    return found


def _part(shape: Shape, **others: Schema) -> Schema:
    """A mapping of a shape; of some keys more is known. A value that is null is none."""
    known = {key: dict(kind.schema) for key, kind in shape.items()} | {k.rstrip("_"): v for k, v in others.items()}
    return mapping({key: {"anyOf": [one, NULL, _ELSEWHERE]} if one else {} for key, one in known.items()})


def _or_elsewhere(schema: Schema) -> Schema:
    return {"anyOf": [schema, _ELSEWHERE]}


def _either_of(*keys: str, value: Schema | None = None) -> Schema:
    """One of the keys says something."""
    something: Schema = {"not": {"enum": [None, "", [], {}, 0, False]}} if value is None else value
    return {"anyOf": [having(key, something) for key in keys]}
