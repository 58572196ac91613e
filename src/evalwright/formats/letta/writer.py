"""A suite of agents and graders as a Letta suite: `suite.yaml` and `data.jsonl`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec

from evalwright.errors import Problem
from evalwright.files import yaml
from evalwright.formats.letta.graders import TOOL_GRADERS
from evalwright.formats.letta.totals import REWARD
from evalwright.formats.shared.gates import written_gate
from evalwright.formats.shared.output import OutputFolder, Written
from evalwright.formats.shared.portable_paths import Places
from evalwright.model.plan import EvaluatorSpec, Plugin
from evalwright.model.snapshot import Case, snapshot
from evalwright.model.suite import Suite
from evalwright.registry import PREMADE

__all__ = ["write_letta"]

SUITE, DATA = "suite.yaml", "data.jsonl"
_OWN_NAMES = {ours: theirs for theirs, ours in TOOL_GRADERS.items()}
_OF_TARGET = ("agent_id", "agent_script")
_OF_SUITE = ("setup_script", "cleanup")


def write_letta(suite: Suite, folder: Path, output: OutputFolder) -> Written:
    places, losses = Places(suite.source, folder), list[Problem]()
    file = output.binary(folder / DATA)
    for case in suite.cases:
        file.write(msgspec.json.encode(_sample(snapshot(case))) + b"\n")
    text = yaml.dump(_document(suite, places, losses))
    output.text(folder / SUITE).write(yaml.schema_line("letta") + text)
    return Written(folder / SUITE, losses=losses)


def _sample(case: Case) -> dict[str, Any]:
    extra = dict(case.extra)
    sample: dict[str, Any] = {"id": extra.pop("id", case.id), "input": case.input}
    sample |= extra.pop("unknown", {})
    sample |= {key: value for key, value in extra.items() if value is not None}
    if case.tags:
        sample["tags"] = case.tags
    if case.metadata:
        sample["metadata"] = case.metadata
    return sample


def _document(suite: Suite, places: Places, losses: list[Problem]) -> dict[str, Any]:
    described = suite.document.get("eval", {})
    document: dict[str, Any] = {"name": suite.name}
    if isinstance(described, dict) and described.get("description"):
        document["description"] = described["description"]
    first = suite.variants[0].config
    document |= {"dataset": DATA, "target": _target(suite, places)}
    document |= {key: _code(first[key], places) for key in _OF_SUITE if key in first}
    graders = {spec.name: _grader(spec, places, losses) for spec in suite.evaluators if spec.name != REWARD}
    document["graders"] = {name: grader for name, grader in graders.items() if grader}
    gate = dict(suite.gate or {})
    if gate.get("kind") == "claims":
        losses.append(Problem("suite", "Letta gates have no error rate", key="gate"))
        gate = dict(gate["conditions"] or {})
    if gate.get("kind") == "reward":
        composer = next((spec for spec in suite.evaluators if spec.name == REWARD), None)
        document["reward"] = (
            {"kind": "metric", "metric_key": gate["metric_key"]}
            if composer is None
            else {"kind": "custom", "function": _code(composer.config["function"], places)}
        )
    elif gate:
        if gate.pop("max_error_rate", None) is not None:
            losses.append(Problem("suite", "is an option of the command line there", key="gate.max_error_rate"))
        document["gate"] = written_gate(gate)
    else:
        losses.append(Problem("suite", "Letta suites need a gate", key="gate"))
    if suite.run.trials != 1:
        document["num_runs"] = suite.run.trials
    document["max_concurrent"] = suite.run.max_concurrency
    return document


def _target(suite: Suite, places: Places) -> dict[str, Any]:
    first, config = suite.variants[0], suite.variants[0].config
    kind = "letta_agent" if any(key in config for key in _OF_TARGET) else "letta_code"
    target: dict[str, Any] = {"kind": kind}
    target |= {key: _code(config[key], places) for key in _OF_TARGET if key in config}
    if "cached" in config:
        target["backend"] = f"replay:{config['cached']}"
    elif "backend" in config:
        target["backend"] = _backend(config["backend"], config.get("folder", "."), places)
    models = list(dict.fromkeys(v.config["model"] for v in suite.variants if "model" in v.config))
    if models:
        target["model_handles"] = models
    if suite.run.retry.max_attempts > 1:
        target["max_retries"] = suite.run.retry.max_attempts - 1
    target["timeout"] = first.timeout_seconds
    return target


def _backend(named: str, folder: str, places: Places) -> str:
    path, colon, name = named.rpartition(":")
    beside = Path(folder) / path
    return f"{places.near(str(beside))}:{name}" if colon and path.endswith(".py") and os.path.isfile(beside) else named


def _code(value: Any, places: Places) -> Any:
    """`file.py:name` relative to the new folder."""
    return places.near(value) if isinstance(value, str) else value


def _grader(spec: EvaluatorSpec, places: Places, losses: list[Problem]) -> dict[str, Any] | None:
    if spec.type in _OWN_NAMES:
        grader = {"kind": "tool", "function": _OWN_NAMES[spec.type]}
    elif spec.type in PREMADE and not spec.config:
        grader = {"kind": "tool", "function": spec.type}
    elif spec.type == "python_grader":
        grader = {"kind": "tool", "function": places.near(spec.config["function"])}
    elif spec.type == "rubric_template":
        config = {k: value for k, value in spec.config.items() if k not in ("max_attempts", "braces", "wrapper")}
        unread = config.pop("unknown_names", None)
        if unread is not None and "braces" not in spec.config:
            losses.append(Problem("suite", "becomes the option --strict-rubric", key=f"evaluators.{spec.name}"))
        grader = {"kind": "model_judge", **config, "max_retries": spec.config.get("max_attempts", 6) - 1}
    else:
        losses.append(Problem("suite", f"Letta has no grader like {spec.type!r}", key=f"evaluators.{spec.name}"))
        return None
    return grader | _extractor(spec.extractor, places)


def _extractor(extractor: Plugin | None, places: Places) -> dict[str, Any]:
    if extractor is None:
        return {}
    if extractor.type == "python_extractor":
        keys: dict[str, Any] = {"extractor": places.near(extractor.config["function"])}
        config = extractor.config.get("config")
    else:
        keys, config = {"extractor": extractor.type}, extractor.config
    return keys | ({"extractor_config": config} if config else {})
