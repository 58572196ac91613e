"""JSON Schemas: what ajv 8 with ajv-formats 3, set up as promptfoo has it, said of each pair of schema and value."""

from __future__ import annotations

import pytest

from evalwright.formats.loading import load_suite
from evalwright.formats.promptfoo.ajv import validator_of
from formats.promptfoo.runs import ECHO, write

_UUID = "123e4567-e89b-12d3-a456-426614174000"
_FORMATS = {
    "date": "2024-02-29 | 2023-02-29 2024-13-01 2024-1-1",
    "time": "12:00:00Z 12:00:00z 23:59:60Z 00:59:60+01:00 12:00:00.5-0130 12:00:00+01 | 12:00:00 24:00:00Z 1:00:00Z",
    "date-time": "2024-02-29T12:00:00Z 2024-02-29t12:00:00+01:00 | 2024-02-29T12:00:00 yesterday",
    "iso-date-time": "2024-02-29T12:00:00 | 2024-02-29",
    "iso-time": "12:00:00 | 12:00",
    "duration": "P1D P1W P1Y2M3DT4H5M6S PT1H | P PT P1H p1d",
    "uri": "http://x.org http://[::1]/ http://[v1.a]/ mailto:a@b http://x/%2F a:b | //x.org/a a http://x/%zz http://x/{a}",
    "uri-reference": '//x.org/a ../a #f ?q=1 http://x/"q" | {a} http://x/%zz',
    "uri-template": "/x{?q,r*}/{+p:3} | {a",
    "url": "https://example.com http://8.8.8.8/x ftp://é.com | http://localhost http://10.0.0.1 a",
    "email": "a@b.c a.b+c@d-e.org A@B.DE | x@y .a@b.de a..b@c.de",
    "hostname": f"host a.b. {'a' * 63} | -a a- a_b {'a' * 64}",
    "ipv4": "1.2.3.4 | 256.1.1.1 01.2.3.4 1.2.3",
    "ipv6": ":: ::1 1:2:3:4:5:6:7:8 ::1.2.3.4 1:2:3:4:5:6:7:: | 1:2:3:4:5:6:7 fe80::1%eth0 1::2::3 12345::",
    "regex": r"a+ \Z [\w-.] | ( [a (?i)a a\Z",
    "uuid": f"{_UUID} urn:uuid:{_UUID} | 123 {_UUID}0",
    "json-pointer": "/a~0b | a/b /a~b",
    "json-pointer-uri-fragment": "#/a%20 | /a",
    "relative-json-pointer": "0 1/a 1# | 01 -1",
    "byte": "abcd abc= ab== | abc",
    "password": "x |",
}
_VALUES = (
    ({"type": "string", "nullable": True}, [None, "a"], [1]),
    ({"enum": ["a"], "type": "string", "nullable": True}, ["a"], [None]),
    ({"pattern": r"^\d+$"}, ["12", 5], ["12\n", "٣"]),
    ({"pattern": "^.$", "maxLength": 1}, ["😀"], ["ab"]),
    ({"multipleOf": 0.1}, [0.2, 1, "a"], [0.3]),
    ({"multipleOf": 2}, [4, 4.0], [3, 1e22]),
    ({"type": "integer"}, [1, 1.0], [1.5, True, "1"]),
    ({"format": "int32"}, [1, "x"], [1.5, 2**31]),
    ({"format": "int64"}, [2**53], [0.5]),
    ({"$ref": "#/definitions/a", "minLength": 3, "definitions": {"a": {"type": "string"}}}, ["abc"], ["ab", 1]),
    ({"definitions": {"a": {"nonsense": 1}}}, [1], []),
    ({"properties": {"a": {"$id": "#a", "type": "string"}, "b": {"$ref": "#a"}}}, [{"b": "x"}], [{"b": 1}]),
    ({"properties": {"x": {"$ref": "#"}}, "additionalProperties": False}, [{"x": {"x": {}}}], [{"x": {"y": 1}}]),
    ({"patternProperties": {r"^\d$": {"type": "string"}}, "additionalProperties": False}, [{"1": "a"}],
     [{"1": 1}, {"٣": "a"}, {"1\n": "a"}]),
    ({"if": {"type": "string"}, "then": {"minLength": 2}}, ["ab", 1], ["a"]),
    ({"dependencies": {"a": ["b"], "c": {"required": ["d"]}}}, [{"a": 1, "b": 1}], [{"a": 1}, {"c": 1}]),
    ({"$schema": "http://json-schema.org/draft-07/schema#", "examples": [1], "deprecated": True}, [1], []),
    (True, [1], []), (False, [], [1]),
)  # fmt: skip
_REFUSED = (
    {"$schema": "https://json-schema.org/draft/2020-12/schema"}, {"id": "x"}, {"if": {}}, {"then": {}}, {"enum": []},
    {"additionalItems": False}, {"contains": {}, "minContains": 1}, {"prefixItems": [{}]}, {"example": 1},
    {"format": "color"}, {"properties": {"a": {"not": {"nonsense": 1}}}}, {"nullable": True}, {"type": "any"},
    {"type": "string", "nullable": "x"}, {"type": ["null", "string"], "nullable": False}, {"pattern": r"[\w-.]"},
    {"$ref": "#/no"}, {"$ref": "#/definitions/a", "definitions": {"a": {"nonsense": 1}}}, {"pattern": "(?i)a"},
    {"$ref": "https://example.org/a.json"}, {"patternProperties": {"(": {"type": "string"}}}, {"required": True}, [], 5,
    {"properties": {"ab": {}}, "patternProperties": {"^a": {"type": "string"}}}, {"$async": True},
)  # fmt: skip


def _fits(schema, value):
    return validator_of(schema).is_valid(value)


def test_formats_are_those_of_ajv():
    for name, texts in _FORMATS.items():
        good, _, bad = texts.partition("|")
        assert [text for text in good.split() if not _fits({"format": name}, text)] == [], name
        assert [text for text in bad.split() if _fits({"format": name}, text)] == [], name
        assert _fits({"format": name}, None)


def test_values_are_valid_as_for_ajv():
    for schema, good, bad in _VALUES:
        assert [value for value in good if not _fits(schema, value)] == [], schema
        assert [value for value in bad if _fits(schema, value)] == [], schema


def test_what_ajv_cannot_compile_is_refused(monkeypatch):
    for schema in _REFUSED:
        with pytest.raises(ValueError, match=r".+"):
            validator_of(schema)
    monkeypatch.setenv("PROMPTFOO_DISABLE_AJV_STRICT_MODE", "true")
    assert _fits({"format": "color", "example": 1, "if": {}}, "x")
    with pytest.raises(ValueError, match="nothing is at"):
        validator_of({"$ref": "#/no"})


def test_a_schema_that_is_written_as_a_text_is_doubted_too(tmp_path):
    schemas = ["{type: object, requird: [a]}", "{type: object}", "{type: {{kind}}, requird: [a]}"]
    asserts = [{"type": "is-json", "value": schema} for schema in schemas]
    path = write(tmp_path, {**ECHO, "tests": [{"vars": {"q": "a", "kind": "object"}, "assert": asserts}]})
    keys = [warning.key for warning in load_suite(path).warnings if "is not a JSON Schema" in warning.message]
    assert keys == ["tests[0].assert[0].value"]
