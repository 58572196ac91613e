"""JSON Schemas of promptfoo's configurations and the files that they name, made from the shapes used to read them."""

from __future__ import annotations

from evalwright.formats.promptfoo.kinds import CHECKS, COMPARISONS, SET
from evalwright.formats.promptfoo.providers import COMPANIES
from evalwright.formats.promptfoo.shapes import (
    ASSERTION,
    CHAT,
    COMMAND_LINE,
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

__all__ = ["configuration_schema", "provider_schema", "scenario_schema", "test_schema", "tests_schema"]

_ELSEWHERE: Schema = {"type": "object", "required": ["$ref"]}
"""A value that is elsewhere in the file."""
_RED_TEAM = ("redteam", "plugins", "strategies")


def configuration_schema() -> Schema:
    """For a configuration."""
    entry: Schema = {"anyOf": [ANY_TEXT, reference("Provider")]}
    providers: Schema = {"anyOf": [*entry["anyOf"], list_of(_or_elsewhere(entry))]}
    prompts = [ANY_TEXT, {**_part(PROMPT), **_either_of("raw", "id")}]
    prompt: Schema = {"anyOf": [*prompts, {"type": "array"}]}
    top = {
        "prompts": {"anyOf": [*prompts, list_of(_or_elsewhere(prompt))]},
        "providers": providers,
        "targets": providers,
        "tests": _tests(),
        "scenarios": list_of(_or_elsewhere({"anyOf": [ANY_TEXT, reference("Scenario")]})),
        "defaultTest": {"anyOf": [ANY_TEXT, reference("Test")]},
        "derivedMetrics": list_of(_or_elsewhere({**_part(DERIVED), "required": ["name"]})),
        "evaluateOptions": _part(RUNNING),
        "commandLineOptions": _part(COMMAND_LINE),
    }
    return {
        "title": "promptfoo: a configuration",
        **_part(CONFIG, **top),
        "allOf": [
            _either_of("providers", "targets"),
            {"anyOf": [{"not": _either_of(*_RED_TEAM, value={})}, _either_of("tests", "scenarios")]},
        ],
        "definitions": _definitions(),
    }


def tests_schema() -> Schema:
    """For a file of tests in YAML or JSON."""
    return _schema_of_part("promptfoo: tests", _tests())


def test_schema() -> Schema:
    """For a test: a line of a file of tests in JSON Lines, or the file that `defaultTest` names."""
    return _schema_of_part("promptfoo: a test", reference("TestEntry"))


def scenario_schema() -> Schema:
    """For a file of scenarios: one, or a list."""
    scenario = reference("Scenario")
    return _schema_of_part("promptfoo: scenarios", {"anyOf": [scenario, list_of({"anyOf": [ANY_TEXT, scenario]})]})


def provider_schema() -> Schema:
    """For a file of providers: one, or a list."""
    schema: Schema = {"anyOf": [ANY_TEXT, reference("Provider")]}
    return _schema_of_part("promptfoo: providers", {"anyOf": [schema, list_of(schema)]})


def _schema_of_part(title: str, part: Schema) -> Schema:
    """A file that is a single part: draft 7 ignores everything beside `$ref`."""
    return {"title": title, "allOf": [part], "definitions": _definitions()}


def _definitions() -> Schema:
    """The parts of a configuration that may be in files of their own, and their components."""
    assertions = {"type": "array", "items": _or_elsewhere({"anyOf": [ANY_TEXT, reference("Assertion")]})}
    return {
        "Test": _part(TEST, assert_=assertions, options=_part(OPTIONS)),
        "TestEntry": {"anyOf": [ANY_TEXT, reference("Test")]},
        "Scenario": _part(SCENARIO, config=_tests(), tests=_tests()),
        "Assertion": _assertion(assertions),
        "Provider": _provider(),
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
    """An assertion; types that are not supported are rejected, as by the reader."""
    kinds = {*CHECKS, SET, *COMPARISONS}
    known = one_of({*kinds, *(f"not-{kind}" for kind in CHECKS)})
    definition = _part(ASSERTION, type=known, assert_=members)
    definition["anyOf"] = [given("type"), {"required": ["$ref"]}]
    definition["allOf"] = [when("type", {"const": SET}, given("assert"))]
    return definition


def _part(shape: Shape, **others: Schema) -> Schema:
    """A mapping of a shape; `others` are more specific schemas of some keys. A null value counts as absent."""
    known = {key: dict(kind.schema) for key, kind in shape.items()} | {k.rstrip("_"): v for k, v in others.items()}
    return mapping({key: {"anyOf": [schema, NULL, _ELSEWHERE]} if schema else {} for key, schema in known.items()})


def _tests() -> Schema:
    """What may be under `tests`, or in a file of tests."""
    return {"anyOf": [ANY_TEXT, reference("Test"), list_of(_or_elsewhere(reference("TestEntry")))]}


def _or_elsewhere(schema: Schema) -> Schema:
    return {"anyOf": [schema, _ELSEWHERE]}


def _either_of(*keys: str, value: Schema | None = None) -> Schema:
    """One of the keys has a value."""
    something: Schema = {"not": {"enum": [None, "", [], {}, 0, False]}} if value is None else value
    return {"anyOf": [having(key, something) for key in keys]}
