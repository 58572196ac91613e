"""A suite as an AgentEvals file with its targets: `EVAL.yaml` and `targets.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from evalwright.errors import Problem
from evalwright.files import yaml
from evalwright.formats.agentv.suite import TIMEOUT
from evalwright.formats.shared.output import OutputFolder, Written
from evalwright.formats.shared.portable_paths import Places
from evalwright.formats.shared.references import NAMED
from evalwright.model.plan import EvaluatorSpec
from evalwright.model.snapshot import Case, snapshot
from evalwright.model.suite import Suite
from evalwright.registry import PREMADE

__all__ = ["write_agentv"]

SUITE, TARGETS = "EVAL.yaml", "targets.yaml"
_SAME = ("field_accuracy", "execution_metrics", "latency", "cost", "token_usage", "skill_trigger")
_OF_JUDGE = ("temperature", "max_tokens")
_OF_CASE = {"target": "target", "timeout_seconds": "timeout_seconds", "pass_threshold": "threshold"}
"""Settings of a case in its `extra`, and their names under `execution`."""


def write_agentv(suite: Suite, folder: Path, output: OutputFolder) -> Written:
    """Write the suite as `EVAL.yaml` and, if it has systems, `targets.yaml`; what they cannot say is in the losses."""
    writing = _Writing(suite, folder)
    file = output.text(folder / SUITE)
    file.write(yaml.schema_line("agentv") + yaml.dump(writing.head()))
    file.write("evalcases:\n")
    empty = True
    for case in suite.cases:
        empty = False
        file.write(yaml.dump([writing.case(snapshot(case))]))
    if empty:
        file.write("[]\n")
    targets = writing.targets()
    if targets:
        output.text(folder / TARGETS).write(yaml.schema_line("agentv-targets") + yaml.dump({"targets": targets}))
    return Written(folder / SUITE, losses=writing.losses)


class _Writing:
    def __init__(self, suite: Suite, folder: Path) -> None:
        self._suite, self._places = suite, Places(suite.source, folder)
        self._config: Mapping[str, Any] = suite.variants[0].config if suite.variants else {}
        tags = suite.metadata.get("tags")
        self._file_tags: list[Any] = tags if isinstance(tags, list) else []
        self.losses: list[Problem] = []

    def head(self) -> dict[str, Any]:
        document: dict[str, Any] = {"name": self._suite.name}
        if self._suite.metadata:
            document["metadata"] = self._suite.metadata
        execution: dict[str, Any] = {}
        if self._config.get("default"):
            execution["target"] = self._config["default"]
        if self._config.get("try_seconds", TIMEOUT) != TIMEOUT:
            execution["timeout_seconds"] = self._config["try_seconds"]
        if self._suite.pass_criteria.threshold is not None:
            execution["threshold"] = self._suite.pass_criteria.threshold
        return document | ({"execution": execution} if execution else {})

    def targets(self) -> list[dict[str, Any]]:
        """The targets with their references; the folder of commands is relative to the new file."""
        targets = []
        for target in (self._config.get("targets") or {}).values():
            kept = {key: _reference(value) for key, value in target.items() if key != "api_key_env"}
            if "api_key_env" in target:
                kept["api_key"] = f"${{{{ {target['api_key_env']} }}}}"
            if target.get("provider") == "cli":
                kept["cwd"] = self._places.near(str(Path(self._config.get("folder", ".")) / target.get("cwd", "")))
            targets.append(kept)
        return targets

    def case(self, case: Case) -> dict[str, Any]:
        extra = case.extra
        entry: dict[str, Any] = {"id": case.id}
        if "load_error" in extra:
            return entry  # nothing of it was read, and it cannot be read from the new file either
        if extra.get("expected_outcome"):
            entry["expected_outcome"] = extra["expected_outcome"]
        entry["input_messages"] = extra.get("input_messages") or _input_messages(case.input)
        if extra.get("expected_messages"):
            entry["expected_messages"] = [_message(message) for message in extra["expected_messages"]]
        described = {"conversation_id": case.group, "description": case.description, "note": case.note}
        entry |= {key: value for key, value in described.items() if value is not None}
        if case.metadata:
            entry["metadata"] = case.metadata
        own_tags = (
            case.tags[len(self._file_tags) :] if case.tags[: len(self._file_tags)] == self._file_tags else case.tags
        )
        if own_tags:
            entry["tags"] = own_tags
        entry["execution"] = {name: extra[key] for key, name in _OF_CASE.items() if key in extra}
        specs = self._suite.evaluators if case.evaluators is None else case.evaluators
        listed = [self._evaluator(spec, f"case {case.id}") for spec in specs]
        evaluators = [written for written in listed if written is not None]
        if "expected_outcome" in entry:
            entry["execution"]["evaluators"] = evaluators
        elif evaluators or "expected_messages" in entry:
            entry["assertions"] = evaluators  # with them, a case needs no criterion
        else:
            entry["expected_outcome"] = self._outcome(case)
        return entry

    def _outcome(self, case: Case) -> str:
        """A substitute for the criterion, which every case of the format needs."""
        self.losses.append(
            Problem(f"case {case.id}", "AgentV needs a criterion, and the case has none", key="expected_outcome")
        )
        return case.description or case.note or case.id

    def _evaluator(self, spec: EvaluatorSpec, place: str) -> dict[str, Any] | None:
        kind = self._entry_of_kind(spec, place)
        if kind is None:
            self.losses.append(
                Problem(place, f"AgentV has no evaluator like {spec.type!r}", key=f"evaluators.{spec.name}")
            )
            return None
        entry = {"name": spec.name, **kind}
        if spec.weight != 1.0:
            entry["weight"] = spec.weight
        if spec.required is not None:
            entry["required"] = spec.required
        return entry

    def _entry_of_kind(self, spec: EvaluatorSpec, place: str) -> dict[str, Any] | None:
        config = spec.config
        if spec.type == "tool_trajectory":  # its default depends on where it is written
            return {"type": spec.type, "args_match": "superset", **config}
        if spec.type in _SAME or spec.type in PREMADE:
            return {"type": spec.type, **config}
        if spec.type == "code_judge":
            kind = "code-grader" if config.get("newer") else "code_judge"
            entry = {"type": kind, "script": config["script"], **(config.get("config") or {})}
            entry |= {"env": config["env"]} if config.get("env") else {}
            if not config.get("lenient"):
                what = "AgentV limits scores to 0 to 1, and counts replies that cannot be read as 0"
                self.losses.append(Problem(place, what, key=f"evaluators.{spec.name}"))
            return entry | ({"cwd": self._places.near(config["cwd"])} if "cwd" in config else {})
        if spec.type == "criteria_judge":
            return {"type": "llm_judge", **self._judge(config)}
        if spec.type == "rubric_checks":
            return {"type": "rubric", **self._judge(config), "rubrics": [_rubric(item) for item in config["rubrics"]]}
        if spec.type == "text_check":
            return {"type": config["check"]} | {
                key: config[key] for key in ("value", "flags", "negate") if key in config
            }
        if spec.type == "javascript_regex":
            return {"type": "regex", **config}
        return self._composite(config, place) if spec.type == "composite" else None

    def _judge(self, config: Mapping[str, Any]) -> dict[str, Any]:
        settings = {key: config[key] for key in _OF_JUDGE if key in config}
        keys = {key: config[key] for key in ("prompt", "target") if key in config}
        if config.get("criterion"):  # a prompt without placeholders is one
            keys["prompt"] = config["criterion"]
        return keys | ({"config": settings} if settings else {})

    def _composite(self, config: Mapping[str, Any], place: str) -> dict[str, Any]:
        members = [self._evaluator(_spec(raw), place) for raw in config["evaluators"]]
        composite: dict[str, Any] = {
            "type": "composite",
            "evaluators": [member for member in members if member is not None],
        }
        if "aggregator" in config:
            composite["aggregator"] = {key: value for key, value in config["aggregator"].items() if key != "judges"}
        return composite


def _input_messages(value: Any) -> Any:
    return value if isinstance(value, str) else [{"role": "user", "content": value}]


def _spec(raw: Mapping[str, Any]) -> EvaluatorSpec:
    return msgspec.convert(dict(raw), EvaluatorSpec)


def _rubric(item: Mapping[str, Any]) -> dict[str, Any]:
    rubric: dict[str, Any] = {"id": item["id"], "weight": item["weight"]}
    if item["text"]:
        rubric["expected_outcome"] = item["text"]
    if item.get("required"):
        rubric["required"] = True
    if "min_score" in item:
        rubric["min_score"] = item["min_score"] / 10
    if "ranges" in item:
        rubric["score_ranges"] = [
            {"score_range": [low, high], "expected_outcome": text} for low, high, text in item["ranges"]
        ]
    return rubric


def _message(message: dict[str, Any]) -> dict[str, Any]:
    """A message that names its files again, whose content was inserted while reading."""
    content = message.get("content")
    if not isinstance(content, list):
        return message
    blocks = [
        {"type": "file", "value": block["path"]} if isinstance(block, dict) and "path" in block else block
        for block in content
    ]
    return {**message, "content": blocks}


def _reference(value: Any) -> Any:
    """A reference as `targets.yaml` writes it; only a whole value can be one."""
    match = NAMED.fullmatch(value) if isinstance(value, str) else None
    return value if match is None else f"${{{{ {match[1]} }}}}"
