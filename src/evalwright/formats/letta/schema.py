"""JSON Schemas of Letta Evals' files, for editors: the suite and a line of its dataset."""

from __future__ import annotations

from evalwright import registry
from evalwright.formats.letta.dataset_rows import SAMPLE_KEYS, SAMPLE_OBJECTS
from evalwright.formats.letta.graders import JUDGES, OF_JUDGE, OF_TOOL, PROVIDERS, TOOL_GRADERS
from evalwright.formats.letta.retries import MOST_RETRIES
from evalwright.formats.letta.suite import OF_TARGET, SUITE_KEYS
from evalwright.formats.letta.target_section import NAMED_BY, SOURCES, TARGET_KINDS
from evalwright.formats.shared.gate_schema import gate_schemas
from evalwright.formats.shared.json_schema import lenient
from evalwright.formats.shared.schema_parts import (
    ANY_TEXT,
    ANYTHING,
    COUNT,
    WORD,
    Schema,
    evaluator_keys,
    given,
    having,
    list_of,
    mapping,
    offered,
    one_of,
    or_null,
    reference,
    unless_off,
    when,
)

__all__ = ["sample_schema", "suite_schema"]

_WHOLE: Schema = lenient({"type": "integer", "minimum": 0})
_RETRIES: Schema = lenient({"type": "integer", "minimum": 0, "maximum": MOST_RETRIES})
_FALSY: list[object] = [None, "", [], {}, False, 0]
"""Values that the reader treats as absent."""
_NOTHING: Schema = {"enum": _FALSY}
_TEXT: Schema = {"anyOf": [_NOTHING, ANY_TEXT]}
_TEXTS: Schema = {"anyOf": [_NOTHING, list_of(ANY_TEXT)]}


def suite_schema() -> Schema:
    """For a suite."""
    definitions: Schema = {}
    definitions |= {"Grader": _grader(definitions), **gate_schemas()}
    known: dict[str, Schema] = {
        **dict.fromkeys(SUITE_KEYS, ANYTHING),
        "name": WORD,
        "dataset": WORD,
        "target": _target(),
        "graders": {"type": ["object", "null"], "additionalProperties": reference("Grader"), "minProperties": 1},
        "grader": {"if": {"type": "object"}, "then": reference("Grader")},
        "gate": reference("Gate"),
        "reward": or_null({"type": "object"}),
        "max_samples": or_null(_WHOLE),
        "num_runs": or_null(_WHOLE),
        "max_concurrent": or_null(lenient(COUNT)),
        "sample_tags": _TEXTS,
        "output": {"type": ["string", "null"]},
        "setup_script": _TEXT,
        "cleanup": {"type": ["boolean", "null"]},
    }
    metric = {**having("kind", {"const": "metric"}), "allOf": [given("metric_key")]}
    custom = {**having("kind", {"const": "custom"}), "allOf": [having("function", ANY_TEXT)]}
    reward = having("reward", {"type": "object", "anyOf": [metric, custom]})
    only = having("grader", {"type": "object"})
    return {
        "title": "Letta Evals: a suite",
        **mapping(known, ["name", "dataset", "target"]),
        **unless_off(SUITE_KEYS),
        "allOf": [
            {"anyOf": [{"required": ["gate"]}, reward]},
            {"anyOf": [given("graders"), only]},
        ],
        "definitions": definitions,
    }


def sample_schema() -> Schema:
    """For a sample, one line of a dataset in JSON Lines."""
    texts: Schema = {"anyOf": [ANY_TEXT, list_of(ANY_TEXT)]}
    schema: Schema = {"anyOf": [ANY_TEXT, list_of(ANY_TEXT, 1)]}
    known: dict[str, Schema] = {
        **dict.fromkeys(sorted(SAMPLE_KEYS), ANYTHING),
        **{key: {"type": ["object", "null"]} for key in SAMPLE_OBJECTS},
        "id": {"type": ["integer", "string", "null"]},
        "sample_id": {"type": ["integer", "string", "null"]},
        "input": or_null(schema),
        "ground_truth": or_null(texts),
        "tags": or_null(list_of(ANY_TEXT)),
        "rubric": {"type": ["string", "null"]},
        "rubric_path": {"type": ["string", "null"]},
    }
    sample = mapping(known)
    sample["anyOf"] = [given("input"), having("prompt", schema)]
    return {"title": "Letta Evals: a sample", **sample}


def _target() -> Schema:
    positive: Schema = lenient({"type": "number", "exclusiveMinimum": 0})
    models: Schema = or_null(list_of(ANY_TEXT, 1))
    known: dict[str, Schema] = {
        **dict.fromkeys(OF_TARGET, ANYTHING),
        **dict.fromkeys((*SOURCES, "working_dir"), _TEXT),
        "kind": one_of(TARGET_KINDS),
        "timeout": positive,
        "max_retries": _RETRIES,
        "model_configs": models,
        "model_handles": models,
    }
    target = mapping(known) | unless_off(OF_TARGET)
    target["anyOf"] = [{"required": ["kind"]}, {"maxProperties": 0}]  # --target names the backend
    some = {source: having(source, {"not": _NOTHING}) for source in SOURCES}
    target["allOf"] = [
        when("kind", {"const": kind}, {"anyOf": [having(key) for key in keys]}) for kind, keys in NAMED_BY.items()
    ]
    agents = [kind for kind, meant in TARGET_KINDS.items() if meant == "agent"]
    target["allOf"].append(when("kind", {"enum": agents}, {"oneOf": [*some.values()]}))
    return target


def _grader(definitions: Schema) -> Schema:
    own: Schema = {"type": "string", "pattern": ":"}
    extractors = [name for name in registry.names("extractors") if name != "python_extractor"]
    config: Schema = {"anyOf": [_NOTHING, {"type": "object"}]}
    common = {"extractor": offered(extractors, own), "extractor_config": config}
    function = offered({*TOOL_GRADERS, *registry.PREMADE}, own)
    tool = mapping({**dict.fromkeys(sorted(OF_TOOL), ANYTHING), **common, "function": function}, ["function"])
    settings = evaluator_keys("rubric_template", definitions)
    types = {key: or_null(schema) for key, schema in (settings[0] if settings else {}).items() if key in OF_JUDGE}
    types |= {**common, "provider": one_of(PROVIDERS), "max_retries": _RETRIES, "rubric_vars": _TEXTS}
    judge = mapping({**dict.fromkeys(sorted(OF_JUDGE), ANYTHING), **types})
    judge["anyOf"] = [
        {**having("prompt"), "allOf": [{"properties": {"prompt_path": _NOTHING}}]},
        {**having("prompt_path", {"not": _NOTHING}), "allOf": [{"properties": {"prompt": _NOTHING}}]},
    ]
    kinds: Schema = {"enum": ["tool", *JUDGES]}
    grader = mapping({"kind": kinds}, ["kind"])
    grader["allOf"] = [when("kind", {"const": "tool"}, tool), when("kind", {"enum": [*JUDGES]}, judge)]
    return grader
