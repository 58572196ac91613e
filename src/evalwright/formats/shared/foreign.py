"""Suite files of other programs, recognised by their content, so that none is mistaken for one of ours."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["foreign_format", "has_queries"]

_LOOKED_AT = 1 << 16
"""Characters of a file that are examined."""
_OPENAI_EVAL = re.compile(
    r"^[\w.-]+:\s*(?:#.*)?\n(?:[ \t]+\w+:.*\n)*?[ \t]+(?:class:[ \t]*[\"']?evals\.|metrics:[ \t]*\[)", re.M
)
"""An entry in the registry of OpenAI Evals: a class of `evals`, or an eval with its metrics."""
_AGENTV_FORM = frozenset({"prompts", "providers"})
"""Keys that AgentV 5 took from promptfoo: other keys tell the two apart."""
_AGENTV_KEYS = (
    "default_test", "evaluate_options", "execution", "workspace", "governance", "assert", "assertions", "input_files",
)  # fmt: skip
_AGENTV_TYPES = frozenset((
    "code_grader", "code_judge", "composite", "execution_metrics", "field_accuracy", "llm_grader", "llm_judge",
    "rubric", "rubrics", "script", "token_usage", "tool_trajectory",
))  # fmt: skip
_PROMPTFOO_STEM = "promptfooconfig"
_PROMPTFOO_KEYS = frozenset({
    "commandLineOptions", "defaultTest", "derivedMetrics", "evaluateOptions", "nunjucksFilters", "outputPath",
    "redteam",
})  # fmt: skip
_AGENTV_TEST = re.compile(
    r"^([ ]*)- id:.*\n(?:\1 .*\n|\n)*?\1  "
    r"(?:(criteria|expected_output|conversation_id|assertions|input_files|rubrics):"
    r"|(assert):[ ]*\n(?=([ ]*)- )(?:\4[ -].*\n|\n)*?\4- (?:[|>]|[\"'].*[\"'][ ]*$|(?![{&*\"'])(?!\S+:(?:[ ]|$)).))",
    re.M,
)
"""A test with an id, which promptfoo does not have, and with a key of AgentV or a plain sentence as an assertion."""


def has_queries(head: Mapping[str, Any]) -> bool:
    """Whether `tests` have a `query` and no input, as in some files of Agent Skills and in no AgentV suite."""
    tests = head.get("tests")
    first = tests[0] if isinstance(tests, list) and tests else None
    return isinstance(first, dict) and "query" in first and first.keys().isdisjoint(("input", "input_messages"))


def foreign_format(path: Path, head: Mapping[str, Any]) -> str:
    """The program to which this configuration belongs; "" if it is unknown. `head` is the top-level mapping."""
    if path.suffix.lower() not in (".yaml", ".yml", ".json"):
        return ""
    if head.keys().isdisjoint({"eval", "tests", "evalcases", "graders"}) and _OPENAI_EVAL.search(_text(path)):
        return "OpenAI Evals"
    keys = _keys_of_agentv_5(path, head)
    return f"AgentV 5 ({', '.join(keys)})" if keys else ""


def _keys_of_agentv_5(path: Path, head: Mapping[str, Any]) -> list[str]:
    """The keys that reveal AgentV 5, its own ones first; none for a promptfoo file."""
    shared = [key for key in head if key in _AGENTV_FORM]
    schema = str(head.get("$schema", ""))
    if not shared or "eval" in head or path.stem == _PROMPTFOO_STEM or "promptfoo.dev" in schema:
        return []
    if not _PROMPTFOO_KEYS.isdisjoint(head):
        return []
    own = [key for key in _AGENTV_KEYS if key in head and (key != "assert" or _asserts_as_agentv(path))]
    own += ["$schema"] * schema.startswith("agentv-")
    if not own and "tests" in head and (match := _AGENTV_TEST.search(_text(path))):
        own = ["tests[].id", f"tests[].{match[2] or match[3]}"]
    return [*own, *shared] if own else []


def _asserts_as_agentv(path: Path) -> bool:
    """Whether a file's assertions include a plain sentence, or a type that promptfoo does not have."""
    from evalwright.errors import InputError
    from evalwright.files import yaml

    try:
        listed = yaml.load(path, "yaml12").value["assert"]
    except InputError:
        return False
    listed = listed if isinstance(listed, list) else []
    types = (item.get("type") for item in listed if isinstance(item, dict))
    return any(isinstance(item, str) for item in listed) or any(
        str(kind).replace("-", "_") in _AGENTV_TYPES for kind in types
    )


def _text(path: Path) -> str:
    """The lines of a file that are examined."""
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            text = file.read(_LOOKED_AT)
    except OSError:
        return ""
    # a line that is cut off could look like a sentence
    return text if len(text) < _LOOKED_AT else text[: text.rfind("\n") + 1]
