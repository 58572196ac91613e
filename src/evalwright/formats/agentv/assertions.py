"""Evaluators as AgentEvals files write them, converted to our evaluators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from evalwright.errors import InputError, did_you_mean
from evalwright.evaluators.build import build_evaluator, config_doubts
from evalwright.evaluators.tools.trajectory import TrajectoryCall
from evalwright.evaluators.values.field_accuracy import Field
from evalwright.files.boundary import OutsideError
from evalwright.files.key_paths import as_written
from evalwright.files.numbers import is_number
from evalwright.formats.agentv.aggregators import read_aggregator
from evalwright.formats.agentv.booleans import boolean_mistake, meant
from evalwright.formats.agentv.custom_types import custom_command
from evalwright.formats.agentv.message_files import Files
from evalwright.formats.agentv.notes import Notes
from evalwright.formats.agentv.prompts import prompt_config
from evalwright.formats.agentv.rubrics import rubric_items
from evalwright.formats.agentv.shorthands import Environment
from evalwright.formats.agentv.specs import Spec, spec_name, weighs_texts, weight_in
from evalwright.formats.agentv.targets_file import Targets
from evalwright.formats.agentv.templates import with_templates
from evalwright.formats.agentv.vocabulary import (
    AGENT_JUDGES,
    ALIASES,
    COMMON,
    MEMBERS,
    NEWER_CODE,
    NEWER_KEYS,
    OF_MODEL,
    OWN_KEYS,
    READ,
    TEXT_CHECKS,
    TYPES,
    snake_keys,
)
from evalwright.registry import PREMADE
from evalwright.session import environment

__all__ = ["FIELD_AGGREGATIONS", "Evaluators"]

_REQUIRED = 0.8
_NEGATABLE = ("text_check", "javascript_regex")
FIELD_AGGREGATIONS = ("weighted_average", "all_or_nothing", "minimum")


class Evaluators:
    """Reads lists of evaluators; every mistake is reported with its path."""

    def __init__(
        self,
        files: Files,
        folder: str,
        judges: Mapping[str, Any],
        targets: Targets | None,
        timeout_seconds: float | None,
        *,
        put: Environment | None = None,
        threshold: float | None = None,
    ) -> None:
        self._threshold = _REQUIRED if threshold is None else threshold
        self.required: float = self._threshold
        """The score that an evaluator needs if it is `required`, and names no other."""
        self._files, self._folder, self._judges, self._targets = files, folder, judges, targets
        self._timeout, self._put = timeout_seconds, put  # variables are only put into newer files
        self.variables: dict[str, str] = {}
        """The variables that judging programs get because the file lists them."""

    def of_case(self, threshold: float | None) -> None:
        """Read the evaluators of a case that passes from this score on; None if it says nothing of its own."""
        self.required = self._threshold if threshold is None else threshold

    def read(self, raw: Any, place: str, report: Notes, *, named: bool = True) -> list[Spec]:
        """The specs of a list. Without `named` (an `assert` list), names are generated, and strings are rubrics."""
        if not isinstance(raw, list):
            report(place, f"expected a list of evaluators, found {as_written(raw)}")
            return []
        specs = []
        entries = [*with_templates(raw, place, self._files, self._put, report)]
        texts = [item.strip() for item, _ in entries if isinstance(item, str) and item.strip()]
        if texts and not named:
            together = self._rubric({}, place, "rubric", report, texts, place)
            specs.append({**together, "weight": float(len(texts))} if weighs_texts(place) else together)
        for item, at in entries:
            if isinstance(item, dict):
                spec = self._spec_of(item, at, report, named=named)
                if spec is not None:
                    specs.append(spec)
            elif named or not isinstance(item, str):
                report(at, f"expected a mapping, found {as_written(item)}")
            elif not item.strip():
                report.warn(at, "a criterion without text is left out")
        for name, count in Counter(spec["name"] for spec in specs).items():
            if count > 1:
                report.warn(place, f"{count} evaluators are named {name!r}; all of them are used")
        return specs

    def of_rubrics(self, raw: Any, report: Notes) -> Spec | None:
        """The evaluator for a case's `rubrics`."""
        return self._rubric({}, "rubrics", "rubric", report, raw, "rubrics")

    def default(self) -> Spec:
        """The judge of a case without any evaluators."""
        return {"name": "llm_judge", "type": "criteria_judge", "config": {"judges": self._judges}}

    def _spec_of(self, raw: dict[str, Any], place: str, report: Notes, *, named: bool) -> Spec | None:
        written = raw.get("type")
        kind = str(written).replace("-", "_") if isinstance(written, str) else ""
        negated = kind.startswith("not_")
        kind = kind.removeprefix("not_")
        if kind in AGENT_JUDGES:
            seen = "sees the answer, the tool calls and the changed files, and opens no files by itself as in AgentV"
            report.warn(f"{place}.type", f"{written}: this judge {seen}")
        kind = ALIASES.get(kind, kind)
        custom = None if kind in (*TYPES, *PREMADE) else custom_command(str(written), self._files)
        if custom is not None:
            raw, kind = {**raw, "type": "script", "name": raw.get("name", written), "script": custom}, "code_judge"
        if kind not in TYPES and kind not in PREMADE:
            report(f"{place}.type", f"unknown type {written!r} of an evaluator{did_you_mean(kind, TYPES + PREMADE)}")
            return None
        name = raw.get("name", raw.get("metric"))
        if not isinstance(name, str) or not name.strip():
            if named:
                report(f"{place}.name", f"name: an evaluator of type {kind!r} needs a name")
                return None
            name = spec_name(str(written), raw)
        spec = self._spec_of_kind(kind, raw, place, name, report)
        if spec is None:
            return None
        spec["weight"] = weight_in(raw, place, name, report)
        required = self._required_score(raw, place, report)
        if required is not None:
            spec["required"] = required
        if mistake := boolean_mistake("negate", raw.get("negate")):
            report(f"{place}.negate", mistake)
        if negated or raw.get("negate") is True:
            if spec["type"] not in _NEGATABLE:
                report(f"{place}.negate", f"negate: {name!r} is no check of a text, and only these can be negated here")
                return None
            spec["config"] = {**spec["config"], "negate": True}
        return spec if self._built(spec, place, report) else None

    def _spec_of_kind(self, kind: str, raw: dict[str, Any], place: str, name: str, report: Notes) -> Spec | None:
        if kind == "llm_judge" and raw.get("rubrics") is not None:
            kind = "rubric"
        if kind in READ:
            report.unknown_keys(place, raw, COMMON | READ[kind])
        if kind == "rubric":
            key = "rubrics" if "rubrics" in raw or "criteria" not in raw else "criteria"
            spec = self._rubric(raw, place, name, report, raw.get(key), f"{place}.{key}")
            return spec if spec["config"]["rubrics"] else None
        if kind == "llm_judge":
            return {"name": name, "type": "criteria_judge", "config": self._judge(raw, place, report)}
        if kind == "code_judge":
            return {"name": name, "type": "code_judge", "config": self._code(raw, place, report)}
        if kind == "composite":
            return self._composite(raw, place, name, report)
        if kind in TEXT_CHECKS:
            return self._text_check(kind, raw, place, name, report)
        newer = NEWER_KEYS.get(kind, {})
        own_keys = snake_keys({key: value for key, value in raw.items() if key not in COMMON})
        settings = {newer.get(key, key): value for key, value in own_keys.items()}
        own = settings.pop("config", None) or {}
        if not isinstance(own, dict):
            report(f"{place}.config", f"config of {name!r}: expected a mapping, found {as_written(own)}")
            return None
        config = {**{str(key): value for key, value in own.items()}, **settings}
        if kind == "tool_trajectory":
            return self._trajectory(config, place, name, report)
        if kind in PREMADE:
            return {"name": name, "type": kind, "config": config}
        known = OWN_KEYS[kind]
        report.unknown_keys(place, config, known)
        if "fields" in config:
            config["fields"] = report.with_known_keys(f"{place}.fields", config["fields"], Field.__struct_fields__)
        if kind == "field_accuracy" and config.get("aggregation", FIELD_AGGREGATIONS[0]) not in FIELD_AGGREGATIONS:
            message = f"{name!r}: unknown aggregation {config.pop('aggregation')!r}, {FIELD_AGGREGATIONS[0]} is taken"
            report.warn(f"{place}.aggregation", f"{message} (there are: {', '.join(FIELD_AGGREGATIONS)})")
        return {"name": name, "type": kind, "config": {key: value for key, value in config.items() if key in known}}

    def _trajectory(self, config: dict[str, Any], place: str, name: str, report: Notes) -> Spec | None:
        report.unknown_keys(place, config, OWN_KEYS["tool_trajectory"])
        config = {key: value for key, value in config.items() if key in OWN_KEYS["tool_trajectory"]}
        mode = config.get("mode", "any_order")
        counts = mode == "any_order"
        if not counts and config.pop("minimums", None):
            report.warn(
                f"{place}.minimums", f"minimums of {name!r} are not read: they need the mode any_order, not {mode}"
            )
        if "expected" not in config and not (counts and "minimums" in config):
            report.leave_out(place, f"{name!r} names no calls: {'minimums or ' * counts}expected")
            return None
        if isinstance(calls := config.get("expected"), list):
            calls = [snake_keys(call) if isinstance(call, dict) else call for call in calls]
            config["expected"] = report.with_known_keys(f"{place}.expected", calls, TrajectoryCall.__struct_fields__)
        if self._put is not None or "assert" in place:
            config = {"args_match": "exact", **config}  # AgentV 2.7 compared only the named arguments
        return {"name": name, "type": "tool_trajectory", "config": config}

    def _work_folder(self, named: Any, place: str, report: Notes) -> str | None:
        if not isinstance(named, str):
            report(place, f"cwd: expected the name of a folder, found {as_written(named)}")
            return None
        try:
            folder = self._files.folder(named)
        except OutsideError as error:
            report(place, f"cwd: {error}")
            return None
        if folder is None:
            report(place, f"there is no folder {named!r}")
        return None if folder is None else str(folder)

    def _code(self, raw: dict[str, Any], place: str, report: Notes) -> dict[str, Any]:
        script = raw.get("script") if raw.get("command") is None else raw["command"]
        cwd = self._folder
        if raw.get("cwd") is not None:
            cwd = self._work_folder(raw["cwd"], f"{place}.cwd", report) or cwd
        config: dict[str, Any] = {"script": script, "cwd": cwd, "lenient": True}
        if str(raw.get("type")).replace("-", "_") in NEWER_CODE:
            config["newer"] = True
        own = COMMON | {"script", "command", "cwd", "target"}
        named = raw.get("env")
        # otherwise it is a setting of the script's own
        if isinstance(named, list) and all(isinstance(name, str) for name in named):
            config["env"] = named
            own |= {"env"}
            known = environment()
            self.variables |= {name: known[name] for name in named if known.get(name)}
            if unset := [name for name in named if name not in known]:
                report.warn(f"{place}.env", f"variables that are not set here: {', '.join(unset)}")
        if raw.get("target") not in (None, False):
            report.warn(f"{place}.target", "target: programs that judge cannot call models here")
        stray = {k: v for k, v in raw.items() if k not in own}
        if "newer" in config and isinstance(stray.get("config"), dict):  # AgentV 2.7 gave them below `config`
            stray |= stray.pop("config")
        if script is None or script == [] or (isinstance(script, str) and not script.strip()):
            report(f"{place}.script", "script: expected a list of texts with at least one, or a text")
            config["script"] = ["true"]
        if self._timeout is not None:
            config["timeout_seconds"] = self._timeout
        return config | ({"config": stray} if stray else {})

    def _judge(self, raw: dict[str, Any], place: str, report: Notes) -> dict[str, Any]:
        config: dict[str, Any] = {"judges": self._judges}
        newer = str(raw.get("type")).replace("-", "_") == "llm_grader"
        config |= prompt_config(raw.get("prompt"), f"{place}.prompt", self._files, report, newer=newer)
        if "prompt_command" in config:
            config.setdefault("folder", self._folder)
        key = "target" if "target" in raw else "provider"
        target = raw.get(key)
        if target is not None and not isinstance(target, str):
            report(f"{place}.{key}", f"{key}: expected the name of a target, found {as_written(target)}")
        elif target is not None:
            config["target"] = target
            try:
                if self._targets is not None:
                    self._targets.chosen(target)
            except InputError as error:
                report(f"{place}.{key}", error.listed[0].message)
        settings: Any = {} if raw.get("config") is None else raw["config"]
        if not isinstance(settings, dict):
            report(f"{place}.config", f"config: expected a mapping, found {as_written(settings)}")
            settings = {}
        if "prompt_command" in config:
            config["prompt_config"] = {**settings, **config.get("prompt_config", {})}
        else:
            report.unknown_keys(f"{place}.config", settings, OF_MODEL)
        all_settings = {**settings, **raw}
        return config | {key: all_settings[key] for key in OF_MODEL if key in all_settings}

    def _rubric(self, raw: dict[str, Any], place: str, name: str, report: Notes, rubrics: Any, at: str) -> Spec:
        """The evaluator at `place` for the rubrics that are written `at` another place."""
        items = rubric_items(rubrics, at, name, report)
        config = self._judge({k: v for k, v in raw.items() if k != "prompt"}, place, report)
        return {"name": name, "type": "rubric_checks", "config": {**config, "rubrics": items}}

    def _composite(self, raw: dict[str, Any], place: str, name: str, report: Notes) -> Spec | None:
        member_keys = [key for key in MEMBERS if raw.get(key) is not None]
        key = member_keys[0] if member_keys else MEMBERS[-1]
        for other in member_keys[1:]:
            report.warn(f"{place}.{other}", f"{other} is not used: there is {key}, too")
        mistakes = len(report.errors)
        members = self.read(raw[key], f"{place}.{key}", report, named=key == MEMBERS[-1]) if raw.get(key) else []
        if not members:
            if len(report.errors) == mistakes:
                report(f"{place}.{key}", f"evaluators: the composite {name!r} needs at least one readable member")
            return None
        if gating := [spec["name"] for spec in members if "required" in spec]:
            report.warn(f"{place}.{key}", f"required of {', '.join(gating)} is not used: it is a member of {name!r}")
        rule = read_aggregator(raw.get("aggregator"), members, f"{place}.aggregator", self._files, report)
        if "prompt" in rule:
            rule["judges"] = self._judges
        config = {
            "evaluators": members,
            "folder": self._folder,
            "errors": "count",
            **({"aggregator": rule} if rule else {}),
        }
        return {"name": name, "type": "composite", "config": config}

    def _text_check(self, kind: str, raw: dict[str, Any], place: str, name: str, report: Notes) -> Spec | None:
        value = raw.get("value")
        if kind != "is_json" and value in (None, "", []):
            report.leave_out(f"{place}.value", f"{name!r} of type {kind!r} needs a value")
            return None
        if kind != "regex":
            return {"name": name, "type": "text_check", "config": {"check": kind, "value": value}}
        flags = {} if raw.get("flags") is None else {"flags": raw["flags"]}
        return {"name": name, "type": "javascript_regex", "config": {"value": value, **flags}}

    def _required_score(self, raw: Mapping[str, Any], place: str, report: Notes) -> float | None:
        """The score that an evaluator needs if it is `required`: its `min_score`, or the passing score."""
        value, least = raw.get("required"), raw.get("min_score")
        if least is not None and not _is_share(least):
            report(f"{place}.min_score", f"min_score: expected a number above 0 and up to 1, found {as_written(least)}")
            least = None
        if value is None or value is False:
            if least is not None:
                report.warn(f"{place}.min_score", "min_score gates only what is 'required: true'")
            return None
        if value is True:
            return float(least or self.required) or None  # any score reaches 0
        if _is_share(value):
            return float(least or value)
        expected = "true or a number above 0 and up to 1"
        report(f"{place}.required", f"required: expected {expected}, found {as_written(value)}{meant(value)}")
        return None

    def _built(self, spec: Spec, place: str, report: Notes) -> bool:
        """Whether the evaluator can be built; its mistakes, and doubts about it, are reported."""
        try:
            build_evaluator(spec["type"], spec["config"])
        except InputError as error:
            for problem in error.listed:
                report(f"{place}.{problem.key}".rstrip("."), f"{spec['name']}: {problem.message}")
            return False
        for doubt in config_doubts(spec["type"], spec["config"]):
            report.warn(f"{place}.{doubt.key}", f"{spec['name']!r}: {doubt.message}")
        return True


def _is_share(value: Any) -> bool:
    return is_number(value) and 0 < value <= 1
