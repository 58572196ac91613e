"""promptfoo configurations: prompts × providers × tests, read unchanged."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from evalwright.errors import InputError, did_you_mean
from evalwright.files.masker import may_be_secret
from evalwright.formats.promptfoo import FORMAT
from evalwright.formats.promptfoo.arithmetic import mistake_in
from evalwright.formats.promptfoo.assertions import Assertions
from evalwright.formats.promptfoo.cases import Tests
from evalwright.formats.promptfoo.columns import columns
from evalwright.formats.promptfoo.dependence import remembers, stored_as, with_dependence
from evalwright.formats.promptfoo.doubts import doubt_columns, doubt_environment, doubt_prompts
from evalwright.formats.promptfoo.file import env_names, mapping_of, resolved, with_environment
from evalwright.formats.promptfoo.kinds import COMPARISONS
from evalwright.formats.promptfoo.node_needs import places_for_node
from evalwright.formats.promptfoo.origin import Origin
from evalwright.formats.promptfoo.prompts import prompts_of
from evalwright.formats.promptfoo.providers import Provider, providers_of
from evalwright.formats.promptfoo.recorded_results import must_be_results
from evalwright.formats.promptfoo.references import unknown_names
from evalwright.formats.promptfoo.selection import chosen_columns, chosen_tests
from evalwright.formats.promptfoo.sources import Sources
from evalwright.formats.shared.environment import literal_secrets
from evalwright.formats.shared.findings import Findings, kind_found
from evalwright.model.plan import Plugin, RunSettings, Variant
from evalwright.model.snapshot import Case
from evalwright.model.suite import Suite
from evalwright.sandbox.workers import NEEDS_NODE, has_node
from evalwright.session import environment, learn

__all__ = ["load"]

_KEYS = (
    "description", "prompts", "providers", "targets", "tests", "scenarios", "defaultTest", "env", "evaluateOptions",
    "derivedMetrics", "nunjucksFilters", "assertionTemplates", "extensions", "commandLineOptions",
)  # fmt: skip
_WITHOUT_EFFECT = (
    "$schema", "tags", "sharing", "outputPath", "metadata", "tracing", "writeLatestResults",
)  # fmt: skip
_COMMAND_LINE = ("maxConcurrency", "repeat", "delay", "filterRange", "filterSample", "filterSampleSeed")
"""Keys of `commandLineOptions` that are read; the others are of promptfoo's own terminal, cache and server."""
_REFUSED = ("redteam", "plugins", "strategies")
_CONCURRENT = 4
_SHOWN = 200
"""Tests that `config.yaml` of a run holds as they are."""
_PASS_RATE = "PROMPTFOO_PASS_RATE_THRESHOLD"


def load(path: Path, variables: Mapping[str, str], *, to_run: bool = True, **options: Any) -> Suite:
    """The suite in a configuration. Raises InputError with every problem."""
    folder = path.resolve().parent
    document, raw = mapping_of(path, folder)
    return _Reading(path, raw, Findings(path, document), options, variables).suite()


class _Reading:
    """One reading of one configuration, gathering its problems."""

    def __init__(
        self,
        path: Path,
        raw: dict[str, Any],
        findings: Findings,
        options: Mapping[str, Any],
        variables: Mapping[str, str],
    ) -> None:
        self._path, self._findings, self._options = path, findings, options
        self._origin = Origin(findings)
        if not isinstance(raw.get("env", {}), dict):
            self._origin.at("env").tell(f"env: expected a mapping of variables, found {kind_found(raw['env'])}")
        self._own = {str(key): str(value) for key, value in _mapping(raw.get("env")).items()}
        known = {**environment(), **variables, **self._own}
        self._own = {key: with_environment(value, known) for key, value in self._own.items()}
        self._known = {**known, **self._own}
        self._taken = {
            name: self._known[name] for name in env_names(raw) if name in self._known and name not in self._own
        }
        raw = resolved(raw, raw, self._origin)
        self._raw: dict[str, Any] = with_environment({k: v for k, v in raw.items() if k != "env"}, self._known)
        self._running = {**_mapping(self._raw.get("evaluateOptions")), **_mapping(self._raw.get("commandLineOptions"))}
        self._sources = Sources(path.resolve().parent, options.get("allow_outside", ()))

    def suite(self) -> Suite:
        raw, origin = self._raw, self._origin
        self._keys()
        learn(self._own)
        prompts = prompts_of(raw.get("prompts"), self._sources, origin.at("prompts"))
        providers = self._providers()
        assertions = Assertions(self._sources, raw)
        tests = Tests(raw, self._sources, assertions, origin)
        cases = tests.cases()
        for message in unknown_names(cases, prompts, providers):
            origin.at("tests" if raw.get("tests") else "scenarios").tell(message)
        cases = chosen_tests(cases, {**self._filters(), **self._options})
        prompts = chosen_columns(prompts, "--filter-prompts", self._options.get("filter_prompts"))
        providers = chosen_columns(providers, "--filter-providers", self._options.get("filter_providers"))
        in_turn = any(map(remembers, prompts)) or any(map(stored_as, cases))
        cases = with_dependence(cases, prompts) if in_turn else cases
        settings = self._settings(in_turn)
        variants = [self._limited(one) for one in columns(prompts, providers, self._shared())]
        if not variants and providers:
            origin.at("prompts").tell("no prompt for any provider: expected at least one, so that something is asked")
        self._check_comparisons(cases, variants)
        if unjudged := sum(not case.evaluators for case in cases):
            origin.warn(f"{unjudged} of {len(cases)} tests have no assertions: they pass whatever the output is")
        doubt_prompts(prompts, cases, origin)
        doubt_environment(raw, self._known, origin)
        doubt_columns(cases, variants, origin)
        if (cached := self._options.get("cached")) is not None:
            variants = _replaying(variants, cached, settings.trials)
        self._check_derived()
        if not has_node() and (places := places_for_node(variants, cases)):
            origin.tell(f"{places} places need Node. {NEEDS_NODE}", absent=True)
        self._findings.refuse(f"Invalid suite {self._path}")
        return Suite(
            name=_name(self._path),
            dialect=FORMAT.name,
            source=self._path,
            cases=cases,
            variants=variants,
            evaluators=[],
            evaluators_by_case=True,
            run=settings,
            gate=self._gate(),
            exports=self._exports(),
            document=self._document(),
            secrets={**literal_secrets({**raw, "env": self._own}), **self._secrets()},
            warnings=self._findings.warnings,
            files=self._sources.used,
            empty="loaded" if tests.skipped else "refused",
            metadata=self._metadata(),
        )

    def _keys(self) -> None:
        raw, origin = self._raw, self._origin
        for key in _REFUSED:
            if key in raw:
                origin.at(key).tell(f"{key!r} is of promptfoo's red team, which is not supported")
        for key in raw:
            if key == "assert":
                origin.at(key).warn("a list of assertions up here is never read: write defaultTest.assert")
            elif key in _WITHOUT_EFFECT:
                hint = "; use --out" if key == "outputPath" else ""
                origin.at(key).warn(f"this key has no effect here{hint}")
            elif key == "extensions":
                origin.at(key).warn("extensions are not called")
            elif key not in (*_KEYS, *_REFUSED) and not key.startswith("x-"):
                origin.at(key).warn(f"nothing reads this key{did_you_mean(key, _KEYS)}")

        for key in _mapping(raw.get("commandLineOptions")):
            if key not in _COMMAND_LINE:
                origin.at("commandLineOptions", key).warn("this key has no effect here")

    def _filters(self) -> dict[str, Any]:
        """The filters that the configuration itself asks for; those of the command line go before them."""
        found: dict[str, Any] = {}
        if (text := self._running.get("filterRange")) is not None:
            found["filter_range"] = str(text)
        if "filterSample" in self._running:
            found["filter_sample"] = self._count("filterSample", 1)
        if "filterSampleSeed" in self._running:
            found["filter_sample_seed"] = self._count("filterSampleSeed", 0, least=0)
        return found

    def _check_comparisons(self, cases: Sequence[Case], variants: Sequence[Variant]) -> None:
        """Tell of assertions that compare columns where there is nothing to compare; each once, however many tests."""
        kinds = {frozenset(str(spec.called) for spec in case.evaluators or ()) for case in cases}
        for kind in sorted(COMPARISONS & frozenset().union(*kinds)):
            if len(variants) == 1:
                self._origin.tell(f"{kind} compares the outputs of several prompts or providers: there is one column")
        if any("max-score" in found and found <= COMPARISONS for found in kinds):
            self._origin.tell("max-score needs another assertion in the same test, whose score it goes by")

    def _check_derived(self) -> None:
        listed = self._raw.get("derivedMetrics")
        for i, one in enumerate(listed if isinstance(listed, list) else []):
            origin = self._origin.at("derivedMetrics", i)
            if not isinstance(one, dict) or not isinstance(one.get("name"), str):
                origin.tell(f"expected a mapping with name and value, found {one!r:.60}")
            elif (mistake := mistake_in(str(one.get("value")))) is not None:
                origin.at("value").tell(mistake)

    def _providers(self) -> list[Provider]:
        raw, origin = self._raw, self._origin
        if raw.get("providers") and raw.get("targets"):
            origin.at("targets").tell("targets are providers: expected one of the two keys, found both")
        key = "providers" if raw.get("providers") else "targets"
        if not raw.get(key):
            if "redteam" not in raw:
                strange = (one for one in raw if one not in _KEYS and did_you_mean(one, ("providers", "targets")))
                hint = "".join(f"; should {one!r} be 'providers'?" for one in islice(strange, 1))
                origin.tell(f"no providers: expected the key providers (or targets) with what is to be asked{hint}")
            return []
        return providers_of(raw[key], self._sources, origin.at(key))

    def _shared(self) -> dict[str, Any]:
        filters = _mapping(self._raw.get("nunjucksFilters"))
        for name, named in filters.items():
            self._sources.path(str(named), self._origin.at("nunjucksFilters", name))
        return {
            "folder": str(self._sources.folder),
            **({"allow_outside": self._sources.allowed} if self._sources.allowed else {}),
            **({"filters": filters} if filters else {}),
            **({"env": self._own} if self._own else {}),
        }

    def _settings(self, in_turn: bool) -> RunSettings:
        most = self._options.get("max_concurrency") or self._count("maxConcurrency", _CONCURRENT)
        trials = self._options.get("repeat") or self._count("repeat", 1)
        if in_turn or self._milliseconds("delay"):
            most = 1
        return RunSettings(max_concurrency=most, trials=trials, evaluator_timeout_seconds=600.0)

    def _limited(self, variant: Variant) -> Variant:
        """The variant with the time limit and the delay that the options set for all calls."""
        if limit := self._milliseconds("timeoutMs"):
            variant = msgspec.structs.replace(variant, timeout_seconds=limit / 1000)
        if delay := self._milliseconds("delay"):
            provider = {"delay": delay, **variant.config["provider"]}
            variant = msgspec.structs.replace(variant, config={**variant.config, "provider": provider})
        return variant

    def _milliseconds(self, key: str) -> float:
        value = self._running.get(key, 0)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
            self._option(key).tell(f"{key}: expected milliseconds, a number from 0, found {value!r}")
            return 0
        return value

    def _option(self, key: str) -> Origin:
        own = _mapping(self._raw.get("commandLineOptions"))
        return self._origin.at("commandLineOptions" if key in own else "evaluateOptions", key)

    def _count(self, key: str, default: int, least: int = 1) -> int:
        value = self._running.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            self._option(key).tell(f"{key}: expected a whole number from {least}, found {value!r}")
            return default
        return value

    def _gate(self) -> dict[str, Any] | None:
        given = self._known.get(_PASS_RATE)
        if given is None:
            return None
        try:
            return {"kind": "promptfoo", "pass_rate": float(given)}
        except ValueError:
            raise InputError(f"{_PASS_RATE}: expected a percentage, found {given!r}") from None

    def _document(self) -> dict[str, Any]:
        """What is kept of the configuration; many tests by their hash only, as they are stored as cases."""
        kept = {**self._raw, **({"env": self._own} if self._own else {})}
        tests = kept.get("tests")
        if isinstance(tests, list) and len(tests) > _SHOWN:
            kept["tests"] = {"count": len(tests), "sha256": _digest(tests)}
        return kept

    def _exports(self) -> list[Plugin]:
        path = self._options.get("output")
        if path is None:
            return []
        if path.suffix != ".json":
            raise InputError(f"--output: expected a file that ends with .json, found {str(path)!r}")
        return [Plugin("promptfoo_results", {"path": str(path.absolute())})]

    def _metadata(self) -> dict[str, Any]:
        raw = self._raw
        kept = {"description": raw["description"]} if raw.get("description") else {}
        return {**kept, **({"derived_metrics": raw["derivedMetrics"]} if raw.get("derivedMetrics") else {})}

    def _secrets(self) -> dict[str, str]:
        return {name: value for name, value in self._taken.items() if may_be_secret(value)}


def _replaying(variants: Sequence[Variant], path: Path, trials: int) -> list[Variant]:
    """The columns with the outputs that promptfoo recorded for each."""
    must_be_results(path)
    place = {"path": str(path.absolute()), "trials": trials}
    return [
        msgspec.structs.replace(one, config={**one.config, "cached": {**place, "column": i}})
        for i, one in enumerate(variants)
    ]


def _digest(tests: Sequence[Any]) -> str:
    """SHA-256 (hex) of the tests as one list in JSON, of which no more than one test is made at a time."""
    found = hashlib.sha256(b"[")
    for i, test in enumerate(tests):
        text = json.dumps(test, sort_keys=True, default=str)
        found.update((f", {text}" if i else text).encode(errors="surrogatepass"))
    found.update(b"]")
    return found.hexdigest()


def _name(path: Path) -> str:
    stem = path.stem
    return path.resolve().parent.name or stem if stem == "promptfooconfig" else stem


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
