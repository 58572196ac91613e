"""JSON Schemas of `eval.yaml` and of its datasets, for editors.

They accept every file that `validate` accepts, including one that uses plug-ins that are not installed here: names of
types are suggested, and configuration is checked only for known types.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from evalwright import registry
from evalwright.evaluators.catalogue import catalogue
from evalwright.formats.native.cases import FileCase
from evalwright.formats.native.dataset_section import ENDINGS, PACKINGS
from evalwright.formats.native.file import EvalFile
from evalwright.formats.native.file_mistakes import model_of
from evalwright.formats.native.prices import PriceTable
from evalwright.formats.native.suite import NEED_PATH
from evalwright.formats.shared.claims import CLAIM_KEYS, CLAIMS
from evalwright.formats.shared.gate_schema import gate_schemas
from evalwright.formats.shared.gates import GATE_KEYS, GATE_OF_RUNS
from evalwright.formats.shared.json_schema import REFERENCES, lenient
from evalwright.formats.shared.schema_parts import evaluator_keys

__all__ = ["case_schema", "cases_schema", "eval_schema", "prices_schema"]

_Schema = dict[str, Any]

_NULL: _Schema = {"type": "null"}
_OF_ANY_SYSTEM = ("allow_missing", "cost_limit_usd", "matrix", "model")
_EMPTY_AS_NULL = ("expected", "metadata", "tags")


def eval_schema() -> _Schema:
    """The schema of `eval.yaml`."""
    schema: _Schema = lenient(model_of(EvalFile).model_json_schema())
    known, sections = schema["properties"], schema["definitions"]
    schema["additionalProperties"] = False
    for name, section in known.items():
        if name not in schema["required"]:
            known[name] = {"anyOf": [section, _NULL]}
    known["schema_version"] = {"anyOf": [{"type": "string", "pattern": r"^1\.|\$\{"}, _NULL], "default": "1.0"}
    for name in ("systems", "evaluators"):
        known[name]["minItems"] = 1
    output = known["output"]
    first = {"allOf": [output["items"], _needs_path()]}
    several = {**output, "minItems": 1, "items": [first], "additionalItems": output["items"]}
    known["output"] = {"anyOf": [several, first]}
    sections["DatasetSection"]["anyOf"] = _type_or_path()
    of_one_file = sorted({*registry.names("datasets")} - {*ENDINGS, "huggingface"} - registry.INTERNAL)
    one_path = {"properties": {"path": {"type": ["string", "null"]}}}
    sections["DatasetSection"]["allOf"] = [{"if": _schema_of_type(of_one_file), "then": one_path}]
    sections |= lenient(gate_schemas())
    known["gate"] = {"anyOf": [_gate(), {"type": "array", "items": _gate(), "minItems": 1}, _NULL]}
    _offer(sections["DatasetSection"]["properties"], "type", registry.names("datasets"))
    _offer(sections["OutputSection"]["properties"], "type", {*registry.names("stores"), *registry.names("mirrors")})
    _offer(sections["WorkspaceSection"]["properties"], "type", registry.names("workspaces"))
    _offer(sections["EnricherSection"]["properties"], "type", registry.names("enrichers"))
    extractor = sections["EvaluatorSection"]["properties"]["extractor"]
    extractor["anyOf"].append({"type": "string", "minLength": 1})
    sections["ExecutorSection"]["properties"]["judges"]["anyOf"].append({"type": "boolean"})
    _describe_evaluators(sections["EvaluatorSection"], sections)
    _describe_systems(sections["SystemSection"])
    return {"title": "evalwright: eval.yaml", **schema}


def _needs_path() -> _Schema:
    """Of a run's store: stores in files need a place."""
    return {
        "if": _schema_of_type(sorted(NEED_PATH)),
        "then": {"properties": {"path": {"type": "string"}}, "required": ["path"]},
    }


def _gate() -> _Schema:
    """A condition whose keys and choices are known, or a claim or reward whose keys are."""
    condition = {"$ref": REFERENCES.format(name="Gate")}
    other: list[_Schema] = [{"required": [claim]} for claim in CLAIMS]
    other.append({"properties": {"kind": {"const": "reward"}}, "required": ["kind"]})
    keys = {key for known in (*GATE_KEYS.values(), *CLAIM_KEYS.values(), GATE_OF_RUNS, CLAIMS) for key in known}
    return {
        "type": "object",
        "propertyNames": {"enum": sorted(keys)},
        "if": {"anyOf": other},
        "else": condition,
    }


def _schema_of_type(names: list[str]) -> _Schema:
    return {"properties": {"type": {"enum": names}}, "required": ["type"]}


def _type_or_path() -> list[_Schema]:
    """For a dataset: a type, or a path whose ending may stand for one."""
    endings = "|".join("".join(f"[{letter}{letter.upper()}]" for letter in ending) for ending in ENDINGS)
    packings = "".join(f"({re.escape(packing)})?" for packing in reversed(PACKINGS))
    named = {"type": "string", "pattern": rf"\.({endings}){packings}$|\$\{{"}
    paths = {"anyOf": [named, {"type": "array", "items": [named], "minItems": 1}]}
    return [
        {"properties": {"type": {"type": "string"}}, "required": ["type"]},
        {"properties": {"path": paths}, "required": ["path"]},
    ]


def _offer(properties: _Schema, key: str, names: Any) -> None:
    """Names to complete; any other is allowed, as it may come from a plug-in."""
    properties[key] = {"anyOf": [{"enum": sorted(set(names) - registry.INTERNAL)}, properties[key]]}


def _describe_evaluators(section: _Schema, sections: _Schema) -> None:
    listed = [evaluator for evaluator in catalogue() if evaluator.name not in registry.INTERNAL]
    names = [{"const": evaluator.name, "description": evaluator.sentence} for evaluator in listed]
    section["properties"]["type"] = {"anyOf": [*names, {"type": "string", "minLength": 1}]}
    section["allOf"] = [
        {"if": {"properties": {"type": {"const": evaluator.name}}, "required": ["type"]}, "then": then}
        for evaluator in listed
        if (then := _schema_of_config(evaluator.name, sections)) is not None
    ]


def _schema_of_config(name: str, sections: _Schema) -> _Schema | None:
    """The schema of an evaluator's configuration; None if the evaluator does not give one."""
    all_keys = evaluator_keys(name, sections)
    if all_keys is None:
        return None
    keys, required = all_keys
    config: _Schema = {"properties": keys, "additionalProperties": False}
    if required:
        return {"properties": {"config": {**config, "required": required}}, "required": ["config"]}
    return {"properties": {"config": config}}


def _describe_systems(section: _Schema) -> None:
    adapters = [name for name in registry.names("targets") if name not in registry.INTERNAL]
    _offer(section["properties"], "adapter", adapters)
    section["properties"]["matrix"] = {
        "type": "object",
        "minProperties": 1,
        "additionalProperties": {"type": ["array", "object"]},
    }
    # Required keys may come from the matrix.
    section["required"] = ["name"]
    section["anyOf"] = [{"required": ["adapter"]}, {"required": ["matrix"]}]
    section["allOf"] = [
        {"if": {"properties": {"adapter": {"const": name}}, "required": ["adapter"]}, "then": then}
        for name, then in _schemas_of_systems(adapters, section["properties"])
    ]


def _schemas_of_systems(adapters: list[str], known: Mapping[str, Any]) -> Iterator[tuple[str, _Schema]]:
    for name in adapters:
        keys = getattr(registry.load("targets", name), "config_keys", None)
        if keys is not None:
            names = sorted({*known, *keys, *_OF_ANY_SYSTEM})
            yield name, {"properties": {key: {} for key in sorted(keys)}, "propertyNames": {"enum": names}}


def case_schema() -> _Schema:
    """For one case: a line of a JSON Lines dataset."""
    return {**_case(), "title": "evalwright: a case"}


def cases_schema() -> _Schema:
    """For a YAML dataset: a list of cases, or a mapping with one under `cases`."""
    case = _case()
    definitions = case.pop("definitions")
    definitions["FileCase"] = case
    cases: _Schema = {"type": "array", "items": {"$ref": REFERENCES.format(name="FileCase")}}
    version = {"type": "string", "pattern": r"^1\."}
    mapping: _Schema = {"type": "object", "properties": {"cases": cases, "schema_version": version}}
    return {
        "title": "evalwright: cases",
        **mapping,
        "required": ["cases"],
        "definitions": definitions,
    }


def prices_schema() -> _Schema:
    """The schema of a price table."""
    return {**_strict(PriceTable.model_json_schema()), "title": "evalwright: prices of models"}


def _case() -> _Schema:
    schema: _Schema = _strict(FileCase.model_json_schema())
    known = schema["properties"]
    known["id"] = {**known["id"], "pattern": r"\S"}
    known["schema_version"] = {**known["schema_version"], "pattern": r"^1\."}
    for name in _EMPTY_AS_NULL:
        known[name] = {"anyOf": [known[name], _NULL]}
    return schema


def _strict(schema: _Schema) -> _Schema:
    """Cases name no variables, but pydantic accepts text for a number there, too."""
    return dict(lenient(schema))
