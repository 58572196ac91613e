"""The parts of AgentV's files as JSON Schemas: cases, messages, rubrics, evaluators, workspaces.

Keys and types come from the tables that the readers use. `${{ NAME }}` is allowed in place of a number.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from evalwright.evaluators.catalogue import catalogue
from evalwright.evaluators.combined.aggregators import AGGREGATORS
from evalwright.formats.agentv.assertions import FIELD_AGGREGATIONS
from evalwright.formats.agentv.case_keys import CASE_KEYS, EXECUTION_KEYS
from evalwright.formats.agentv.conversations import AFTER_FAILURE, OF_TURN, TURN_AGGREGATIONS
from evalwright.formats.agentv.detection import OUTCOMES
from evalwright.formats.agentv.messages import BLOCKS, ROLES
from evalwright.formats.agentv.rubrics import RUBRIC_KEYS, RUBRIC_OPERATORS, RUBRIC_TEXTS, TOP
from evalwright.formats.agentv.vocabulary import (
    ALIASES,
    MEMBERS,
    NEWER_AGGREGATORS,
    NEWER_KEYS,
    OF_MODEL,
    OWN_KEYS,
    TEXT_CHECKS,
    TYPES,
)
from evalwright.formats.agentv.workspace_settings import (
    HOOKS,
    OF_HOOK,
    OF_REPO,
    REQUIRED,
    RESETS,
    VALUES,
    WORKSPACE_KEYS,
)
from evalwright.formats.shared.isolation import OF_PROGRAMS
from evalwright.formats.shared.schema_parts import (
    ANY_TEXT,
    ANYTHING,
    COUNT,
    NOT_BLANK,
    NULL,
    NUMBER,
    WORD,
    Schema,
    absent,
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
from evalwright.registry import PREMADE

__all__ = ["FILES", "POSITIVE", "camel", "definitions", "execution", "or_variable", "workspace"]

_VARIABLE: Schema = {"type": "string", "pattern": r"\$\{\{"}
_EMPTY: list[object] = [None, "", [], {}, False, 0]
POSITIVE: Schema = {"type": "number", "exclusiveMinimum": 0}
_BOOLEAN: Schema = {"type": "boolean"}
_FLAGS: Schema = {"type": ["string", "null"], "pattern": r"^[dgimsuvy]*$|\$\{\{"}
_FROM_0_TO_1: Schema = {"type": "number", "minimum": 0, "maximum": 1}
_SHARE: Schema = {"type": "number", "exclusiveMinimum": 0, "maximum": 1}
FILES = list_of(WORD)


def definitions() -> Schema:
    """All parts by name."""
    parts: Schema = {}
    workspace_or_file: Schema = {"anyOf": [ANY_TEXT, workspace()]}
    parts |= {
        "Message": _message(),
        "Rubric": _rubric(),
        "Evaluator": _evaluator(parts),
        "Workspace": workspace_or_file,
        "Case": _case(),
    }
    named: Schema = {"anyOf": [having("name"), having("metric"), {"required": ["include"]}]}
    parts["Evaluators"] = list_of({"allOf": [reference("Evaluator"), named]})
    parts["Assertions"] = list_of({"anyOf": [ANY_TEXT, reference("Evaluator")]})
    return parts


def or_variable(schema: Schema) -> Schema:
    return {"anyOf": [schema, _VARIABLE]} if schema else schema


def camel(key: str) -> str:
    first, *others = key.split("_")
    return first + "".join(map(str.capitalize, others))


def _case() -> Schema:
    own = execution(EXECUTION_KEYS)
    own["properties"]["skip_defaults"] = or_variable(or_null(_BOOLEAN))
    assertions = or_null(reference("Assertions"))
    known: dict[str, Schema] = dict.fromkeys(sorted(CASE_KEYS), ANYTHING)
    known |= {
        "id": NOT_BLANK,
        **{key: or_null(NOT_BLANK) for key in OUTCOMES},
        **{key: or_null({"anyOf": [ANY_TEXT, _messages()]}) for key in ("input", "input_messages")},
        "expected_output": _expected_schema(),
        "expected_messages": _expected_schema(),
        "rubrics": {"anyOf": [{"enum": [None, []]}, _rubrics()]},
        "evaluators": or_null(reference("Evaluators")),
        "assert": assertions,
        "assertions": assertions,
        "execution": or_null(own),
        "workspace": or_null(reference("Workspace")),
        "input_files": or_null(FILES),
        "mode": {"enum": ["conversation", None]},
        "turns": or_null(list_of(_turn())),
        "aggregation": one_of(TURN_AGGREGATIONS),
        "on_turn_failure": one_of(AFTER_FAILURE),
        "window_size": or_variable(or_null(COUNT)),
    }
    case = mapping(known, ["id"]) | unless_off(CASE_KEYS)
    case["allOf"] = [{"anyOf": [given("input"), given("input_messages")]}]
    case["allOf"] += [when("mode", {"const": "conversation"}, having("turns", {"minItems": 1, "type": "array"}))]
    return case


def _turn() -> Schema:
    known: dict[str, Schema] = dict.fromkeys(OF_TURN, or_null(reference("Assertions")))
    known |= {"input": {"not": {"enum": [None, "", []]}}, "expected_output": _expected_schema()}
    return mapping(known, ["input"]) | unless_off(OF_TURN)


def execution(keys: Collection[str]) -> Schema:
    """The keys below `execution` of a file or a case."""
    known: dict[str, Schema] = {**dict.fromkeys(sorted(keys), ANYTHING), "evaluators": or_null(reference("Evaluators"))}
    known["threshold"] = or_variable(or_null(_FROM_0_TO_1))
    known["timeout_seconds"] = or_variable(or_null(POSITIVE))
    return mapping(known) | unless_off(keys, OF_PROGRAMS)


def _messages() -> Schema:
    """A list of messages, a single message, or an object that is the content of one."""
    schema: Schema = {"if": {"required": ["role"]}, "then": reference("Message"), "type": "object"}
    return {"anyOf": [list_of(reference("Message")), schema]}


def _expected_schema() -> Schema:
    """Messages if the first one has a role, else any value."""
    messages: Schema = {"if": {"items": [{"type": "object", "required": ["role"]}], "minItems": 1}}
    messages |= {"then": list_of(reference("Message")), "type": "array"}
    schema: Schema = {"if": {"required": ["role"]}, "then": reference("Message"), "type": "object"}
    return {"anyOf": [{"not": {"type": ["array", "object"]}}, messages, schema]}


def _message() -> Schema:
    block = mapping({"type": one_of(BLOCKS), "value": ANYTHING, "text": ANYTHING})
    block["anyOf"] = [{"required": ["type"]}, {"required": ["role"]}]
    text: Schema = {"anyOf": [having("value", ANY_TEXT), {**having("text", ANY_TEXT), **absent("value")}]}
    block["allOf"] = [when("type", {"not": {"const": "json"}}, text)]
    function = {"type": "object", **having("name", {"not": {"enum": _EMPTY}})}
    call: Schema = {
        "anyOf": [having("function", function), having("tool", {"not": {"enum": _EMPTY}})],
        "type": "object",
    }
    message = mapping({"role": one_of(ROLES), "content": ANYTHING, "tool_calls": or_null(list_of(call))}, ["role"])
    content: Schema = {"anyOf": [{"type": ["string", "object"]}, list_of(block)]}
    called: Schema = {"required": ["tool_calls"], "properties": {"tool_calls": {"type": "array", "minItems": 1}}}
    message["anyOf"] = [{"required": ["content"], "properties": {"content": content}}, called]
    return message


def _rubrics() -> Schema:
    """A string, or a list that contains at least one rubric."""
    rubric: Schema = {"anyOf": [NOT_BLANK, {"type": "object", "anyOf": _rubric_schemas()}]}
    return {
        "anyOf": [NOT_BLANK, list_of({"if": {"type": "object"}, "then": reference("Rubric")}) | {"contains": rubric}]
    }


def _rubric_schemas() -> list[Schema]:
    """What makes an object a rubric."""
    return [*(having(key, ANY_TEXT) for key in RUBRIC_TEXTS), given("score_ranges")]


def _score_ranges() -> Schema:
    score: Schema = {"type": "integer", "minimum": 0, "maximum": TOP}
    span: Schema = {"type": "array", "items": score, "minItems": 2, "maxItems": 2}
    schema = mapping({"score_range": span}, ["score_range"])
    schema["anyOf"] = [having("expected_outcome", WORD), having("outcome", WORD)]
    bounds: Schema = {"type": "object", "patternProperties": {f"^([0-{TOP - 1}]|{TOP})$": ANY_TEXT}, "required": ["0"]}
    return {"anyOf": [NULL, list_of(schema, 1), {**bounds, "additionalProperties": False}]}


def _rubric() -> Schema:
    least = {"min_score": 1, "required_min_score": TOP}
    known: dict[str, Schema] = dict.fromkeys(sorted(RUBRIC_KEYS), ANYTHING)
    known |= {"weight": or_variable({**NUMBER, "minimum": 0}), "required": or_variable(_BOOLEAN)}
    known |= {key: or_null(or_variable({**NUMBER, "minimum": 0, "maximum": top})) for key, top in least.items()}
    known |= {"score_ranges": _score_ranges(), "operator": one_of(RUBRIC_OPERATORS)}
    # an entry without any statement is skipped, whatever else it contains
    return {"if": {"anyOf": _rubric_schemas()}, "then": mapping(known) | unless_off(RUBRIC_KEYS)}


def _evaluator(definitions: Schema) -> Schema:
    """An evaluator in a list; an unknown type may be a program in `.agentv/assertions`."""
    sentences = {entry.name: entry.sentence for entry in catalogue()}
    names = sorted({*TYPES, *ALIASES, *PREMADE})
    spelt = [
        {"const": word, **({"description": sentences[name]} if name in sentences else {})}
        for name in names
        for word in dict.fromkeys((name.replace("_", "-") if name not in PREMADE else name, name))
    ]
    number = or_variable({**NUMBER, "minimum": 0})
    known: dict[str, Schema] = {
        "name": ANYTHING,
        "type": {"anyOf": [*spelt, ANY_TEXT]},
        "include": NOT_BLANK,
        "weight": number,
        "min_score": or_null(or_variable(_SHARE)),
        "required": {"anyOf": [NULL, {"type": "boolean"}, _SHARE, _VARIABLE]},
        "negate": or_null(or_variable(_BOOLEAN)),
    }
    evaluator = mapping(known)
    evaluator["anyOf"] = [{"required": ["type"]}, {"required": ["include"]}]
    evaluator["allOf"] = list(_schemas_of_types(definitions))
    return evaluator


def _schemas_of_types(definitions: Schema) -> Iterable[Schema]:
    """The requirements on an evaluator, by its type."""
    lists = [*(reference("Assertions") for _ in MEMBERS[1:]), reference("Evaluators")]
    members = [having(key, {**some, "minItems": 1}) for key, some in zip(MEMBERS, lists, strict=True)]
    kinds = {*AGGREGATORS, *NEWER_AGGREGATORS}
    spelt = one_of({*kinds, *(kind.replace("_", "-") for kind in kinds)})
    aggregator: Schema = {"anyOf": [{"enum": [None, {}]}, {"type": "object", **having("type", spelt)}]}
    yield when("type", _spelt("composite"), {"properties": {"aggregator": aggregator}, "anyOf": members})
    command: Schema = {"anyOf": [NOT_BLANK, list_of(ANY_TEXT, 1)]}
    scripted = [having("command", command), {**having("script", command), **absent("command")}]
    yield when("type", _spelt("code_judge"), {"anyOf": scripted})
    words: Schema = list_of(WORD, 1)
    program: Schema = {"type": "object", "anyOf": [having("command", words), having("script", words)]}
    settings = evaluator_keys("criteria_judge", definitions) or ({}, [])
    judge: dict[str, Schema] = {key: settings[0][key] for key in OF_MODEL}
    judge |= {"prompt": {"anyOf": [ANY_TEXT, NULL, program]}, "rubrics": or_null(_rubrics())}
    yield when("type", _spelt("llm_judge"), {"properties": judge})
    rubrics = [having("rubrics", _rubrics()), {**having("criteria", _rubrics()), **absent("rubrics")}]
    yield when("type", _spelt("rubric"), {"anyOf": rubrics})
    searched = [name for name in TEXT_CHECKS if name != "is_json"]
    yield when("type", _spelt(*searched), having("value", {"not": {"enum": [None, "", []]}}))
    yield when("type", _spelt("regex"), {"properties": {"value": ANY_TEXT, "flags": _FLAGS}})
    for kind, own in OWN_KEYS.items():
        if (keys := evaluator_keys(kind, definitions)) is None:
            continue
        types = {key: or_variable(schema) for key, schema in keys[0].items() if key in own}
        if kind == "field_accuracy":  # for an unknown one there is a warning, and the first one is used
            types["aggregation"] = offered(FIELD_AGGREGATIONS, ANYTHING)
        newer = {newer: types[older] for newer, older in NEWER_KEYS.get(kind, {}).items() if older in types}
        spelt = {
            word: schema for key, schema in {**types, **newer}.items() for word in dict.fromkeys((key, camel(key)))
        }
        ways = {
            key: [key, *(name for name, older in NEWER_KEYS.get(kind, {}).items() if older == key)] for key in keys[1]
        }
        needed = [{"anyOf": [{"required": [way]} for way in (*names, "config")]} for names in ways.values()]
        yield when("type", _spelt(kind), {"properties": spelt, **({"allOf": needed} if needed else {})})


def _spelt(*kinds: str) -> Schema:
    """Types in all their spellings."""
    names = [*kinds, *(alias for alias, meant in ALIASES.items() if meant in kinds)]
    words = "|".join(names).replace("_", "[-_]")
    return {"type": "string", "pattern": f"^(not[-_])?({words})$"}


def workspace() -> Schema:
    """The keys below `workspace`, or in the file that it names."""
    hook = mapping({**dict.fromkeys(OF_HOOK, ANYTHING), "reset": one_of(RESETS)}, closed=True)
    command: Schema = {"anyOf": [NOT_BLANK, list_of(WORD, 1)]}
    hook["properties"] |= {"command": or_null(command), "script": or_null(command), "cwd": {"type": ["string", "null"]}}
    hook["properties"] |= dict.fromkeys(("timeout_ms", "timeoutMs"), POSITIVE)
    hook["anyOf"] = [given("command"), given("script"), {"required": ["reset"]}]
    hooks = mapping({"enabled": {"type": "boolean"}, **dict.fromkeys((*HOOKS, "on_reuse"), hook)}, closed=True)
    repo = mapping({**dict.fromkeys(OF_REPO, ANYTHING), "path": ANY_TEXT}, ["path"], closed=True)
    repo["properties"] |= {"ancestor": {"type": "integer", "minimum": 0}, "sparse": {"type": ["array", "null"]}}
    repo["anyOf"] = [{"required": ["repo"], "properties": {"repo": NOT_BLANK}}, {"required": ["source"]}]
    known: dict[str, Schema] = {**dict.fromkeys(WORKSPACE_KEYS, ANYTHING), "template": {"type": ["string", "null"]}}
    known |= {"repos": or_null(list_of(repo)), "hooks": or_null(hooks), **{key: one_of(v) for key, v in VALUES.items()}}
    known["env"] = or_null(mapping(dict.fromkeys(REQUIRED, list_of(WORD)), closed=True))
    return mapping(known, closed=True)
