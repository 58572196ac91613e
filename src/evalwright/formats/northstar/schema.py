"""JSON Schemas of NorthStar's files, for editors: cases, and the run configuration that lists graders."""

from __future__ import annotations

from typing import Any

from evalwright.formats.northstar.authored import EvalCase
from evalwright.formats.northstar.plans import TRACE
from evalwright.formats.shared.json_schema import lenient
from evalwright.formats.shared.schema_parts import (
    NOT_BLANK,
    NULL,
    Schema,
    evaluator_keys,
    list_of,
    mapping,
    or_null,
    reference,
    when,
)
from evalwright.registry import PREMADE

__all__ = ["case_schema", "cases_schema", "configuration_schema"]

_TYPES = {"rubric": "rubric_judge", "python": "python_code", "typescript": "typescript_code", "regex": "regex"}
"""The evaluator for each type of grader."""


def case_schema() -> Schema:
    """For a case, one line of a dataset in JSON Lines."""
    return {**_case(), "title": "NorthStar: a case"}


def cases_schema() -> Schema:
    """For a dataset in JSON: a list of cases, an object with one under `cases`, or one case."""
    case = _case()
    definitions = {**case.pop("definitions"), "EvalCase": case}
    cases = list_of(reference("EvalCase"))
    inside: Schema = {"if": {"required": ["cases"]}, "then": mapping({"cases": cases}), "else": reference("EvalCase")}
    either: Schema = {"if": {"type": "array"}, "then": cases, "else": {"type": "object", **inside}}
    return {"title": "NorthStar: a dataset", **either, "definitions": definitions}


def _case() -> Schema:
    """As in the original, true and false are numbers, too."""
    schema: Schema = _with_truth(lenient(EvalCase.model_json_schema()))
    return schema


def _with_truth(node: Any) -> Any:
    if isinstance(node, list):
        return [_with_truth(child) for child in node]
    if not isinstance(node, dict):
        return node
    if node.get("type") in ("number", "integer"):
        return {"anyOf": [node, {"type": "boolean"}]}
    return {key: _with_truth(child) for key, child in node.items()}


def configuration_schema() -> Schema:
    """For a run configuration, the file of `--graders`."""
    definitions: Schema = {}
    kinds: list[str | None] = [*_TYPES, "trace", *PREMADE]
    grader = mapping({"name": NOT_BLANK, "type": {"enum": kinds}}, ["name"])
    grader["allOf"] = [
        *(when("type", {"const": kind}, _keys(evaluator, definitions)) for kind, evaluator in _TYPES.items()),
        when("type", {"const": "trace"}, mapping({"check": {"enum": [*TRACE]}}, ["check"])),
        {"if": {"not": {"required": ["type"]}}, "then": _keys(_TYPES["rubric"], definitions)},
    ]
    graders = or_null(list_of(reference("Grader")))
    known = {"graders": graders, "judges": graders, "judge": {"anyOf": [NULL, reference("Grader")]}}
    configuration = mapping(known, closed=True)
    return {"title": "NorthStar: graders", **configuration, "definitions": {**definitions, "Grader": grader}}


def _keys(evaluator: str, definitions: Schema) -> Schema:
    """The keys of an evaluator's configuration that a grader may have; null leaves a key unset."""
    all_keys = evaluator_keys(evaluator, definitions)
    if all_keys is None:
        return {}
    keys, needed = all_keys
    required = [key for key in needed if key != "model"]  # --judge-model may give it
    known = {key: schema if key in required else or_null(schema) for key, schema in keys.items()}
    return mapping({"name": {}, "type": {}, **known}, required, closed=True)
