"""The native format: `eval.yaml` as evalh defines it, read unchanged, with a few additions of ours."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET

from evalwright import registry
from evalwright.files import yaml
from evalwright.files.key_paths import Place, steps_of
from evalwright.formats.native.checks import idle, ill_named, one_place, out_of_reach, unused
from evalwright.formats.native.dataset_section import DatasetReading, brought_by
from evalwright.formats.native.file import (
    EvalFile,
    EvaluatorSection,
    as_in_json,
    config_of,
    whole_file,
)
from evalwright.formats.native.suite_file import SuiteFile
from evalwright.formats.native.system_section import system_variant
from evalwright.model.plan import (
    EvaluatorSpec,
    Executor,
    PassCriteria,
    Plugin,
    Price,
    RetryRule,
    RunSettings,
    Variant,
)
from evalwright.model.suite import Suite

__all__ = ["NEED_PATH", "adopt_run", "load"]

NEED_PATH = {"local_files", "sqlite"}


def load(
    path: Path,
    variables: Mapping[str, str],
    *,
    to_run: bool = True,
    original: bool = False,
    allow_outside: Sequence[Path] = (),
    max_concurrency: int | None = None,
) -> Suite:
    """The suite in an `eval.yaml`; with `original`, judged as evalh does. Raises InputError with every problem.

    `max_concurrency` replaces `run.max_concurrency`.
    """
    document = yaml.load(path)
    file = SuiteFile(path, document, {**os.environ, **variables}, allow_outside, original)
    suite = _Reading(file).suite(to_run)
    suite.warnings += file.unread(variables)
    if max_concurrency is not None:
        suite.run = msgspec.structs.replace(suite.run, max_concurrency=max_concurrency)
    if original:
        from evalwright.formats.native.evalh_rules import as_in_evalh

        return as_in_evalh(suite, document.value)
    return suite


def adopt_run(folder: Path) -> Suite | None:
    """The suite in the `config.yaml` of a run that upstream evalh wrote, to read or re-evaluate it, not to run it."""
    from evalwright.formats.native.evalh_rules import as_in_evalh

    config = folder / "config.yaml"
    if not config.is_file():
        return None
    document = yaml.load(config)
    suite = as_in_evalh(_Reading(SuiteFile(config, document, None, original=True)).suite(to_run=False), document.value)
    # Files of artifacts, which evalh did not keep, cannot be re-evaluated; that does not make the run a failure.
    criteria = msgspec.structs.replace(suite.pass_criteria, errored_evaluators="error")
    return msgspec.structs.replace(suite, pass_criteria=criteria)


def _rewards(totals: str) -> bool:
    """Whether the totals of a format decide gates of the kind `reward`."""
    return "reward" in registry.format_of(totals).gates


class _Reading:
    """The sections of a suite, one after the other."""

    def __init__(self, file: SuiteFile) -> None:
        self._file = file

    def suite(self, to_run: bool) -> Suite:
        raw = self._file.expanded()
        file = self._sections(raw)
        for place, message in (*ill_named(raw), *idle(raw), *one_place(raw)):
            self._file.report(place, message)
        for place, message in out_of_reach(raw):
            self._file.warn(place, message)
        for place, message in unused(raw):
            self._file.findings.warn(place, message, unread=True)
        for position, warning in enumerate(file.eval.warnings if "eval" in file.written else ()):
            self._file.warn(("eval", "warnings", position), warning)
        variants = [system_variant(self._file, system, to_run=to_run) for system in file.systems]
        evaluators = self._evaluators(file, to_run)
        store, mirrors = self._outputs(file, to_run)
        workspace = self._workspace(file, to_run)
        executor = self._executor(file, variants)
        self._file.doubt_keys(("run", "executor"), file.run.executor)
        prices = self._prices(file, variants, evaluators) if to_run else {}
        gate = self._gate(file)
        cases = DatasetReading(self._file, file, evaluators, to_run=to_run).cases()
        section = file.dataset if "dataset" in file.written else None
        brought = {} if section is None else brought_by(section.type, section.path)
        read = cases
        if gate is not None:  # names of cases are reported with everything else
            from evalwright.formats.shared.claims import with_claimed_keys

            read = with_claimed_keys(gate, str(self._file.path), cases)
        self._file.findings.refuse(self._file.headline, read)
        by_case = file.dataset.own_evaluators or brought.get("evaluators_by_case", False)
        document = as_in_json(file.plain())
        return Suite(
            name=file.eval.name,
            dialect=registry.NATIVE,
            source=self._file.path,
            cases=cases,
            variants=variants,
            evaluators=[] if by_case else evaluators,
            pass_criteria=PassCriteria(**file.pass_criteria.plain()),
            run=_settings(file, brought, executor),
            out=Path(store.config["path"]) if store.type == "local_files" else None,
            store=store,
            mirrors=mirrors,
            workspace=workspace or brought.get("workspace"),
            prices=prices,
            gate=gate,
            totals=file.totals or brought.get("totals", ""),
            evaluators_by_case=by_case,
            document=document,
            secrets=self._file.expansion.secrets(document),
            metadata=document["metadata"],
            warnings=self._file.findings.warnings,
            files=self._file.files,
        )

    def _sections(self, raw: dict[Any, Any]) -> EvalFile:
        """The valid parts of the file; its mistakes are reported."""
        kind = raw["dataset"].get("type") if isinstance(raw.get("dataset"), dict) else None
        # Evaluators of the cases override the suite's.
        by_cases = isinstance(kind, str) and "evaluators_by_case" in brought_by(kind, None)
        needless = {"evaluators"} if by_cases and not raw.get("evaluators") else set[str]()
        file = whole_file(raw, needless)
        if file is not None:
            return file
        from evalwright.formats.native.file_mistakes import sound_parts

        return sound_parts(raw, self._file.report, needless)

    def _outputs(self, file: EvalFile, to_run: bool) -> tuple[Plugin, list[Plugin]]:
        """The store of the run, and the mirrors beside it."""
        if not file.output:
            return Plugin(""), []
        first, *others = file.output
        known = self._file.known(first.at("type"), "stores", first.type)
        if first.at() == ("output", 0) and first.path is None and first.type in NEED_PATH:
            self._file.report(first.at(), "the first store needs 'path'")
        elif to_run and known:
            self._file.take(
                first.at(), partial(registry.load("stores", first.type), config_of(first), None, Path("runs"))
            )
        for output in file.output:
            if output.type == "local_files":
                self._file.doubt_keys(output.at(), output)
        for other in others:
            if to_run and self._file.known(other.at("type"), "mirrors", other.type):
                mirror = Plugin(other.type, config_of(other))
                self._file.take(other.at(), partial(self._file.doubt_config, other.at(), "mirrors", mirror))
                self._file.take(other.at(), partial(registry.load("mirrors", other.type), mirror.config))
        return Plugin(first.type, config_of(first)), [Plugin(other.type, config_of(other)) for other in others]

    def _workspace(self, file: EvalFile, to_run: bool) -> Plugin | None:
        if file.workspace is None:
            return None
        from evalwright.formats.native.workspace_section import check_workspace

        workspace = Plugin(file.workspace.type, config_of(file.workspace))
        check_workspace(self._file, workspace, to_run=to_run)
        return workspace

    def _executor(self, file: EvalFile, variants: Sequence[Variant]) -> Executor | msgspec.UnsetType:
        section = file.run.executor
        if section.type == "local":
            return UNSET
        from evalwright.formats.native.executor_section import executor_of

        return executor_of(self._file, section, file.systems, variants)

    def _prices(
        self, file: EvalFile, variants: Sequence[Variant], evaluators: Sequence[EvaluatorSpec]
    ) -> dict[str, Price]:
        configs = [spec.config for spec in evaluators]
        configs += [config for variant in variants for config in (variant.config, variant.metadata)]
        if file.metrics.price_table_path is None and not any(
            "model" in config or "models" in config for config in configs
        ):
            return {}
        from evalwright.formats.native.price_section import prices_of

        return prices_of(self._file, file, variants, evaluators)

    def _evaluators(self, file: EvalFile, to_run: bool) -> list[EvaluatorSpec]:
        from evalwright.evaluators.build import (
            build_evaluator,
            build_extractor,
            config_doubts,
            declared,
            read_as_values,
        )

        specs = []
        for section in file.evaluators:
            extractor = _extractor(section)
            config = as_in_json(section.config)
            if self._file.wanted(section.at("type"), "evaluators", section.type, to_run) and (
                section.sound or "config" in section.written
            ):
                here, given = section.at("config"), self._file.expansion.given
                if self._file.original:  # evalh's evaluators take any key
                    config = self._without_unread(here, section.type, config)
                config |= read_as_values(section.type, {key: config[key] for key in config if (*here, key) in given})
                paths = declared("evaluators", section.type).paths
                config |= self._beside(section.at("config"), config, paths, to_run)
                self._file.take(section.at("config"), partial(build_evaluator, section.type, config))
                for doubt in config_doubts(section.type, config):
                    self._file.warn((*section.at("config"), *steps_of(doubt.key)), doubt.message)
            spec = EvaluatorSpec(
                section.name,
                section.type,
                config,
                weight=section.weight,
                required=section.required,
                threshold=section.threshold,
                threshold_op=section.threshold_op,
                extractor=extractor,
                called=UNSET if section.called is None else section.called,
            )
            place = section.at("extractor")
            if extractor is not None and self._file.wanted((*place, "type"), "extractors", extractor.type, to_run):
                self._file.take((*place, "config"), partial(build_extractor, extractor.type, extractor.config))
            specs.append(spec)
        return specs

    def _without_unread(self, place: Place, kind: str, config: Mapping[str, Any]) -> dict[str, Any]:
        """The keys of a configuration that the evaluator has; the others are warnings."""
        from evalwright.evaluators.build import fields_by_key, undeclared_keys

        unread = {problem.key for problem in undeclared_keys(kind, config)}
        for key in unread:
            self._file.findings.warn_unread((*place, key), fields_by_key(registry.load("evaluators", kind)))
        return {key: value for key, value in config.items() if key not in unread}

    def _beside(
        self, place: Place, config: Mapping[str, Any], paths: Mapping[str, str], to_run: bool
    ) -> dict[str, str]:
        """The paths in a configuration that exist relative to the suite's folder, made absolute.

        `paths` maps each key that holds one to the word that is not a path.
        """
        folder = self._file.path.resolve().parent
        names = {
            key: config[key] for key, word in paths.items() if isinstance(config.get(key), str) and config[key] != word
        }
        for key, path in names.items():
            file = self._file.found((*place, key), path)
            if to_run:
                self._file.must_be_inside((*place, key), file)
        return {key: str(folder / path) for key, path in names.items() if os.path.exists(folder / path)}

    def _gate(self, file: EvalFile) -> dict[str, Any] | None:
        totals = file.totals
        rewards = totals is not None and self._file.known(("totals",), "formats", totals) and _rewards(totals)
        if file.gate is None:
            return None
        from evalwright.formats.shared.claims import checked_gates
        from evalwright.formats.shared.gates import fractions

        names = [section.name for section in file.evaluators]
        gate = checked_gates(file.gate, names, self._file.report, rewards=rewards)
        for place, message in fractions(gate):
            self._file.warn(place, message)
        return gate


def _extractor(section: EvaluatorSection) -> Plugin | None:
    named = section.extractor
    return None if named is None else Plugin(named.type, as_in_json(named.config))


def _settings(file: EvalFile, brought: Mapping[str, Any], executor: Executor | msgspec.UnsetType) -> RunSettings:
    run, given = file.run, file.run.retry.written
    return RunSettings(
        max_concurrency=run.max_concurrency,
        per_variant_concurrency=run.per_variant_concurrency,
        trials=run.trials,
        alternate=run.alternate or brought.get("alternate", False) or UNSET,
        retry=RetryRule(**run.retry.plain(), once="max_attempts" in given and run.retry.max_attempts == 1),
        baseline_variant=run.baseline_variant,
        evaluator_timeout_seconds=run.evaluator_timeout_seconds,
        cost_limit_usd=run.cost_limit_usd,
        stop_after_errors=run.stop_after_errors,
        pools=run.executor.pools,
        keep_judge_calls=file.judges.keep_calls,
        executor=executor,
    )
