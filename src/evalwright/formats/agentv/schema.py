"""JSON Schemas of AgentV's files, for editors: evals, files that they name, targets, settings of a repository."""

from __future__ import annotations

from evalwright.formats.agentv.case_files import LISTS, SCHEME
from evalwright.formats.agentv.case_keys import ASSERTIONS
from evalwright.formats.agentv.config import CONFIG_KEYS
from evalwright.formats.agentv.file import CASE_LISTS, EXECUTION, HEAD, OF_NEXT
from evalwright.formats.agentv.schema_definitions import (
    FILES,
    POSITIVE,
    camel,
    definitions,
    execution,
    or_variable,
    workspace,
)
from evalwright.formats.agentv.target_keys import ALSO_NAMED
from evalwright.formats.agentv.target_settings import BOOLEANS, settings_schema
from evalwright.formats.agentv.targets_file import PROVIDERS
from evalwright.formats.shared.isolation import OF_PROGRAMS
from evalwright.formats.shared.json_schema import lenient
from evalwright.formats.shared.schema_parts import (
    ANY_TEXT,
    ANYTHING,
    COUNT,
    NULL,
    WORD,
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

__all__ = [
    "assertions_schema",
    "case_schema",
    "cases_schema",
    "config_schema",
    "eval_schema",
    "folder_case_schema",
    "sidecar_schema",
    "targets_schema",
    "workspace_schema",
]

_NEVER: Schema = {"not": {}}
_NAMED_CASES: Schema = {"type": "string", "pattern": f"^{SCHEME}"}


def eval_schema() -> Schema:
    """For an eval file in YAML."""
    head = _head()
    cases = list_of({"anyOf": [reference("Case"), _NAMED_CASES]})
    head["properties"] |= {key: or_null(cases) for key in CASE_LISTS} | {"tests": {"anyOf": [ANY_TEXT, NULL, cases]}}
    nothing: dict[bool, list[object]] = {True: [None], False: [None, [], ""]}
    return {
        "title": "AgentV: evals",
        **head,
        **unless_off({*HEAD, *CASE_LISTS}),
        "anyOf": [having(key, {"not": {"enum": nothing[key == CASE_LISTS[0]]}}) for key in CASE_LISTS],
        "definitions": definitions(),
    }


def sidecar_schema() -> Schema:
    """For the YAML file beside cases in JSON Lines."""
    head = {**_head(), "type": ["object", "null"]}
    return {"title": "AgentV: beside cases in JSON Lines", **head, **unless_off(HEAD), "definitions": definitions()}


def case_schema() -> Schema:
    """For a case, one line of JSON Lines."""
    return _schema_of_part("AgentV: a case", reference("Case"))


def folder_case_schema() -> Schema:
    """For a `case.yaml` in a folder of cases; without an id, the name of the folder is the id."""
    parts = definitions()
    case = {**parts["Case"]}
    del case["required"]
    return {"title": "AgentV: case.yaml of a folder", **case, "definitions": parts}


def cases_schema() -> Schema:
    """For a file of cases that an eval file names: a case with an id, a list, or a list under one of three keys."""
    listed = list_of(reference("Case"))
    below: Schema = {"type": "object", **absent("id")}
    below["anyOf"] = [having(key, listed) for key in LISTS]
    schema: Schema = {"allOf": [{"type": "object", "required": ["id"]}, reference("Case")]}
    return _schema_of_part("AgentV: cases", {"anyOf": [schema, listed, below]})


def workspace_schema() -> Schema:
    """For a file that `workspace` names."""
    return {"title": "AgentV: a workspace", **workspace()}


def assertions_schema() -> Schema:
    """For a file that `include` names."""
    listed: Schema = mapping({"assertions": reference("Assertions")}, ["assertions"])
    return _schema_of_part("AgentV: assertions", listed)


def targets_schema() -> Schema:
    """For a `targets.yaml`, whose keys may also be written in camel case."""
    model = lenient(settings_schema())
    keys: dict[str, Schema] = {key: or_variable(schema) for key, schema in model.pop("properties").items()}
    keys |= {key: or_null(or_variable({"type": "boolean"})) for key in BOOLEANS}
    keys |= {other: keys[first] for other, first in ALSO_NAMED.items()}
    keys = {spelt: schema for key, schema in keys.items() for spelt in dict.fromkeys((key, camel(key)))}
    keys["provider"] = offered(PROVIDERS, {"type": ["string", "null"]})
    target = mapping({**keys, "name": WORD}, ["name"]) | unless_off(keys, OF_PROGRAMS)
    target["anyOf"] = [{"required": ["provider"]}, {"required": ["use_target"]}, {"required": ["useTarget"]}]
    return {
        "title": "AgentV: targets",
        **mapping({"$schema": ANYTHING, "targets": list_of(target)}, ["targets"]),
        "definitions": model.get("definitions", {}),
    }


def config_schema() -> Schema:
    """For `.agentv/config.yaml`."""
    defaults = mapping({"timeout_seconds": or_null(POSITIVE), "target": {"type": ["string", "null"]}})
    known = {**dict.fromkeys(CONFIG_KEYS, ANYTHING), "defaults": or_null(defaults)}
    known |= {key: or_null(list_of(ANY_TEXT)) for key in ("guideline_patterns", "eval_patterns")}
    return {"title": "AgentV: settings of a repository", **mapping(known)}


def _head() -> Schema:
    """The keys beside the cases."""
    head: dict[str, Schema] = dict.fromkeys(sorted(HEAD), ANYTHING)
    head |= {"workspace": or_null(reference("Workspace")), "input_files": or_null(FILES)}
    assertions = dict.fromkeys(ASSERTIONS, or_null(reference("Assertions")))
    head |= assertions
    gates = execution(EXECUTION)
    gates["properties"] |= assertions
    gates["properties"]["trials"] = or_null(having("count", COUNT))
    head |= {"execution": or_null(gates), **dict.fromkeys(OF_NEXT, _NEVER)}
    return mapping(head)


def _schema_of_part(title: str, part: Schema) -> Schema:
    """A file that is a single part: draft 7 ignores everything beside `$ref`."""
    return {"title": title, "allOf": [part], "definitions": definitions()}
