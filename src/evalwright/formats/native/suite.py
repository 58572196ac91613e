"""The native format: `eval.yaml` as evalh defines it, read unchanged, with a few additions of ours."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from glob import has_magic
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from evalwright import registry
from evalwright.errors import InputError, Problem, did_you_mean
from evalwright.files import yaml
from evalwright.files.boundary import Boundary, OutsideError
from evalwright.files.key_paths import Place, bracketed, dotted, steps_of
from evalwright.files.paths import also_here, import_folders, named_in, near_file
from evalwright.formats.native.checks import idle, ill_named, out_of_reach
from evalwright.formats.native.datasets import KEYS_OF_ROWS, file_type, is_of_rows
from evalwright.formats.native.file import EvalFile, EvaluatorSection, SystemSection, sound_parts
from evalwright.formats.shared.environment import Expansion
from evalwright.formats.shared.findings import Findings
from evalwright.formats.shared.isolation import isolating_function
from evalwright.model.case import EvalCase
from evalwright.model.plan import EvaluatorSpec, PassCriteria, Plugin, Price, RetryRule, RunSettings, Variant
from evalwright.model.snapshot import Case
from evalwright.model.suite import Suite

__all__ = ["adopt_run", "load"]

_NO_CONFIG = {"name", "adapter", "metadata", "enrich_trace_from", "pool", "isolation", "trials"}
_OF_FUNCTIONS = ("target", "init_kwargs")
_OF_EVALH = {"errored_cases": "count", "errored_evaluators": "fail"}
_LENIENT: dict[str, dict[str, Any]] = {
    "contains_text": {"absent": "empty"},
    "llm_judge": {"lenient": True},
    "semantic_similarity": {"absent": "empty"},
}
"""Keys of evaluators with which they judge as those of evalh."""
_NO_TABLES = {".yaml": "yaml", ".yml": "yaml", ".json": "json", ".jsonl": "jsonl"}
"""Types of datasets by the ends of names of files that nobody means as tables."""
_NEED_PATH = {"local_files", "sqlite"}
_FOLDERS = {"copy_from", "repo_path"}
"""Keys of workspaces that name a folder of the suite's."""


def load(
    path: Path,
    variables: Mapping[str, str],
    *,
    to_run: bool = True,
    original: bool = False,
    allow_outside: Sequence[Path] = (),
) -> Suite:
    """The suite in an `eval.yaml`; `original`, as evalh judges it. Raises InputError with every problem."""
    document = yaml.load(path)
    reading = _Reading(path, document, {**os.environ, **variables}, allow_outside, original)
    suite = reading.suite(to_run)
    suite.warnings += reading.unread(variables)
    return _as_in_evalh(suite, document) if original else suite


def adopt_run(folder: Path) -> Suite | None:
    """The suite in the `config.yaml` of a run that upstream evalh wrote, to read or re-evaluate it, not to run it."""
    config = folder / "config.yaml"
    if not config.is_file():
        return None
    document = yaml.load(config)
    suite = _as_in_evalh(_Reading(config, document, None, original=True).suite(to_run=False), document)
    # What evalh did not keep (the files of artifacts) cannot be judged again, and is no failure for that.
    criteria = msgspec.structs.replace(suite.pass_criteria, errored_evaluators="error")
    return suite.model_copy(update={"pass_criteria": criteria})


def _as_in_evalh(suite: Suite, document: yaml.Document) -> Suite:
    """With errors counted and judges read as evalh 2.0 does, where the suite does not say how."""
    written = document.value.get("pass_criteria") or {}
    rules = {name: rule for name, rule in _OF_EVALH.items() if name not in written}
    criteria = msgspec.structs.replace(suite.pass_criteria, **rules)
    return suite.model_copy(update={"pass_criteria": criteria, "evaluators": [*map(_lenient, suite.evaluators)]})


def _lenient(spec: EvaluatorSpec) -> EvaluatorSpec:
    return msgspec.structs.replace(spec, config={**_LENIENT.get(spec.type, {}), **spec.config})


def _rewards(totals: str) -> bool:
    """Whether the totals of a format decide gates of the kind `reward`."""
    ref = registry.format_of(totals).totals
    return ref is not None and bool(getattr(registry.resolve(ref), "rewards", False))


class _Reading:
    """One reading of one file, gathering its problems."""

    def __init__(
        self,
        path: Path,
        document: yaml.Document,
        environment: Mapping[str, str] | None,
        allow_outside: Sequence[Path] = (),
        original: bool = False,
    ) -> None:
        self._path, self._document, self._allowed = path, document, allow_outside
        self._original = original
        self._headline = f"Invalid config {path}"
        self._findings = Findings(path, document, dotted if original else bracketed)
        self._complain, self._take = self._findings.tell, self._findings.take
        self._files: list[Path] = []
        self._expansion = Expansion(environment, str(path.resolve().parent))

    def unread(self, variables: Iterable[str]) -> list[Problem]:
        """Those of the caller's variables that the file, once read, has nowhere named."""
        named = self._expansion.named
        unread = (name for name in variables if name not in named)
        return [
            Problem(str(self._path), f"nothing here reads the variable {name!r}{did_you_mean(name, named)}")
            for name in unread
        ]

    def suite(self, to_run: bool) -> Suite:
        raw = self._expanded()
        file = sound_parts(raw, self._complain)
        for place, message in (*ill_named(raw), *idle(raw)):
            self._complain(place, message)
        for place, message in out_of_reach(raw):
            self._findings.warn(place, message)
        variants = [self._variant(system, to_run) for system in file.systems]
        evaluators = self._evaluators(file, to_run)
        store, mirrors = self._outputs(file, to_run)
        workspace = self._workspace(file, to_run)
        self._doubt_keys(("run", "executor"), file.run.executor)
        prices = self._prices(file, variants, to_run)
        rewards = file.totals is not None and self._known(("totals",), "formats", file.totals) and _rewards(file.totals)
        gate = self._gate(file, rewards)
        cases = self._cases(file, evaluators, to_run)
        self._findings.refuse(self._headline, cases)
        written = file.model_dump()
        document = _plain({name: written[name] for name in EvalFile.model_fields})
        return Suite(
            name=file.eval.name,
            dialect=registry.NATIVE,
            source=self._path,
            cases=cases,
            variants=variants,
            evaluators=[] if file.dataset.own_evaluators else evaluators,
            pass_criteria=PassCriteria(**file.pass_criteria.model_dump()),
            run=_settings(file),
            out=Path(store.config["path"]) if store.type == "local_files" else None,
            store=store,
            mirrors=mirrors,
            workspace=workspace,
            prices=prices,
            gate=gate,
            totals=file.totals or "",
            evaluators_by_case=file.dataset.own_evaluators,
            document=document,
            secrets=self._expansion.secrets(document),
            metadata=document["metadata"],
            warnings=self._findings.warnings,
            files=self._files,
        )

    def _expanded(self) -> dict[Any, Any]:
        raw = self._document.value
        if not isinstance(raw, dict):
            found = "the file is empty" if raw is None else f"found {type(raw).__name__}"
            self._complain((), f"{found}, expected a mapping with eval, dataset, systems, evaluators and output")
            self._findings.refuse(self._headline)
        expanded: dict[Any, Any] = self._expansion.expanded(raw)
        for place, name in self._expansion.unset:
            message = f"the environment variable {name!r} is not set and has no default"
            message += f": export it, or pass --var {name}=VALUE"
            line = self._document.line(place)
            self._findings.problems.append(Problem(str(self._path), message, line, bracketed(place)))
            self._findings.settled.append(place)
        for place, text in () if self._original else self._expansion.misspelt:
            # evalh leaves it as it is, and the program gets a text that its author took for a value.
            bare = text.strip("${ }").rpartition(".")[2].partition(":")[0].strip()
            near = re.sub(r"\W", "_", bare).upper()
            how = "write" if near == bare else "names are upper case:"
            meant = f"{how} ${{{near}}}; for the text itself, write ${{__:-$}} for its dollar sign"
            self._complain(place, f"{text} is not a reference to a variable ({meant})")
        for place, name in self._expansion.secret:
            if place[-1:] == ("name",):
                self._complain(place, f"names are stored: {name!r} is a secret, expected a name without it")
        if isinstance(expanded.get("output"), dict):
            expanded["output"] = [expanded["output"]]
        return expanded

    def _found(self, place: Place, name: str) -> Path:
        """The file or folder of that name; a warning where the working directory has another one."""
        if doubt := also_here(self._path, name):
            self._findings.warn(place, doubt)
        path = named_in(self._path, name)
        self._files.append(path)
        return path

    def _doubt_keys(self, place: Place, section: BaseModel, also: Collection[str] = ()) -> None:
        """Warn of keys of an open section that its type, one of ours, does not read; `also` are some that it does."""
        for key in section.model_extra or ():
            if key not in also:
                known = did_you_mean(key, [*type(section).model_fields, *also])
                self._findings.warn((*place, key), f"nothing reads this key{known}")

    def _doubt_config(self, place: Place, kind: str, given: Plugin) -> None:
        """Warn of keys that a mirror or an enricher, which says by `config_keys` what it reads, does not read."""
        known: tuple[str, ...] | None = getattr(registry.load(kind, given.type), "config_keys", None)
        for key in given.config:
            if known is not None and key not in known:
                self._findings.warn((*place, key), f"nothing reads this key{did_you_mean(key, known)}")

    def _known(self, place: Place, kind: str, name: str) -> bool:
        """Whether a name is registered; reported as a problem if not."""
        if registry.knows(kind, name):
            return True
        self._take(place, partial(registry.load, kind, name))
        return False

    def _wanted(self, place: Place, kind: str, name: str, to_run: bool) -> bool:
        """Whether a name is registered and may be built: the user's code is not imported without need."""
        from evalwright.evaluators.build import declared

        return self._known(place, kind, name) and (to_run or not declared(kind, name).imports_code)

    def _outputs(self, file: EvalFile, to_run: bool) -> tuple[Plugin, list[Plugin]]:
        """The store of the run, and the mirrors beside it."""
        if not file.output:
            return Plugin(""), []
        first, *others = file.output
        known = self._known(first.at("type"), "stores", first.type)
        if first.at() == ("output", 0) and first.path is None and first.type in _NEED_PATH:
            self._complain(first.at(), "the first store needs 'path'")
        elif to_run and known:
            self._take(first.at(), partial(registry.load("stores", first.type), _config(first), None, Path("runs")))
        for output in file.output:
            if output.type == "local_files":
                self._doubt_keys(output.at(), output)
        for other in others:
            if to_run and self._known(other.at("type"), "mirrors", other.type):
                mirror = Plugin(other.type, _config(other))
                self._take(other.at(), partial(self._doubt_config, other.at(), "mirrors", mirror))
                self._take(other.at(), partial(registry.load("mirrors", other.type), mirror.config))
        return Plugin(first.type, _config(first)), [Plugin(other.type, _config(other)) for other in others]

    def _workspace(self, file: EvalFile, to_run: bool) -> Plugin | None:
        if file.workspace is None:
            return None
        workspace = Plugin(file.workspace.type, _config(file.workspace))
        for key, value in workspace.config.items():
            if isinstance(value, str) and key in _FOLDERS:
                folder = self._found(("workspace", key), value)
                if to_run and key != "repo_path":  # a repository is named to be cloned, wherever it lies
                    self._must_be_inside(("workspace", key), folder)
        if to_run and self._known(("workspace", "type"), "workspaces", workspace.type):
            folder = self._path.resolve().parent
            self._take(("workspace",), partial(registry.load("workspaces", workspace.type), workspace.config, folder))
        return workspace

    def _prices(self, file: EvalFile, variants: Sequence[Variant], to_run: bool) -> dict[str, Price]:
        """Those of the suite's table; without one those built in, of the models of its systems."""
        named = file.metrics.price_table_path
        models = list(dict.fromkeys(model for variant in variants if (model := _model_of(variant))))
        if not to_run or (named is None and not models):
            return {}
        from evalwright.formats.native.prices import built_in_prices, read_prices

        place: Place = ("metrics", "price_table_path")
        if named is None:
            found, day = built_in_prices(models)
            if found:
                said = f"there is none: costs of {', '.join(found)} are by the built-in prices of {day}"
                self._findings.warn(place, said)
        else:
            try:
                table = self._found(place, named)
                found = read_prices(table) if self._must_be_inside(place, table) else {}
            except InputError as error:
                self._findings.add(error)
                return {}
        bounded = file.run.cost_limit_usd is not None or any(one.type == "cost_under" for one in file.evaluators)
        if bounded and (unknown := [model for model in models if model not in found]):
            self._findings.warn(
                place, f"no price is known of {', '.join(unknown)}: only costs that a system reports count"
            )
        return found

    def _variant(self, system: SystemSection, to_run: bool) -> Variant:
        from evalwright.targets.build import WITHOUT_EFFECT, build_target, unread_of

        given = {name for name, value in system if value is not None} | system.model_fields_set
        variant = Variant(
            name=system.name,
            adapter=system.adapter,
            config=_plain(system.model_dump(include=given - _NO_CONFIG)),
            metadata=_plain(system.metadata),
            timeout_seconds=system.timeout_seconds,
            concurrency=system.concurrency,
            isolation=system.isolation,
            trials=system.trials,
            pool=system.pool,
            enrich_trace_from=[Plugin(e.type, _config(e)) for e in system.enrich_trace_from],
            evalh_rules=self._original,
        )
        if self._expansion.expands:  # a run of the original is only read: nothing is asked for any more
            for key, message in unread_of(system.adapter, variant.config):
                if key in WITHOUT_EFFECT:
                    self._findings.warn(system.at(key), WITHOUT_EFFECT[key])
                else:
                    self._complain((*system.at(), *steps_of(key)), message)
            own = {key: value for key, value in (system.model_extra or {}).items() if key not in _OF_FUNCTIONS}
            for key, message in isolating_function(own) if own and system.adapter == "python_function" else ():
                self._complain(system.at(key), message)
        if to_run and self._known(system.at("adapter"), "targets", system.adapter) and system.sound:
            self._take(system.at(), partial(build_target, variant, import_folders(self._path)))
        for i, enricher in enumerate(variant.enrich_trace_from):
            place = system.at("enrich_trace_from", i)
            if to_run and self._known((*place, "type"), "enrichers", enricher.type):
                self._take(place, partial(self._doubt_config, place, "enrichers", enricher))
                self._take(place, partial(registry.load("enrichers", enricher.type), enricher.config))
        return variant

    def _evaluators(self, file: EvalFile, to_run: bool) -> list[EvaluatorSpec]:
        from evalwright.evaluators.build import build_evaluator, build_extractor, declared

        specs = []
        for section in file.evaluators:
            extractor = _extractor(section)
            config = _plain(section.config)
            if self._wanted(section.at("type"), "evaluators", section.type, to_run) and section.sound:
                paths = declared("evaluators", section.type).paths
                config |= self._beside(section.at("config"), config, paths, to_run)
                self._take(section.at("config"), partial(build_evaluator, section.type, config))
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
            if extractor is not None and self._wanted((*place, "type"), "extractors", extractor.type, to_run):
                self._take((*place, "config"), partial(build_extractor, extractor.type, extractor.config))
            specs.append(spec)
        return specs

    def _beside(
        self, place: Place, config: Mapping[str, Any], paths: Mapping[str, str], to_run: bool
    ) -> dict[str, str]:
        """The paths in a configuration that lead from the suite's folder to something.

        `paths` has the keys that hold one, each with the word that is none.
        """
        folder = self._path.resolve().parent
        given = {
            key: config[key] for key, word in paths.items() if isinstance(config.get(key), str) and config[key] != word
        }
        for key, path in given.items():
            found = self._found((*place, key), path)
            if to_run:
                self._must_be_inside((*place, key), found)
        return {key: str(folder / path) for key, path in given.items() if os.path.exists(folder / path)}  # noqa: PTH110

    def _gate(self, file: EvalFile, rewards: bool) -> dict[str, Any] | None:
        if file.gate is None:
            return None
        from evalwright.formats.shared.claims import checked_gates
        from evalwright.formats.shared.gates import fractions

        names = [section.name for section in file.evaluators]
        gate = checked_gates(file.gate, names, self._complain, rewards=rewards)
        for place, message in fractions(gate):
            self._findings.warn(place, message)
        return gate

    def _cases(self, file: EvalFile, evaluators: list[EvaluatorSpec], to_run: bool) -> Iterable[EvalCase | Case]:
        if "dataset" not in file.model_fields_set:
            return ()
        dataset = file.dataset
        kind = dataset.type or file_type(dataset.path or "")
        if kind is None:
            self._complain(("dataset", "type"), "the key 'type' is missing")
            return ()
        if not self._known(("dataset", "type"), "datasets", kind):
            return ()
        rows = is_of_rows(kind, dataset.path or "", dataset.model_extra or {})
        if kind in registry.KINDS["datasets"]:
            self._doubt_keys(("dataset",), dataset, KEYS_OF_ROWS if rows else ())
        if dataset.own_evaluators and kind != "cases":
            self._complain(("dataset", "own_evaluators"), "only cases of a dataset of type 'cases' have their own")
        if rows:
            return self._rows(file, kind, evaluators, to_run)
        if isinstance(dataset.path, list):
            self._complain(("dataset", "path"), f"cases of type {kind!r} are in one file, found a list")
            return ()
        path = self._found(("dataset", "path"), dataset.path or "")
        if not dataset.path or not os.path.isfile(path):  # noqa: PTH113 - Path.is_file raises for a name too long
            what = "it is a folder" if os.path.isdir(path) else near_file(path).removeprefix("; ")  # noqa: PTH112
            message = f"there is no dataset file {dataset.path!r}" + (f"; {what}" if what else "")
            return self._missing(message if dataset.path else "'path' is missing", to_run)
        if to_run and not self._must_be_inside(("dataset", "path"), path):
            return ()  # nothing of it is shown either
        name = file.eval.name if "eval" in file.model_fields_set else ""
        config = dataset.model_dump()
        if dataset.own_evaluators:
            folder = str(self._path.resolve().parent)
            config |= {"evaluators": evaluators, "expanded": self._expansion.expanded, "folder": folder}
            config["to_run"] = to_run
            with open(path, encoding="utf-8", errors="replace") as lines:  # noqa: PTH123 - `path` may be a text
                self._expansion.learn_from(lines)
        elif to_run:
            config |= {"read_of_expected": _read_of_expected(evaluators), "needed": _needed_of_expected(evaluators)}
        cases: Iterable[EvalCase | Case] = registry.load("datasets", kind)(path, name, config)
        return cases

    def _rows(
        self, file: EvalFile, kind: str, evaluators: list[EvaluatorSpec], to_run: bool
    ) -> Iterable[EvalCase | Case]:
        """The cases of a dataset of rows, in as many files as its path names."""
        from evalwright.formats.native import tables

        dataset = file.dataset
        named = [dataset.path] if isinstance(dataset.path, str) else dataset.path or []
        files: list[Path] = []
        for name in named:
            pattern = self._path.parent / name if has_magic(name) else named_in(self._path, name)
            found = tables.files_of(pattern)
            if not found:
                near = "" if has_magic(name) else near_file(pattern)
                what = "no file matches" if has_magic(name) else "there is no dataset file"
                return self._missing(f"{what} {name!r}{near}", to_run)
            files += [self._found(("dataset", "path"), str(one)) for one in found]
        if not files:
            return self._missing("'path' is missing", to_run)
        for one in files:
            if kind == "csv" and (other := _NO_TABLES.get(one.suffix.lower())):
                self._complain(("dataset", "type"), f"{one.name} is no table; did you mean type: {other}?")
                return ()
        if to_run:
            for one in files:
                self._must_be_inside(("dataset", "path"), one)
        config = dataset.model_dump() | {"files": files}
        if to_run:
            config |= {"read_of_expected": _read_of_expected(evaluators), "needed": _needed_of_expected(evaluators)}
        made = tables.JsonlRows if kind == "jsonl" else registry.load("datasets", kind)
        try:
            cases: Iterable[EvalCase | Case] = made(files[0], file.eval.name, config)
        except InputError as error:
            for problem in error.problems:
                self._complain(steps_of(problem.key), problem.message)
            return ()
        return cases

    def _missing(self, message: str, to_run: bool) -> Iterable[EvalCase | Case]:
        """That a dataset is not there, which matters to a run only."""
        if to_run:
            self._complain(("dataset", "path"), message)
            return ()
        line = self._document.line(("dataset", "path"))
        return _Missing(Problem(str(self._path), message, line, "dataset.path"))

    def _must_be_inside(self, place: Place, path: Path) -> bool:
        """Whether what the suite names lies in its boundary, or in the working directory; reported if not."""
        folder = self._path.resolve().parent
        if path.resolve().is_relative_to(folder):  # inside of any boundary that the folder has
            return True
        boundary = Boundary(folder, [*self._allowed, Path.cwd()])
        try:
            boundary.check(path)
        except OutsideError as error:
            self._complain(place, str(error))
            return False
        return True


def _read_of_expected(evaluators: Iterable[EvaluatorSpec]) -> frozenset[str] | None:
    """The keys of `expected` that the evaluators read; None where one of them may read any."""
    from evalwright.evaluators.build import build

    read: frozenset[str] = frozenset()
    for spec in evaluators:
        try:
            evaluator, traits = build(spec)
        except InputError:
            return None
        own: frozenset[str] | None = getattr(evaluator, "expected_keys", None) if traits.uses_case else frozenset()
        if own is None:
            return None
        read |= own
    return read


def _needed_of_expected(evaluators: Iterable[EvaluatorSpec]) -> dict[str, frozenset[str]]:
    """The keys of `expected`, by evaluator, without any of which it asks for nothing."""
    from evalwright.evaluators.build import build

    needed = {}
    for spec in evaluators:
        with suppress(InputError):
            needed[spec.name] = getattr(build(spec)[0], "needed_keys", frozenset[str]())
    return {name: keys for name, keys in needed.items() if keys}


class _Missing:
    """The cases of a dataset that does not exist, reported when they are read."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    def __iter__(self) -> Iterator[EvalCase]:
        raise InputError(self._problem)


def _plain(value: Any) -> Any:
    """The value as JSON holds it: a run that is resumed from its stored plan gets the same."""
    return to_jsonable_python(value, bytes_mode="base64")


def _config(section: BaseModel) -> dict[str, Any]:
    """What belongs to the type that an open section names."""
    config: dict[str, Any] = _plain(section.model_dump(exclude={"type"}, exclude_unset=True))
    return config


def _extractor(section: EvaluatorSection) -> Plugin | None:
    named = section.extractor
    return None if named is None else Plugin(named.type, _plain(named.config))


def _model_of(variant: Variant) -> str | None:
    """The model by whose price a system's tokens are counted."""
    named = variant.metadata.get("model") or variant.config.get("model")
    return named if isinstance(named, str) else None


def _settings(file: EvalFile) -> RunSettings:
    run, given = file.run, file.run.retry.model_fields_set
    return RunSettings(
        max_concurrency=run.max_concurrency,
        per_variant_concurrency=run.per_variant_concurrency,
        trials=run.trials,
        retry=RetryRule(**run.retry.model_dump(), once="max_attempts" in given and run.retry.max_attempts == 1),
        baseline_variant=run.baseline_variant,
        evaluator_timeout_seconds=run.evaluator_timeout_seconds,
        cost_limit_usd=run.cost_limit_usd,
        stop_after_errors=run.stop_after_errors,
        pools=run.executor.pools,
        keep_judge_calls=file.judges.keep_calls,
    )
