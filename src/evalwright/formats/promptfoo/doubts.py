"""What promptfoo accepts but is hardly ever meant: each is reported once, with a warning."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from evalwright.errors import counted, did_you_mean, shorten
from evalwright.files.key_paths import as_written
from evalwright.formats.promptfoo.checks.texts import listed_texts
from evalwright.formats.promptfoo.dependence import stored_as
from evalwright.formats.promptfoo.file import env_names
from evalwright.formats.promptfoo.http_settings import TOOL_NAMES
from evalwright.formats.promptfoo.kinds import CALL_MODELS, CHECKS, COMPARISONS, base_of, in_module
from evalwright.formats.promptfoo.origin import Origin
from evalwright.formats.promptfoo.prompts import AuthoredPrompt, allows
from evalwright.formats.promptfoo.providers import called_of, provider_kind
from evalwright.formats.promptfoo.sources import in_file
from evalwright.formats.promptfoo.templates import holds_template, is_cut, plain_names, template_mistake
from evalwright.formats.promptfoo.values import json_parse
from evalwright.formats.shared.javascript.characters import InvalidPattern
from evalwright.model.plan import Variant
from evalwright.model.snapshot import Case

__all__ = [
    "doubt_assertion",
    "doubt_cell",
    "doubt_columns",
    "doubt_environment",
    "doubt_guardrails",
    "doubt_prompts",
    "doubt_requests",
    "doubt_rubric",
    "doubt_threshold",
    "doubt_values",
    "doubt_variables",
]

_GIVEN = frozenset(("env", "_conversation", "prompt"))
"""Names in prompts that promptfoo fills in itself."""
_OF_REQUEST = ("url", "body", "headers", "queryParams")
"""Keys of an HTTP provider whose texts are templates."""
_CODE_TYPES = ("javascript", "python")
_OF_ASSERTIONS = frozenset(("output", "context", "metadata", "rubric", "completion"))
"""Names that templates of assertions may have besides."""
_NEEDS_VALUE = frozenset(
    (
        *in_module("texts"),
        *in_module("similarity"),
        *("javascript", "python", "similar", "similar:cosine", "similar:dot", "similar:euclidean"),
        *("factuality", "model-graded-factuality", "model-graded-closedqa", "g-eval", "context-recall"),
        *("tool-call-f1", "finish-reason", "skill-used", "trajectory:goal-success", "webhook"),
        *(in_module("trajectory") - {"trace-error-spans"}),
    )
)
_ANY = frozenset({"contains-any", "icontains-any"})
"""Types for which one of several texts is enough."""
_LISTS = _ANY | {"contains-all", "icontains-all"}
_NEEDS_THRESHOLD = frozenset({"latency", "cost"})
_NOT_TURNED = frozenset(
    (
        *("factuality", "model-graded-factuality", "model-graded-closedqa"),
        *("is-valid-openai-tools-call", "is-valid-function-call", "is-valid-openai-function-call"),
        *("trace-span-count", "trace-span-duration", "trace-error-spans"),
    )
)
"""Types on which `not-` has no effect."""
_SHARES = frozenset(
    (
        *in_module("similarity"),
        *CALL_MODELS,
        "tool-call-f1",
    )
) - {"levenshtein", "similar:dot", "similar:euclidean"}
"""Types whose threshold is a share."""
_JUDGED = {
    "llm-rubric": "output",
    "factuality": "completion",
    "model-graded-factuality": "completion",
    "model-graded-closedqa": "completion",
}
"""The name under which a `rubricPrompt` gets what is judged."""
_CODE = ("eval", "fn", "grade", "file")
"""Short forms of CSV files that are not types."""
_SINGLE_BRACES = re.compile(r"(?<![{$]){([^{}\s]+)}(?!})")
_TYPED = re.compile(r"(?:not-)?([a-z][a-z-]+)(?:\([\d.]+\))?:")


def doubt_prompts(
    prompts: Iterable[AuthoredPrompt], variants: Iterable[Variant], cases: Sequence[Case], origin: Origin
) -> None:
    """Warn of names in prompts that tests do not have, and of prompts that promptfoo does not render."""
    prompts, variants = list(prompts), list(variants)
    filters = variants[0].config.get("filters", {}) if variants else {}
    for raw in (str(prompt.get("raw", "")) for prompt in prompts):
        if is_cut(raw):
            origin.at("prompts").warn(f"{shorten(raw)}: a tag does not end on its line; the prompt is sent unrendered")
        elif reason := next(filter(None, (template_mistake(text, filters) for text in _rendered_texts(raw))), ""):
            origin.at("prompts").warn(f"{shorten(raw)}: no cell can have this prompt: {reason}")
    known = {str(key) for case in cases for key in case.input}
    texts = "\n".join(str(prompt.get("raw", "")) for prompt in prompts)
    for written in sorted(known.intersection(_SINGLE_BRACES.findall(texts))):
        origin.at("prompts").warn(f"{{{written}}} is sent unchanged; did you mean {{{{{written}}}}}?")
    if not _makes_variables(variants, cases):
        _doubt_names((str(prompt.get("raw", "")) for prompt in prompts), cases, origin.at("prompts"))


def _rendered_texts(raw: str) -> Iterator[str]:
    """What is rendered of a prompt: the texts in a JSON document, or else all of it."""
    try:
        yield from _texts_in(json_parse(raw))
    except (ValueError, RecursionError):
        yield raw


def doubt_requests(variants: Sequence[Variant], cases: Sequence[Case], origin: Origin) -> None:
    """Warn of names in the requests of HTTP providers that tests do not have."""
    if _makes_variables(variants, cases):
        return
    providers = [variant.config["provider"] for variant in variants]
    configs = [provider.get("config") or {} for provider in providers if provider_kind(called_of(provider)) == "http"]
    written = [text for config in configs for key in _OF_REQUEST for text in _texts_in(config.get(key))]
    prompts = [variant.config["prompt"].get("config") or {} for variant in variants]
    tools = [key for key in TOOL_NAMES if any(key in holder for holder in (*configs, *prompts))]
    _doubt_names(written, cases, origin.at("providers"), ("prompt", *tools))


def doubt_values(variants: Iterable[Variant], cases: Sequence[Case], origin: Origin) -> None:
    """Warn of names in the values of assertions that their tests do not have."""
    if _makes_variables(variants, cases):
        return
    judged = [(case, spec.config.get("assertion")) for case in cases for spec in case.evaluators or ()]
    lacking = Counter(
        name
        for case, assertion in judged
        if isinstance(assertion, dict)
        and isinstance(assertion.get("value"), str)
        and base_of(assertion["type"])[1] not in _CODE_TYPES
        for name in plain_names(assertion["value"]) - _GIVEN - _OF_ASSERTIONS - {*map(str, case.input)}
    )
    known = {str(key) for case in cases for key in case.input}
    for name in sorted({*lacking} - _stored_names(cases)):
        where = counted(lacking[name], "assertion")
        origin.at("tests").warn(
            f"the variable {name!r} of {where} is missing in its test{_nearest(name, known)}; "
            "it is rendered as an empty text"
        )


def doubt_guardrails(variants: Iterable[Variant], cases: Iterable[Case], origin: Origin) -> None:
    """Warn of guardrails of providers that cannot say whether anything was flagged."""
    if not any(_has_guardrails(spec.config.get("assertion")) for case in cases for spec in case.evaluators or ()):
        return
    providers = {called_of(provider): provider for provider in (variant.config["provider"] for variant in variants)}
    silent = [name for name, provider in providers.items() if _returns_only_output(name, provider.get("config") or {})]
    if silent:
        names = ", ".join(silent)
        origin.at("tests").warn(f"guardrails passes whatever the output of {names} is, which says only its output")


def _has_guardrails(assertion: Any) -> bool:
    if not isinstance(assertion, dict):
        return False
    return base_of(assertion["type"])[1] == "guardrails" or any(map(_has_guardrails, assertion.get("assert", ())))


def _returns_only_output(provider: str, config: Mapping[str, Any]) -> bool:
    kind = provider_kind(provider)
    return kind in ("echo", "exec") or (
        kind == "http" and not any(config.get(key) for key in ("transformResponse", "responseParser"))
    )


def doubt_variables(variables: Mapping[str, Any], origin: Origin) -> None:
    """Warn of assertions that are indented too far, so that they are a variable and judge nothing."""
    assertions = variables.get("assert")
    if (
        isinstance(assertions, list)
        and assertions
        and all(isinstance(assertion, dict) and "type" in assertion for assertion in assertions)
    ):
        origin.at("assert").warn("is a variable here and judges nothing; should it be beside vars?")


def _doubt_names(texts: Iterable[str], cases: Sequence[Case], origin: Origin, variables: Sequence[str] = ()) -> None:
    known = {*variables, *(str(key) for case in cases for key in case.input)}
    for name in sorted({name for text in texts for name in plain_names(text)} - _stored_names(cases) - _GIVEN):
        lacking = sum(name not in case.input for case in cases)
        if lacking:
            hint = "" if name in known else _nearest(name, known)
            of = f"{lacking:,} of {counted(len(cases), 'test')}"
            origin.warn(f"the variable {name!r} is missing in {of}{hint}; it is rendered as an empty text")


def _stored_names(cases: Iterable[Case]) -> set[str]:
    return {name for case in cases if (name := stored_as(case)) is not None}


def _makes_variables(variants: Iterable[Variant], cases: Iterable[Case]) -> bool:
    """Whether code adds variables to tests once they are run."""
    if any(variant.config.get("extensions") for variant in variants):
        return True
    return any(case.extra["promptfoo"].get("options", {}).get("transformVars") for case in cases)


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts_in(item)


def _nearest(name: str, known: Collection[str]) -> str:
    return did_you_mean(name, known) or (f" (there are: {', '.join(sorted(known))})" if known else "")


def doubt_environment(raw: Mapping[str, Any], known: Collection[str], origin: Origin) -> None:
    """Warn of variables of the environment that are not set."""
    for name in sorted({name for name in env_names(raw, with_default=False) if name not in known}):
        origin.warn(f"the environment variable {name} is not set; it is rendered as an empty text")


def doubt_columns(cases: Sequence[Case], variants: Sequence[Variant], origin: Origin) -> None:
    """Warn of tests that never run because they ask for prompts or providers that do not exist."""
    for key, part in (("prompts", "prompt"), ("providers", "provider")):
        columns = [variant.config[part] for variant in variants]
        lists = (case.extra["promptfoo"].get(key) for case in cases)
        for names in sorted(
            {tuple(map(str, names_listed)) for names_listed in lists if isinstance(names_listed, list)}
        ):
            if not any(allows([*names], column) for column in columns):
                known = {str(column[name]) for column in columns for name in ("label", "id") if column.get(name)}
                hint = "".join(did_you_mean(name, known) for name in names[:1])
                listed = ", ".join(names)
                origin.at("tests").warn(f"{key} {listed}: there are none of these{hint}; such tests are skipped")


def doubt_assertion(assertion: Mapping[str, Any], origin: Origin) -> None:
    """Warn of an assertion that can never be judged, or never hold."""
    base, value, threshold = base_of(assertion["type"])[1], assertion.get("value"), assertion.get("threshold")
    if assertion["type"] != base and base in _NOT_TURNED:
        origin.warn(f"{assertion['type']} is judged as {base}: promptfoo does not turn this type round")
    if base == "equals" and value is None:
        origin.warn(f"{assertion['type']} needs a value; without one no output is equal")
    elif base in _NEEDS_VALUE and value in (None, "", []) and base != "equals":
        origin.warn(f"{assertion['type']} needs a value; without one it is an error")
    elif base == "g-eval" and isinstance(value, list) and not all(isinstance(item, str) and item for item in value):
        origin.at("value").warn("every criterion must be a text; this assertion is an error")
    elif base == "llm-rubric" and isinstance(value, (bool, int, float)):
        origin.at("value").warn(f"expected text or a mapping, found {as_written(value)}; this assertion is an error")
    elif base in _LISTS and isinstance(value, list) and (parts := [item for item in value if _has_parts(item)]):
        origin.at("value").warn(f"expected texts, found {as_written(parts[0])}; a text with a colon needs quotes")
    elif base in _ANY and "" in listed_texts(value):
        always = "no output passes" if assertion["type"] != base else "every output passes"
        origin.at("value").warn(f"one of the texts is empty, and every output contains it: {always}")
    elif base in _NEEDS_THRESHOLD and threshold is None:
        origin.warn(f"{assertion['type']} needs a threshold; without one it is an error")
    elif base == "regex" and isinstance(value, str) and not holds_template(value) and (why := _mistake(value)):
        origin.at("value").warn(f"{value!r:.60} is not a pattern: {why}")
    elif base == "webhook" and not holds_template(str(value)) and not str(value).startswith(("https://", "http://")):
        origin.at("value").warn("expected an address, https://...; this assertion is an error")
    elif base == "moderation" and value and not isinstance(value, list):
        origin.at("value").warn(f"expected a list of categories, found {as_written(value)}; this assertion is an error")
    elif base in ("is-json", "contains-json") and (why := _schema_mistake(value)):
        origin.at("value").warn(f"is not a JSON Schema that can be used; each of its cells will be an error: {why}")
    elif base in ("javascript", "python") and _is_returned_line(base, value):
        origin.at("value").warn(
            "is a single line, and so an expression, which cannot begin with return: leave that out"
        )
    elif base in ("javascript", "python") and _returns_nothing(base, value):
        origin.at("value").warn(
            "has line breaks, so it is the body of a function, and returns nothing: this assertion fails"
        )
    if base in _SHARES and isinstance(threshold, (int, float)) and not 0 <= threshold <= 1:
        origin.at("threshold").warn(f"{assertion['type']} scores from 0 to 1, and the threshold is {threshold:g}")


def _has_parts(item: Any) -> bool:
    return isinstance(item, (dict, list))


def doubt_rubric(kind: str, prompt: Any, origin: Origin) -> None:
    """Warn of a prompt for judges that does not contain what they judge."""
    name = _JUDGED.get(base_of(kind)[1])
    text = str(prompt)
    if name and prompt is not None and not in_file(prompt) and not re.search(rf"{{[{{%][^}}]*\b{name}\b", text):
        origin.warn(f"the rubricPrompt {shorten(text)!r} has no {{{{{name}}}}}: the judge does not see the answer")


def doubt_threshold(threshold: Any, origin: Origin) -> None:
    """Warn of the threshold of a test or set that replaces its assertions and is always reached."""
    if threshold == 0 and not isinstance(threshold, bool):
        origin.at("threshold").warn("with a threshold of 0 it passes, also if its assertions fail")


def _is_returned_line(language: str, code: Any) -> bool:
    """Whether it is a `return`, which only the body of a function can have."""
    return isinstance(code, str) and not _is_body(language, code) and re.match(r"return\b", code) is not None


def _returns_nothing(language: str, code: Any) -> bool:
    if not isinstance(code, str) or in_file(code) or "return" in code:
        return False
    return _is_body(language, code)


def _is_body(language: str, code: str) -> bool:
    return "\n" in (code.rstrip() if language == "javascript" else code)


def _schema_mistake(value: Any) -> str:
    from evalwright.formats.promptfoo.ajv import validator_of
    from evalwright.formats.promptfoo.checks.structures import schema_of

    if isinstance(value, str) and holds_template(value):
        return ""
    try:
        if isinstance(schema := schema_of(value), dict):
            validator_of(schema)
    except (ValueError, TypeError, RecursionError) as error:
        return "" if holds_template(str(value)) else shorten(str(error))
    return ""


def doubt_cell(text: str) -> Iterator[str]:
    """Warnings about a cell of a CSV file that must be equalled although it looks like an assertion."""
    text = text.strip()
    required = f"the output must equal {text!r:.60}"
    if (kind := text.partition(":")[0]) in COMPARISONS:
        yield f"{kind!r} is no assertion in a CSV file: {required}"
    match = _TYPED.match(text)
    if match is not None and match[1] not in (*CHECKS, *_CODE) and (near := did_you_mean(match[1], CHECKS)):
        yield f"no assertion type {match[1]!r}{near}; {required}"


def _mistake(expression: str) -> str:
    from evalwright.formats.shared.javascript.patterns import pattern_of

    try:
        pattern_of(expression)
    except InvalidPattern as error:
        return str(error)
    return ""
