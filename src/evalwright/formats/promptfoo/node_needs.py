"""How much of a configuration is JavaScript, for users without Node."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from evalwright.formats.promptfoo.javascript_code import needs_node
from evalwright.formats.promptfoo.kinds import NODE_PACKAGES, SET, base_of
from evalwright.formats.promptfoo.providers import called_of, provider_kind
from evalwright.formats.promptfoo.sources import in_file, split_function
from evalwright.formats.promptfoo.templates import holds_template
from evalwright.model.plan import Variant
from evalwright.model.snapshot import Case

__all__ = ["places_for_node"]

_BY_NODE = re.compile(r"exec: *(\S*/)?(node|npm|npx|tsx)(\s|\Z)")
_CODE = "1 + 1"
"""Stands for code that only Node can run."""


def places_for_node(variants: Iterable[Variant], cases: Iterable[Case], extensions: Iterable[str]) -> int:
    """The number of prompts, providers, transforms, assertions and extensions that Node must run."""
    count = sum(map(_is_javascript, extensions))
    count += sum(sum(map(_is_javascript, _codes_of(variant.config))) for variant in variants)
    seen: set[int] = set()
    for case in cases:
        if id(case.evaluators) in seen:
            continue
        seen.add(id(case.evaluators))
        own = case.extra["promptfoo"]
        options = own.get("options", {})
        codes = [options.get(key) for key in ("transform", "postprocess", "transformVars")]
        codes += _codes_of_provider(own["provider"]) if own.get("provider") else ()
        codes += [spec.config.get("function") for spec in case.evaluators or ()]
        count += sum(map(_is_javascript, codes))
        for spec in case.evaluators or ():
            if "assertion" in spec.config:
                count += sum(map(_is_javascript, _codes_in(spec.config["assertion"])))
    return count


def _codes_of(config: Mapping[str, Any]) -> Iterator[Any]:
    yield from _codes_of_provider(config["provider"])
    yield from (f"file://{str(named).removeprefix('file://')}" for named in config.get("filters", {}).values())
    if "function" in config["prompt"]:
        yield f"file://{config['prompt']['function'][0]}"


def _codes_of_provider(provider: Mapping[str, Any]) -> Iterator[Any]:
    if provider_kind(called_of(provider)) == "javascript" or _BY_NODE.match(called_of(provider)):
        yield "file://provider.js"
    yield provider.get("transform")
    inner = provider.get("config", {})
    yield inner.get("transformResponse", inner.get("responseParser"))
    yield inner.get("validateStatus")
    yield inner.get("transformRequest")


def _codes_in(assertion: Mapping[str, Any]) -> Iterator[Any]:
    yield assertion.get("transform")
    yield assertion.get("contextTransform")
    kind = base_of(assertion["type"])[1]
    if kind == SET:
        for member in assertion["assert"]:
            yield from _codes_in(member)
    elif kind in NODE_PACKAGES:
        yield _CODE
    elif kind == "javascript":
        value = assertion.get("value")
        yield value if in_file(value) else _CODE
    elif any(map(_beyond_python, _patterns_in(kind, assertion.get("value")))):
        yield _CODE


def _patterns_in(kind: str, value: Any) -> Iterator[tuple[str, str]]:
    """The regular expressions in a value, and their flags."""
    if kind == "regex" and isinstance(value, str) and not holds_template(value):
        yield value, ""
    elif kind in ("is-json", "contains-json") and isinstance(value, dict):
        from evalwright.formats.promptfoo.ajv import patterns_in

        yield from ((pattern, "u") for pattern in patterns_in(value))


def _beyond_python(pattern: tuple[str, str]) -> bool:
    """Whether Python's `re` cannot search as JavaScript would. Invalid patterns are reported by the check itself."""
    from evalwright.formats.shared.javascript.characters import InvalidPattern
    from evalwright.formats.shared.javascript.patterns import pattern_of

    try:
        return bool(pattern_of(*pattern).beyond)
    except InvalidPattern:
        return False


def _is_javascript(code: Any) -> bool:
    if not isinstance(code, str) or not code:
        return False
    return not split_function(code)[0].endswith(".py") if in_file(code) else needs_node(code)
