"""The assertions of a configuration, read into evaluators: their types, their places in a list, and their files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from evalwright.errors import did_you_mean
from evalwright.files.key_paths import Place, as_written
from evalwright.formats.promptfoo.checks.texts import listed_texts
from evalwright.formats.promptfoo.doubts import doubt_assertion, doubt_rubric, doubt_threshold
from evalwright.formats.promptfoo.kinds import (
    CHECKS,
    COMPARISONS,
    NODE_PACKAGES,
    SET,
    UNSUPPORTED,
    asked_of_judge,
    base_of,
    calls_judge,
)
from evalwright.formats.promptfoo.origin import Origin
from evalwright.formats.promptfoo.providers import Provider, Providers, unfit_grader
from evalwright.formats.promptfoo.shapes import ASSERTION, warn_of_others, what_fits
from evalwright.formats.promptfoo.sources import SCRIPTS, Sources, in_file, split_function
from evalwright.formats.promptfoo.tables import cell_number
from evalwright.formats.promptfoo.templates import holds_template
from evalwright.formats.promptfoo.values import as_javascript
from evalwright.model.plan import EvaluatorSpec

__all__ = ["Assertions", "AuthoredAssertion", "short_form"]

_LISTS = ("contains-any", "contains-all", "icontains-any", "icontains-all")
_THRESHOLDS = {
    "answer-relevance": 0.75, "context-faithfulness": 0.75, "context-recall": 0.75, "context-relevance": 0.75,
    "cost": 0.75, "latency": 0.75, "levenshtein": 0.75, "perplexity": 0.75, "perplexity-score": 0.75,
    "rouge-n": 0.75, "similar": 0.8,
}  # fmt: skip
"""Thresholds of the short form, if it names none."""
_CODE = re.compile(r"(javascript|fn|eval|python|grade|llm-rubric|file(?=://)):")
_TYPES = "|".join(sorted({*CHECKS, *UNSUPPORTED} - {"human"}, key=len, reverse=True))
_SHORT = re.compile(rf"(not-)?({_TYPES})(?:\((\d+(?:\.\d+)?)\))?(?::|$)")


class AuthoredAssertion(NamedTuple):
    """An assertion as it was written, and where."""

    raw: Any
    origin: Origin


def short_form(text: str) -> dict[str, Any]:
    """The assertion in one cell of a CSV file; a text without a type must be equalled."""
    text = text.strip()
    if code := _CODE.match(text):
        rest = text[code.end() :].strip()
        if code[1] == "file":
            return {"type": _kind_of_file(split_function(text)[0]), "value": text}
        kind = {"fn": "javascript", "eval": "javascript", "grade": "llm-rubric"}.get(code[1], code[1])
        return {"type": kind, "value": rest}
    match = _SHORT.match(text)
    if match is None:
        return {"type": "equals", "value": text}
    kind, value = match[2], text[match.end() :].strip()
    assertion: dict[str, Any] = {"type": f"{match[1] or ''}{kind}"}
    if kind in _LISTS:
        assertion["value"] = listed_texts(value)
    elif kind in ("latency", "cost"):
        pass
    elif value:
        assertion["value"] = value
    threshold: float | str | None = float(match[3]) if match[3] else _THRESHOLDS.get(kind)
    if kind in ("latency", "cost") and not match[3] and value:
        number = cell_number(value)
        threshold = value if number is None else number  # a text is then reported as a mistake in the threshold
    return assertion if threshold is None else {**assertion, "threshold": as_javascript(threshold)}


def _kind_of_file(name: str) -> str:
    """Code judges; the text of any other file must be equalled."""
    return "python" if name.endswith(".py") else "javascript" if name.endswith(SCRIPTS) else "equals"


class Assertions:
    """Reads lists of assertions; lists that several tests share are read and reported once.

    Graders may be named by the ids and labels of the suite's own providers, `known`; `providers` reads all others.
    """

    def __init__(self, sources: Sources, providers: Providers, known: Sequence[Provider]) -> None:
        self._sources = sources
        self.providers: Providers = providers
        self._known = {provider[key]: provider for key in ("label", "id") for provider in known}
        self._read: dict[int, tuple[Any, dict[str, Any] | None]] = {}
        self._specs: dict[tuple[int, int], EvaluatorSpec] = {}
        self._doubted: set[tuple[str, str]] = set()
        self._unfit: set[tuple[Place, str]] = set()
        self._lacking: set[str] = set()

    def need_judge(self, lists: Sequence[AuthoredAssertion]) -> bool:
        """Whether any of them needs a judge."""
        return any(calls_judge(assertion) for authored in lists for assertion in self._listed_assertions(authored))

    def specs(
        self, lists: Sequence[AuthoredAssertion], options: Mapping[str, Any], origin: Origin
    ) -> list[EvaluatorSpec]:
        """The evaluators of one test, in order, under the names that promptfoo's reports use."""
        assertions = [assertion for authored in lists for assertion in self._listed_assertions(authored)]
        for entry in assertions:
            prompt = entry.get("rubricPrompt", options.get("rubricPrompt"))
            if (kind := (entry["type"], str(prompt))) not in self._doubted:
                self._doubted.add(kind)
                doubt_rubric(entry["type"], prompt, origin)
        return [self._spec(assertion, i, options) for i, assertion in enumerate(assertions)]

    def _spec(self, assertion: dict[str, Any], number: int, options: Mapping[str, Any]) -> EvaluatorSpec:
        known = self._specs.get((id(assertion), number))
        if known is not None:
            return known
        judging = {key: options[key] for key in ("provider", "rubricPrompt", "factuality") if key in options}
        own = {"options": judging} if judging and calls_judge(assertion) else {}
        config = {"assertion": assertion, **own, **self._place(assertion)}
        spec = EvaluatorSpec(f"{assertion['type']}#{number}", _evaluator(assertion), config, called=assertion["type"])
        if not own:
            self._specs[id(assertion), number] = spec
        return spec

    def _place(self, assertion: Mapping[str, Any]) -> dict[str, Any]:
        return {"folder": str(self._sources.folder)} if _runs(assertion) else {}

    def _listed_assertions(self, authored: AuthoredAssertion) -> Iterator[dict[str, Any]]:
        raw = authored.raw
        if not isinstance(raw, list):
            authored.origin.report(f"assert: expected a list of assertions, found {as_written(raw)}")
            return
        for i, assertion in enumerate(raw):
            known = self._read.get(id(assertion))
            if known is None:
                known = self._read[id(assertion)] = (
                    assertion,
                    self._checked_assertion(assertion, authored.origin.at(i)),
                )
            if known[1] is not None:
                yield known[1]

    def _checked_assertion(self, assertion: Any, origin: Origin) -> dict[str, Any] | None:
        if not isinstance(assertion, dict):
            hint = f"; write {{type: {short_form(assertion)['type']}, ...}}" if isinstance(assertion, str) else ""
            origin.report(f"assert: expected a mapping with a type, found {as_written(assertion)}{hint}")
            return None
        warn_of_others(assertion, ASSERTION, origin)
        assertion = what_fits(given := assertion, ASSERTION, origin)
        kind = assertion.get("type")
        if kind is None:
            if given.get("type") is None:
                origin.report("assert: an assertion needs a type")
            return None
        _, base = base_of(kind)
        if not self._is_known(kind, base, origin):
            return None
        kept = {key: value for key, value in assertion.items() if key not in ("description", "name", "id")}
        if base == SET:
            return self._set(kept, origin)
        if kind == "select-best" and not kept.get("value"):
            origin.report("select-best needs a value: the criterion of the best")
            return None
        if "provider" in assertion:
            kept["provider"] = self.grader(assertion["provider"], origin.at("provider"))
            self._check_grader(kept["provider"], kind, origin.at("provider"))
        for key in ("transform", "contextTransform"):
            self._sources.code(assertion.get(key), origin.at(key))
        doubt_assertion(assertion, origin)
        return self._with_files(kept, base, origin)

    def _is_known(self, kind: str, base: str, origin: Origin) -> bool:
        place = origin.at("type")
        if (package := NODE_PACKAGES.get(base)) and not self._sources.has_package(package):
            if package not in self._lacking:
                self._lacking.add(package)
                place.report(
                    f"{kind} needs the package {package} of Node: `npm install {package}` in the suite's folder"
                )
            return False
        if base in CHECKS or kind in (SET, *COMPARISONS):
            return True
        if base.startswith("promptfoo:redteam") or base in ("redteam",):
            place.report(f"{kind!r} is of promptfoo's red team, which is not supported")
        elif base in UNSUPPORTED:
            place.report(f"the assertion type {kind!r} is not supported: {UNSUPPORTED[base]}")
        else:
            place.report(
                f"unknown assertion type {kind!r}{did_you_mean(base, (*CHECKS, SET, *COMPARISONS, *UNSUPPORTED))}"
            )
        return False

    def _set(self, assertion: dict[str, Any], origin: Origin) -> dict[str, Any]:
        members = list(self._listed_assertions(AuthoredAssertion(assertion.get("assert"), origin.at("assert"))))
        doubt_threshold(assertion.get("threshold"), origin)
        if not members:
            origin.warn("a set without assertions passes whatever the output is")
        for i, member in enumerate(members):
            if member["type"] in COMPARISONS:
                origin.at("assert", i).report(f"{member['type']} compares whole tests: it cannot be in a set")
        return {**assertion, "assert": members}

    def grader(self, raw: Any, origin: Origin) -> Any:
        """The grader in an assertion or in a test's options: a provider, or one for each kind of call."""
        if (
            isinstance(raw, dict)
            and "id" not in raw
            and {"text", "embedding", "classification", "moderation"} & raw.keys()
        ):
            return {key: self._grader(_without_settings(provider), origin.at(key)) for key, provider in raw.items()}
        return self._grader(raw, origin)

    def check_grader(self, grader: Any, lists: Sequence[AuthoredAssertion], origin: Origin) -> None:
        """Warn of the grader of a test, unless it can produce what those assertions want that have none of their
        own."""
        waiting = [assertion for authored in lists for assertion in self._listed_assertions(authored)]
        while waiting:
            assertion = waiting.pop()
            if assertion["type"] == SET:
                waiting += assertion["assert"]
            elif not assertion.get("provider"):
                self._check_grader(grader, assertion["type"], origin)

    def _check_grader(self, grader: Any, kind: str, origin: Origin) -> None:
        for wanted in asked_of_judge(kind) if isinstance(grader, dict) and None not in grader.values() else ():
            reason = unfit_grader(grader, wanted)
            if reason and (origin.place, reason) not in self._unfit:
                self._unfit.add((origin.place, reason))
                origin.warn(f"{kind}: {reason}; such an assertion is an error")

    def _grader(self, raw: Any, origin: Origin) -> Provider | None:
        known = self._known.get(raw) if isinstance(raw, str) else None
        return self.providers.grader(raw, origin) if known is None else known

    def rubric(self, raw: Any, origin: Origin) -> Any:
        """The `rubricPrompt` at `origin`, or each of several, with the text of its file; code stays in its file."""
        return self._rubric(raw, origin.at("rubricPrompt"))

    def _rubric(self, raw: Any, place: Origin) -> Any:
        if isinstance(raw, dict):
            return {key: self._rubric(rubric, place.at(key)) for key, rubric in raw.items()}
        if isinstance(raw, list):
            return [self._rubric(rubric, place.at(i)) for i, rubric in enumerate(raw)]
        if not in_file(raw) or holds_template(raw):
            return raw
        path, _ = split_function(raw)
        if path.endswith(".py"):
            place.report("a prompt for judges cannot be made by Python: expected text, or a file of text or JavaScript")
        elif (file := self._sources.path(path, place)) is not None:
            return raw if path.endswith(SCRIPTS) else self._sources.text(file, place)
        return None

    def _with_files(self, assertion: dict[str, Any], base: str, origin: Origin) -> dict[str, Any] | None:
        if assertion.get("rubricPrompt") is not None:
            assertion["rubricPrompt"] = self.rubric(assertion["rubricPrompt"], origin)
        value, place = assertion.get("value"), origin.at("value")
        if isinstance(value, list):
            return self._with_listed_files(assertion, value, place)
        if not in_file(value) or holds_template(str(value)):
            return assertion
        path, _ = split_function(str(value))
        if base in ("javascript", "python") and not self._sources.matches(path):
            what = "is an error" if base == "javascript" else "fails"
            place.warn(f"there is no file {path!r}: this assertion {what}")
            return assertion
        file = self._sources.path(path, place)
        if file is None:
            return None
        if not path.endswith(SCRIPTS):
            assertion |= {"value": self._file_content(file, place), "as_is": True}
        return assertion

    def _with_listed_files(self, assertion: dict[str, Any], values: list[Any], origin: Origin) -> dict[str, Any]:
        """The elements of a list that name files become what is in them; unlike a value by itself, never code."""
        contents: dict[int, Any] = {}
        for i, value in enumerate(values):
            if in_file(value) and (file := self._sources.path(value, origin.at(i))) is not None:
                if file.suffix in SCRIPTS:
                    origin.at(i).report(
                        f"an element of a list cannot be code: expected text or data, found {as_written(value)}"
                    )
                contents[i] = self._file_content(file, origin.at(i))
        if not contents:
            return assertion
        merged = [contents.get(i, value) for i, value in enumerate(values)]
        return assertion | {"value": merged, "as_is": list(contents)}

    def _file_content(self, path: Path, origin: Origin) -> Any:
        if path.suffix in (".json", ".yaml", ".yml"):
            document = self._sources.document(path, origin)
            return None if document is None else as_javascript(document.value)
        return self._sources.text(path, origin).strip()


def _without_settings(grader: Any) -> Any:
    """One of a mapping of graders: an id without settings means the same as the id alone."""
    return grader["id"] if isinstance(grader, dict) and grader.keys() == {"id"} else grader


def _evaluator(assertion: Mapping[str, Any]) -> str:
    return "promptfoo_comparison" if assertion["type"] in COMPARISONS else "promptfoo"


def _runs(assertion: Mapping[str, Any]) -> bool:
    """Whether judging it runs code, or looks for files."""
    if assertion["type"] == SET:
        return any(map(_runs, assertion["assert"]))
    runs = base_of(assertion["type"])[1] in ("javascript", "python", *NODE_PACKAGES)
    code = runs or assertion.get("transform") is not None
    return code or in_file(assertion.get("value")) or calls_judge(assertion)
