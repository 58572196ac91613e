"""Letta suites: a dataset, an agent, graders and a gate in one YAML file, read unchanged."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from evalwright.errors import InputError, Problem, did_you_mean
from evalwright.evaluators.build import build_evaluator, build_extractor
from evalwright.evaluators.judges.rubric_template import names_in_template
from evalwright.files import yaml
from evalwright.files.key_paths import Place, as_written, steps_of
from evalwright.files.numbers import whole_number_in
from evalwright.files.paths import near_file
from evalwright.formats.letta import FORMAT
from evalwright.formats.letta.graders import NEED_TRUTH, Graders
from evalwright.formats.letta.samples import Samples, Selection
from evalwright.formats.letta.target_section import TargetSection
from evalwright.formats.letta.totals import REWARD
from evalwright.formats.shared.environment import literal_secrets
from evalwright.formats.shared.findings import Findings
from evalwright.formats.shared.gates import checked_gate, fractions, unread_gate_keys, values_out_of_reach
from evalwright.formats.shared.isolation import OF_PROGRAMS, isolating, refusal
from evalwright.formats.shared.named_files import NamedFiles
from evalwright.model.case import EvalCase
from evalwright.model.plan import EvaluatorSpec, PassCriteria, Plugin, RetryRule, RunSettings
from evalwright.model.suite import Suite

__all__ = ["OF_TARGET", "SUITE_KEYS", "load", "read"]

SUITE_KEYS = (
    "name", "description", "dataset", "target", "graders", "grader", "gate", "reward", "max_samples", "sample_tags",
    "num_runs", "setup_script", "max_concurrent", "output", "cleanup", "sandbox",
)  # fmt: skip
OF_TARGET = (
    "kind", "backend", "callable", "function", "endpoint", "url", "model", "path", "base_url", "api_key", "project_id",
    "timeout", "max_retries", "agent_id", "agent_file", "agent_script", "model_configs", "model_handles", "working_dir",
    "skills_dir",
)  # fmt: skip
"""Keys of targets. Some only concern a Letta server, or look as if they isolated, but do not."""
_REWARD_KEYS = {"metric": ("kind", "metric_key"), "custom": ("kind", "function")}
_CONCURRENT = 15
_SPOILING = ["extraction_error", "grader_error"]


def load(path: Path, variables: Mapping[str, str], *, to_run: bool = True, **options: Any) -> Suite:
    """The suite in a file. Raises InputError with every problem."""
    return read(path, yaml.load(path, "yaml11"), variables, to_run=to_run, **options)


def read(
    path: Path, document: yaml.Document, variables: Mapping[str, str], *, to_run: bool = True, **options: Any
) -> Suite:
    """The suite in a document that is, or could be, the file at `path`. Raises InputError."""
    return _Reading(path, document, options, variables).suite(to_run)


class _Reading:
    """One reading of one suite, collecting its problems."""

    def __init__(
        self, path: Path, document: yaml.Document, options: Mapping[str, Any], variables: Mapping[str, str]
    ) -> None:
        self._path, self._options = path, options
        self._environment = {**os.environ, **variables}
        self._folder = path.resolve().parent
        self._used: list[Path] = []
        self._findings = Findings(path, document)
        self.report, self.take, self._warn = self._findings.report, self._findings.take, self._findings.warn
        self._files = NamedFiles(self._folder, options.get("allow_outside", ()), self.report)
        raw = document.value
        if not isinstance(raw, dict):
            found = "the file is empty" if raw is None else f"found {as_written(raw)}"
            raise InputError(Problem(str(path), f"{found}, expected a mapping with name, dataset, target and graders"))
        self._raw: dict[str, Any] = self._with_text_keys(raw)
        self._newer = self._raw.get("reward") is not None and "gate" not in self._raw

    def _with_text_keys(self, value: Any, place: Place = ()) -> Any:
        """The same with the text of each key: names of graders may be numbers in YAML, but not in stored files."""
        if isinstance(value, list):
            return [self._with_text_keys(item, (*place, i)) for i, item in enumerate(value)]
        if not isinstance(value, dict):
            return value
        found: dict[str, Any] = {}
        for key, item in value.items():
            name = str(key)
            if name in found:
                self.report((*place, name), f"duplicate key {name!r}, once as a text and once as another value")
            found[name] = self._with_text_keys(item, (*place, name))
        return found

    def suite(self, to_run: bool) -> Suite:
        raw = self._raw
        self._unknown_keys()
        name = self._text("name")
        graders = self._graders()
        gate = self._gate(list(graders))
        reading = Graders(self._files, self._newer, self._options, self.report, self.note, self._warn)
        evaluators = reading.specs(graders, gate)
        if gate is not None and "function" in gate:
            evaluators.append(EvaluatorSpec(REWARD, "python_reward", {"function": gate["function"]}))
            gate = {key: value for key, value in gate.items() if key != "function"}
        runs, limit = self._count("num_runs", 1, 0), self._count("max_samples", 0, 0)
        if whole_number_in(self._raw.get("max_samples")) == 0:
            self._warn(("max_samples",), "0 takes all samples, as in Letta Evals; a number above takes the first ones")
        if runs == 0:
            self._warn(("num_runs",), "0 is one run, as in Letta Evals")
        runs = self._options.get("trials") or runs or 1
        target = TargetSection(self._files, raw, self._options, self._environment, self.report, self._warn)
        variants = target.variants(to_run, self.take)
        if target.cached and runs > 1:
            self.report(("num_runs",), "num_runs: recorded results can be replayed once only, expected 1")
        self._look(gate)
        cases = self._cases(evaluators, limit, target)
        if to_run and not self._files.refused:
            for spec in evaluators:
                self._built(spec)
        settings = self._settings(runs, target)
        document = {key: value for key, value in raw.items() if key != "target"}
        document |= {"graders": graders, "target": target.document()}
        exports = self._exports()
        self._findings.refuse(f"Invalid suite {self._path}", cases)
        return Suite(
            name=name,
            dialect=FORMAT.name,
            source=self._path,
            cases=cases,
            variants=variants,
            evaluators=evaluators,
            pass_criteria=PassCriteria(errored_evaluators="error", spoiling_errors=_SPOILING),
            run=settings,
            exports=exports,
            gate=gate,
            target_chosen=True,
            document=document,
            secrets=literal_secrets(raw),
            warnings=self._findings.warnings,
            files=self._used,
        )

    def note(self, place: Place, message: str, *, unread: bool = True) -> None:
        """A mistake with --strict, else a warning; usually about a key that nothing reads."""
        if self._options.get("strict"):
            self.report(place, message)
        elif unread:
            self._findings.warn_of_stranger(place, message)
        else:
            self._warn(place, message)

    def _look(self, gate: Mapping[str, Any] | None) -> None:
        """Warn about what is allowed but most likely a mistake."""
        for place, message in (*fractions(gate), *values_out_of_reach(self._raw.get("gate"))):
            self._warn(place, message)

    def _unknown_keys(self) -> None:
        usable = [key for key in SUITE_KEYS if key != "sandbox"]
        isolated = set(isolating(self._raw, usable))
        for key in isolated:
            self.report(steps_of(key), refusal(key, usable))
        target = self._raw.get("target")
        refused = set(isolating(target, OF_TARGET, OF_PROGRAMS))
        for key in refused:
            self.report(("target", *steps_of(key)), refusal(key, OF_TARGET))
        for key in target if isinstance(target, dict) else ():
            if key not in OF_TARGET and key not in refused:
                self.note(("target", str(key)), f"nothing reads this key{did_you_mean(str(key), OF_TARGET)}")
        for key in self._raw:
            if key not in SUITE_KEYS and key not in isolated:
                self.note((key,), f"nothing reads this key{did_you_mean(key, SUITE_KEYS)}")
        if "grader" in self._raw and "graders" not in self._raw:
            self._warn(("grader",), "expected 'graders'; this one is read as the only grader, named 'default'")
        elif "grader" in self._raw:
            self.note(("grader",), "nothing reads this key beside 'graders'")
        if "gate" in self._raw and self._raw.get("reward") is not None:
            self.note(("reward",), "nothing reads this key beside a 'gate'")

    def _text(self, key: str) -> str:
        value = self._raw.get(key)
        if not isinstance(value, str) or not value:
            self.report(
                (key,),
                f"{key}: expected text, " + (f"found {as_written(value)}" if key in self._raw else "it is missing"),
            )
            return ""
        return value

    def _count(self, key: str, default: int, least: int) -> int:
        value = self._raw.get(key)
        if value is None:
            return default
        number = whole_number_in(value)
        if number is None or number < least:
            self.report((key,), f"{key}: expected a whole number from {least}, found {as_written(value)}")
            return default
        return number

    def _graders(self) -> dict[str, Any]:
        graders = self._raw.get("graders")
        if graders is None and isinstance(self._raw.get("grader"), dict):
            return {"default": self._raw["grader"]}
        if not isinstance(graders, dict) or not graders:
            self.report(("graders",), "graders: expected a mapping with at least one grader")
            return {}
        return graders

    def _gate(self, keys: list[str]) -> dict[str, Any] | None:
        if "gate" not in self._raw:
            if self._raw.get("reward") is None:
                self.report(("gate",), "gate: it is missing, expected a gate or a reward")
            else:
                return self._reward(keys)
            return None
        if not keys:
            return None
        for place, message in unread_gate_keys(self._raw["gate"]):
            self.note(place, message)
        gate = checked_gate(self._raw["gate"], keys, self.report)
        rate = self._options.get("max_error_rate")
        return gate if gate is None or rate is None else {**gate, "max_error_rate": rate}

    def _reward(self, keys: list[str]) -> dict[str, Any] | None:
        reward = self._raw["reward"]
        kind = reward.get("kind") if isinstance(reward, dict) else None
        keys_of_kind = _REWARD_KEYS.get(kind, ()) if isinstance(kind, str) else ()
        for key in reward if keys_of_kind else ():
            if key not in keys_of_kind:
                self.note(("reward", str(key)), f"nothing reads this key{did_you_mean(str(key), keys_of_kind)}")
        if kind == "metric" and reward.get("metric_key") is None:
            self.report(("reward", "metric_key"), "metric_key: it is missing, expected the name of a grader")
            return None
        if kind == "metric":
            key = str(reward["metric_key"])
            if keys and key not in keys:
                known = ", ".join(keys)
                self.note(  # published suites have such a reward; it is not measured, so the run exits with 3
                    ("reward", "metric_key"),
                    f"metric_key: no grader {key!r}{did_you_mean(key, keys)} (there are: {known})",
                    unread=False,
                )
            return {"kind": "reward", "metric_key": key}
        if kind == "custom" and isinstance(reward.get("function"), str):
            function = self._files.function(reward["function"], ("reward", "function"))
            return {"kind": "reward", "metric_key": REWARD, "function": function}
        self.report(
            ("reward",), "reward: expected {kind: metric, metric_key} or {kind: custom, function: file.py:name}"
        )
        return None

    def _cases(self, evaluators: list[EvaluatorSpec], limit: int, target: TargetSection) -> Iterable[EvalCase]:
        named = self._text("dataset")
        tags = [] if self._raw.get("sample_tags") is None else self._raw["sample_tags"]
        if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
            self.report(("sample_tags",), f"sample_tags: expected a list of texts, found {as_written(tags)}")
            tags = []
        if not named:
            return ()
        path = self._files.path(named, ("dataset",))
        if not os.path.isfile(path):
            self.report(("dataset",), f"there is no dataset file {named!r}{near_file(self._path.parent / named)}")
            return ()
        declared = {spec.name: spec.config["rubric_vars"] for spec in evaluators if spec.config.get("rubric_vars")}
        rubrics = [spec for spec in evaluators if spec.type == "rubric_template"]
        selection = Selection(
            tags,
            limit,
            declared,
            bool(self._options.get("allow_empty")),
            target.recorded_inputs,
            {spec.name: lru_cache(64)(partial(_names_in, spec)) for spec in rubrics},
            bool(self._options.get("strict_rubric")),
            "these cannot be judged, as since letta-evals 0.17; {{ is a brace" if self._newer else "it stays as it is",
            [spec.name for spec in evaluators if spec.type in NEED_TRUTH],
            self._warn,
        )
        try:
            self._used.append(path)
            return Samples(path, self._folder, selection, self._files.boundary)
        except InputError as error:
            self._findings.add(error)
            return ()

    def _built(self, spec: EvaluatorSpec) -> None:
        place: Place = ("graders", spec.name) if spec.name != REWARD else ("reward",)
        self.take(place, partial(build_evaluator, spec.type, spec.config))
        if spec.extractor is not None:
            users = spec.extractor.type == "python_extractor"
            inside = place if users else (*place, "extractor_config")
            self.take(inside, partial(build_extractor, spec.extractor.type, spec.extractor.config))

    def _exports(self) -> list[Plugin]:
        """Where the original's result files should be written, by the command line or else the suite."""
        named, own = self._options.get("output"), self._raw.get("output")
        if own is not None and (not isinstance(own, str) or "\0" in own):
            self.report(("output",), f"output: expected a folder, found {as_written(own)}")
            own = None
        folder = Path(named).absolute() if named else self._folder / own if isinstance(own, str) and own else None
        if folder is None:
            return []
        if os.path.exists(folder) and not os.path.isdir(folder):
            self.report(("output",), f"output: expected a folder, found the file {str(folder)!r}")
        dataset = self._folder / str(self._raw.get("dataset"))
        if os.path.realpath(dataset) == os.path.realpath(folder / "results.jsonl"):
            self.report(("output",), "output: results.jsonl there is the dataset, expected another folder")
        return [Plugin("letta_results", {"path": str(folder)})]

    def _settings(self, runs: int, target: TargetSection) -> RunSettings:
        return RunSettings(
            max_concurrency=self._count("max_concurrent", _CONCURRENT, 1),
            trials=runs,
            retry=RetryRule(target.attempts, ["*"], 1.0) if target.attempts > 1 else RetryRule(),
        )


def _names_in(spec: EvaluatorSpec, rubric: str | None = None) -> frozenset[str]:
    """The names that a rubric uses, by default the judge's own."""
    doubled = spec.config.get("braces") == "doubled"
    try:
        return frozenset(names_in_template(rubric or spec.config["prompt"], doubled=doubled))
    except ValueError:
        # The prompt's own mistake is already reported, and a mistake in a sample's rubric is that sample's error.
        return frozenset()
