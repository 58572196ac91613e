"""One test of a configuration as cases: defaults merged, lists of values multiplied out."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from evalwright.files.plain import mapping_or_empty
from evalwright.formats.promptfoo.assertions import Assertions, AuthoredAssertion
from evalwright.formats.promptfoo.doubts import doubt_threshold
from evalwright.formats.promptfoo.origin import Origin
from evalwright.formats.promptfoo.sources import Sources, in_file, split_function
from evalwright.formats.promptfoo.switches import is_on
from evalwright.model.plan import EvaluatorSpec
from evalwright.model.snapshot import Case

__all__ = ["AuthoredTest", "TestExpansion"]

_SCORING = "assertScoringFunction"
_SWITCHES = {
    "disableConversationVar": "PROMPTFOO_DISABLE_CONVERSATION_VAR",
    "disableVarExpansion": "PROMPTFOO_DISABLE_VAR_EXPANSION",
}
"""Options that variables of the environment turn on for all tests."""


class AuthoredTest(NamedTuple):
    raw: dict[str, Any]
    origin: Origin
    talk: str | None = None
    """The conversation of a scenario's tests, if they name none."""


class TestExpansion:
    """Makes cases of tests, each completed by `defaultTest`."""

    def __init__(self, default: AuthoredTest, sources: Sources, assertions: Assertions) -> None:
        self._default, self._sources, self._assertions = default, sources, assertions
        self._read: dict[tuple[str, int], tuple[Any, Any]] = {}
        self._switched = {option: True for option, variable in _SWITCHES.items() if is_on(variable)}

    def cases(self, test: AuthoredTest, first: int) -> Iterator[Case]:
        """The cases of a test, one for each combination of its values, numbered from `first`."""
        raw, default, origin = test.raw, self._default.raw, test.origin
        doubt_threshold(raw.get("threshold"), origin)
        options = {**mapping_or_empty(default.get("options")), **mapping_or_empty(raw.get("options")), **self._switched}
        variables = {**mapping_or_empty(default.get("vars")), **mapping_or_empty(raw.get("vars"))}
        # promptfoo reads a test's own options here, but has already merged the defaults into those of a scenario's
        # tests.
        settings = raw.get("options") if test.talk is None else options
        drops = any(mapping_or_empty(section).get("disableDefaultAsserts") is True for section in (raw, settings))
        if (rubric := options.get("rubricPrompt")) is not None:
            place = self._place(raw.get("options"), "rubricPrompt", origin).at("options")
            options["rubricPrompt"] = self._once("rubricPrompt", rubric, self._assertions.rubric, place)
        lists = (
            []
            if drops or "assert" not in default
            else [AuthoredAssertion(default["assert"], self._default.origin.at("assert"))]
        )
        if raw.get("assert") is not None:
            lists.append(AuthoredAssertion(raw["assert"], origin.at("assert")))
        if not self._assertions.need_judge(lists):
            options.pop("provider", None)  # promptfoo does not read the judge of a test that needs none
        elif (grader := options.get("provider")) is not None:
            place = self._place(raw.get("options"), "provider", origin).at("options", "provider")
            options["provider"] = self._once("grader", grader, self._assertions.grader, place)
            self._assertions.check_grader(options["provider"], lists, place)
        elif graders := self._assertions.providers.default_graders(origin):
            options["provider"] = graders
        specs = self._assertions.specs(lists, options, origin)
        extra = self._extra(raw, options, origin) | ({} if test.talk is None else {"talk": test.talk})
        scoring = self._scoring(raw, origin)
        specs += scoring if specs else []  # a test without assertions passes, whatever the function would say
        metadata = {**mapping_or_empty(default.get("metadata")), **mapping_or_empty(raw.get("metadata"))}
        description = raw.get("description", default.get("description"))
        expands = options.get("disableVarExpansion") is not True
        for i, values in enumerate(_combinations(variables, self._sources, origin.at("vars"), expands=expands), first):
            yield Case(
                f"test-{i}",
                values,
                metadata=metadata,
                description=None if description is None else str(description),
                extra={"promptfoo": extra},
                evaluators=specs,
            )

    def _extra(self, raw: Mapping[str, Any], options: Mapping[str, Any], origin: Origin) -> dict[str, Any]:
        """What target and verdict need from the test, as plain data."""
        extra: dict[str, Any] = {}
        kept = {key: value for key, value in options.items() if key != "provider"}
        if kept:
            extra["options"] = kept
        for key in ("threshold", "provider", "prompts", "providers"):
            value = raw.get(key, self._default.raw.get(key))
            if value is not None:
                extra[key] = value
        if "provider" in extra:
            place = self._place(raw, "provider", origin).at("provider")
            extra["provider"] = self._once("provider", extra["provider"], self._assertions.providers.of_test, place)
        if "providerOutput" in raw:
            extra["provider_output"] = raw["providerOutput"]
        return extra

    def _place(self, own: Any, key: str, origin: Origin) -> Origin:
        """Where the value of a test's key is: in the test itself, or in `defaultTest`."""
        return origin if key in mapping_or_empty(own) else self._default.origin

    def _scoring(self, raw: Mapping[str, Any], origin: Origin) -> list[EvaluatorSpec]:
        named = raw.get(_SCORING, self._default.raw.get(_SCORING))
        if named is None:
            return []
        place = self._place(raw, _SCORING, origin).at(_SCORING)
        if self._once(_SCORING, split_function(named)[0], self._sources.path, place) is None:
            return []
        threshold = raw.get("threshold", self._default.raw.get("threshold"))
        config = {"function": named, "folder": str(self._sources.folder), "threshold": threshold}
        return [EvaluatorSpec(_SCORING, "promptfoo_scoring", config, called=_SCORING)]

    def _once(self, key: str, value: Any, read: Callable[[Any, Origin], Any], origin: Origin) -> Any:
        """What a value means. A value that tests share, such as one of `defaultTest`, is read and reported once."""
        known = self._read.get((key, id(value)))
        if known is None:
            known = self._read[key, id(value)] = (value, read(value, origin))
        return known[1]


def _combinations(
    variables: Mapping[str, Any], sources: Sources, origin: Origin, *, expands: bool
) -> Iterator[dict[str, Any]]:
    """One set of variables for each combination of the values in lists of strings and in file patterns, the last
    variable fastest; if they do not expand, the variables as they are. Files that do not exist are reported."""
    if not expands:
        for name, value in variables.items():
            sources.code(value, origin.at(name))
        yield dict(variables)
        return
    choices = [_choices(value, sources, origin.at(name)) for name, value in variables.items()]
    for values in itertools.product(*choices):
        yield dict(zip(variables, values, strict=True))


def _choices(value: Any, sources: Sources, origin: Origin) -> list[Any]:
    if isinstance(value, list) and value and isinstance(value[0], str):
        return [file for item in value for file in _files(item, sources, origin)]
    return _files(value, sources, origin)


def _files(value: Any, sources: Sources, origin: Origin) -> list[Any]:
    if not in_file(value) or "{{" in value:
        return [value]
    path, _ = split_function(value)
    paths = list(sources.paths(path, origin))
    if not paths or os.path.isfile(sources.folder / path):
        return [value]
    return [f"file://{os.path.relpath(path, sources.folder)}" for path in paths]
