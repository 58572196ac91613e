"""promptfoo configurations: prompts × providers × tests, read unchanged."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from math import isfinite, nan
from pathlib import Path
from typing import Any

from evalwright.errors import InputError, did_you_mean
from evalwright.files.dotenv import read_env_files, unread_lines
from evalwright.files.key_paths import as_written
from evalwright.files.masker import may_be_secret, secrets_in
from evalwright.formats.promptfoo import FORMAT
from evalwright.formats.promptfoo.assertions import Assertions
from evalwright.formats.promptfoo.before_all import HookedParts, after_before_all
from evalwright.formats.promptfoo.cases import Tests
from evalwright.formats.promptfoo.columns import AuthoredColumns, columns
from evalwright.formats.promptfoo.config_mistakes import check_comparisons, check_derived, check_keys
from evalwright.formats.promptfoo.content_counts import content_counts
from evalwright.formats.promptfoo.dependence import remembers, stored_as, which_relies, with_dependence
from evalwright.formats.promptfoo.doubts import (
    doubt_columns,
    doubt_environment,
    doubt_guardrails,
    doubt_prompts,
    doubt_requests,
    doubt_values,
)
from evalwright.formats.promptfoo.extensions import AFTER_EACH, BEFORE_EACH, concerned
from evalwright.formats.promptfoo.file import env_names, own_environment, resolved, with_environment
from evalwright.formats.promptfoo.joined import joined_configuration
from evalwright.formats.promptfoo.node_needs import places_for_node
from evalwright.formats.promptfoo.numbering import with_places
from evalwright.formats.promptfoo.origin import Origin
from evalwright.formats.promptfoo.prompts import AuthoredPrompt, prompts_of
from evalwright.formats.promptfoo.providers import Provider, Providers, can_be_called, without_values
from evalwright.formats.promptfoo.recorded_results import replaying
from evalwright.formats.promptfoo.references import unknown_names
from evalwright.formats.promptfoo.run_settings import RunningOptions, env_files
from evalwright.formats.promptfoo.selection import chosen_columns, chosen_tests
from evalwright.formats.promptfoo.shapes import CONFIG, what_fits
from evalwright.formats.promptfoo.sources import Sources
from evalwright.formats.shared.environment import literal_secrets
from evalwright.formats.shared.findings import Findings
from evalwright.model.plan import EvaluatorSpec, Plugin, Variant
from evalwright.model.snapshot import Case
from evalwright.model.suite import Suite
from evalwright.sandbox.workers import NEEDS_NODE, has_node
from evalwright.session import environment, learn, process_environment

__all__ = ["load"]

_SHOWN = 200
"""Tests that a run's `config.yaml` contains unchanged."""
_PASS_RATE = "PROMPTFOO_PASS_RATE_THRESHOLD"
_FAILED_CODE = "PROMPTFOO_FAILED_TEST_EXIT_CODE"


def load(path: Path, variables: Mapping[str, str], *, to_run: bool = True, **options: Any) -> Suite:
    """The suite in a configuration. Raises InputError with every problem."""
    env_files = _env_files(options.get("env_file", ()))
    values = read_env_files(env_files, process_environment())
    learn(values)  # before code of the configuration is executed
    sources = Sources(path.resolve().parent, options.get("allow_outside", ()), path.parent)
    sources.used += options.get("add_config", ())
    raw, findings = joined_configuration(path, options.get("add_config", ()), sources)
    findings.warnings += unread_lines(env_files)
    return _Reading(path, raw, sources, findings, options, variables, values).suite()


def _env_files(named: Sequence[Path]) -> list[Path]:
    """The files of variables that the command line names, the last one first, and the `.env` here."""
    for file in named:
        if not file.is_file():
            raise InputError(f"--env-file: there is no file {str(file)!r}")
    return [*reversed(named), Path.cwd() / ".env"]


class _Reading:
    """One reading of one configuration, collecting its problems."""

    def __init__(
        self,
        path: Path,
        raw: dict[str, Any],
        sources: Sources,
        findings: Findings,
        options: Mapping[str, Any],
        variables: Mapping[str, str],
        values: Mapping[str, str],
    ) -> None:
        self._path, self._sources, self._findings, self._options = path, sources, findings, options
        self._origin = Origin(findings)
        self._unusable: list[InputError] = []
        names = list(env_names(raw))
        raw = what_fits(resolved(raw, raw, sources, self._origin), CONFIG, self._origin)
        self._values = {**values, **self._values_named_in(raw)}
        learn(self._values)
        known = {**self._values, **environment(), **variables}
        self._own = own_environment(raw.get("env", {}), known)
        self._known = {**known, **self._own}
        passed_on = {*env_names(raw.get("env", {}))}
        self._taken = {
            name: known[name] for name in names if name in known and (name not in self._own or name in passed_on)
        }
        self._given = {name: value for name, value in variables.items() if name not in names}
        """Variables of the command line that the configuration does not name as those of the environment."""
        self._written = {key: value for key, value in raw.items() if key != "env"}
        self._raw: dict[str, Any] = with_environment(self._written, self._known)
        self._running = RunningOptions(self._raw, self._origin, self._known)
        self._reader = Providers(sources, self._own)

    def _values_named_in(self, raw: Mapping[str, Any]) -> dict[str, str]:
        """The variables in the files that `commandLineOptions.envPath` names, unless the command line names some."""
        if self._options.get("env_file"):
            return {}
        place = self._origin.at("commandLineOptions", "envPath")
        paths = [self._sources.path(named, place) for named in env_files(raw)]
        files = [file for file in reversed(paths) if file is not None]
        self._findings.warnings += unread_lines(files)
        return read_env_files(files, process_environment())

    def suite(self) -> Suite:
        written = self._raw
        check_keys(self._raw, self._sources, self._origin)
        learn(self._own)
        tests, every = self._authored_tests()
        cases, chosen = self._chosen_cases(tests, every)
        in_turn = any(map(remembers, chosen.prompts)) or any(map(stored_as, cases))
        cases = with_dependence(cases, chosen.prompts) if in_turn else cases
        settings, repeat = self._running.settings(self._options, in_turn, cases)
        numbered = columns(every, chosen, {**self._shared_settings(), **repeat})
        variants = [*map(self._running.limited, numbered.values())]
        for_node = partial(places_for_node, variants, cases, self._raw.get("extensions", ()))
        self._check(chosen, variants, cases, for_node)
        if (cached := self._options.get("cached")) is not None:
            variants = replaying(variants, [*numbered], cached, settings.trials)
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
            mirrors=self._mirrors(),
            exports=self._exports(),
            contents=partial(content_counts, chosen, variants, cases, settings.trials, for_node),
            document=self._stored_document(),
            secrets={**literal_secrets({**written, "env": self._own, "loaded": every.providers}), **self._secrets()},
            environment={**self._values, **self._set},
            warnings=self._findings.warnings,
            unexecuted=tests.skipped,
            files=self._sources.used,
            empty="loaded" if tests.skipped else "refused",
            metadata=self._metadata(),
            dependence=which_relies(cases),
        )

    def _authored_tests(self) -> tuple[Tests, AuthoredColumns]:
        """The tests, and all prompts and providers, as `beforeAll` leaves them."""
        raw, origin = self._raw, self._origin
        prompts = prompts_of(raw.get("prompts"), self._sources, origin.at("prompts"))
        reader = self._reader
        providers = self._providers(reader)
        graders = [provider for provider in providers if can_be_called(provider)]
        tests = Tests(raw, self._sources, Assertions(self._sources, reader, graders), origin, self._given)
        prompts, self._raw, self._set = after_before_all(
            HookedParts(prompts, raw), providers, tests, self._sources.folder, origin.at("extensions")
        )
        return tests, AuthoredColumns(prompts, providers)

    def _chosen_cases(self, tests: Tests, every: AuthoredColumns) -> tuple[list[Case], AuthoredColumns]:
        """The cases, prompts and providers that the filters leave."""
        prompts, providers = every
        authored = tests.cases()
        for message in unknown_names([entry.case for entry in authored], prompts, providers):
            self._origin.at("tests" if self._raw.get("tests") else "scenarios").report(message)
        with self._later():
            authored = chosen_tests(authored, {**self._running.filters(), **self._options})
        with self._later():
            prompts = chosen_columns(prompts, "--filter-prompts", self._options.get("filter_prompts"))
        with self._later():
            providers = chosen_columns(providers, "--filter-providers", self._options.get("filter_providers"))
        if self._options.get("cached") is None:  # else none is called
            chosen = {*map(id, providers)}
            self._reader.refuse(i for i, provider in enumerate(every.providers) if id(provider) in chosen)
        return with_places(authored), AuthoredColumns(prompts, providers)

    def _check(
        self, chosen: AuthoredColumns, variants: Sequence[Variant], cases: Sequence[Case], for_node: Callable[[], int]
    ) -> None:
        """Report what can never be run or judged, and what is doubtful. Raises InputError for all mistakes."""
        if not variants and chosen.providers and (chosen.prompts or not self._raw.get("prompts")):
            self._origin.at("prompts").report("no prompt for any provider: expected at least one")
        check_comparisons(cases, variants, self._origin)
        self._doubt(chosen.prompts, variants, cases)
        check_derived(self._raw, self._origin)
        if not has_node() and (places := for_node()):
            self._origin.report(f"{places} places need Node. {NEEDS_NODE}", absent=True)
        self._refuse()

    @contextmanager
    def _later(self) -> Iterator[None]:
        """Go on if a command-line option cannot be used: mistakes in the file are reported with it."""
        try:
            yield
        except InputError as error:
            self._unusable.append(error)

    def _refuse(self) -> None:
        """Raise InputError for all mistakes, those of options after those of the file."""
        if self._findings.problems:
            for error in self._unusable:
                self._findings.problems += error.listed
            self._findings.refuse(f"Invalid suite {self._path}")
        if self._unusable:
            raise self._unusable[0]

    def _doubt(self, prompts: Sequence[AuthoredPrompt], variants: Sequence[Variant], cases: Sequence[Case]) -> None:
        if unjudged := sum(not case.evaluators for case in cases):
            self._origin.warn(f"{unjudged} of {len(cases)} tests have no assertions: they pass whatever the output is")
        if idle := sum(not any(map(_decides, case.evaluators)) for case in cases if case.evaluators):
            message = "tests have no assertion with a weight above 0: they pass whatever the output is"
            self._origin.warn(f"{idle} of {len(cases)} {message}")
        doubt_prompts(prompts, variants, cases, self._origin)
        doubt_requests(variants, cases, self._origin)
        doubt_values(variants, cases, self._origin)
        doubt_guardrails(variants, cases, self._origin)
        own = {name for variant in variants for name in variant.config["provider"].get("env", {})}
        doubt_environment(self._written, own.union(self._set, self._known), self._origin)
        doubt_columns(cases, variants, self._origin)

    def _providers(self, reader: Providers) -> list[Provider]:
        raw, origin = self._raw, self._origin
        if raw.get("providers") and raw.get("targets"):
            origin.at("targets").report("targets are providers: expected one of the two keys, found both")
        key = "providers" if raw.get("providers") else "targets"
        if not raw.get(key):
            if "redteam" not in raw:
                strange = (key for key in raw if key not in CONFIG and did_you_mean(key, ("providers", "targets")))
                hint = "".join(f"; should {key!r} be 'providers'?" for key in islice(strange, 1))
                origin.report(f"no providers: expected the key providers (or targets) with what is to be asked{hint}")
            return []
        providers = reader.listed(raw[key], origin.at(key))
        return [without_values(provider, self._taken) for provider in providers]

    def _shared_settings(self) -> dict[str, Any]:
        filters = self._raw.get("nunjucksFilters", {})
        for name, named in filters.items():
            self._sources.path(str(named), self._origin.at("nunjucksFilters", name))
        return {
            "folder": str(self._sources.folder),
            **({"allow_outside": self._sources.allowed} if self._sources.allowed else {}),
            **({"filters": filters} if filters else {}),
            **({"extensions": before} if (before := concerned(self._raw.get("extensions", ()), BEFORE_EACH)) else {}),
            **({"env": self._own} if self._own else {}),
        }

    def _gate(self) -> dict[str, Any] | None:
        """The share of cells that must pass; none has to if promptfoo's exit code for failures is 0."""
        code, given = self._known.get(_FAILED_CODE), self._known.get(_PASS_RATE)
        if code is not None and code.strip() == "0":
            given = "0"
        elif code is not None:
            self._origin.warn(
                f"{_FAILED_CODE} is read only if it is 0, found {as_written(code)}: the exit code of failures is 1"
            )
        if given is None:
            return None
        try:
            rate = float(given)
        except ValueError:
            rate = nan
        if not isfinite(rate):
            raise InputError(f"{_PASS_RATE}: expected a percentage, found {as_written(given)}")
        return {"kind": "promptfoo", "pass_rate": rate}

    def _stored_document(self) -> dict[str, Any]:
        """What is kept of the configuration; if there are many tests, only their hash, as they are stored as cases."""
        kept = {**self._raw, **({"env": self._own} if self._own else {})}
        tests = kept.get("tests")
        if isinstance(tests, list) and len(tests) > _SHOWN:
            kept["tests"] = {"count": len(tests), "sha256": _digest(tests)}
        return kept

    def _mirrors(self) -> list[Plugin]:
        """What calls the extensions after tests and after the suite, and again before a resumed one."""
        extensions = self._raw.get("extensions", [])
        if all(
            concerned([extension], BEFORE_EACH) and not concerned([extension], AFTER_EACH) for extension in extensions
        ):
            return []
        return [Plugin("promptfoo_extensions", {"extensions": extensions, "folder": str(self._sources.folder)})]

    def _exports(self) -> list[Plugin]:
        path = self._options.get("output")
        if path is None:
            return []
        if path.suffix != ".json":
            others = "`evalwright report` writes other formats, such as html and junit"
            raise InputError(f"--output: expected a file that ends with .json, found {str(path)!r}; {others}")
        return [Plugin("promptfoo_results", {"path": str(path.absolute())})]

    def _metadata(self) -> dict[str, Any]:
        raw = self._raw
        kept = {"description": raw["description"]} if raw.get("description") else {}
        return {**kept, **({"derived_metrics": raw["derivedMetrics"]} if raw.get("derivedMetrics") else {})}

    def _secrets(self) -> dict[str, str]:
        set_values = {name: self._known[name] for name in self._values}
        secrets = {name: value for name, value in {**self._set, **self._taken}.items() if may_be_secret(value)}
        return {**secrets_in({**set_values, **self._given}), **secrets}


def _digest(tests: Sequence[Any]) -> str:
    """SHA-256 (hex) of the tests as one JSON list, of which only one test at a time is in memory."""
    digest = hashlib.sha256(b"[")
    for i, test in enumerate(tests):
        text = json.dumps(test, sort_keys=True, default=str)
        digest.update((f", {text}" if i else text).encode(errors="surrogatepass"))
    digest.update(b"]")
    return digest.hexdigest()


def _name(path: Path) -> str:
    stem = path.stem
    return path.resolve().parent.name or stem if stem == "promptfooconfig" else stem


def _decides(spec: EvaluatorSpec) -> bool:
    """Whether an assertion can fail a test: one without weight always passes, unless it is a set."""
    assertion = spec.config.get("assertion", {})
    return bool(assertion.get("weight") != 0 or assertion.get("type") == "assert-set")
