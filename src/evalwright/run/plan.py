"""From a suite and the user's choices to a plan and its cases; nothing is run and nothing is written here."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from evalwright.errors import InputError, did_you_mean
from evalwright.files.masker import Masker, is_secret
from evalwright.files.paths import import_folders
from evalwright.model.plan import MOST_TRIALS, EvaluatorSpec, Executor, Plan, Variant
from evalwright.model.score_rule import ScoreRule
from evalwright.model.snapshot import evaluator_digests
from evalwright.registry import load
from evalwright.run.options import RunOptions
from evalwright.run.selection import lines_of_warnings
from evalwright.run.used_files import file_digest_of

if TYPE_CHECKING:
    from evalwright.model.suite import Suite

__all__ = ["config_hash", "documents", "may_call_models", "plan_of", "score_rules"]

_USUAL = 0.0, 1.0
"""The range of scores of most evaluators."""


def plan_of(suite: Suite, options: RunOptions, now: datetime | None = None) -> Plan:
    """The plan of a new run; the store counts its cases and may add a suffix to its id."""
    started = now or datetime.now(UTC)
    if max(options.trials or 0, suite.run.trials, *(v.trials or 0 for v in suite.variants)) > MOST_TRIALS:
        raise InputError(f"trials: expected at most {MOST_TRIALS:,} repeats of a case")
    settings: dict[str, Any] = {
        name: value
        for name, value in (("trials", options.trials), ("max_concurrency", options.concurrency))
        if value is not None
    }
    if options.keep_going:
        settings["stop_after_errors"] = 0
    if options.no_index:
        settings["index"] = False
    if options.executor is not None:
        settings["executor"] = _executor(suite, options.executor)
    shard, suffix = options.shard, ""
    if shard is not None:
        shard, suffix = (
            msgspec.structs.replace(shard, suite_sha256=_hash_without_secrets(suite), leased=options.lease is not None),
            f"-shard-{shard.index}",
        )
    return Plan(
        run_id=f"{started:%Y-%m-%dT%H-%M-%S}_{suite.name}{suffix}",
        name=suite.name,
        dialect=suite.dialect,
        started_at=started,
        config_path=str(suite.source.resolve()),
        config_hash=config_hash(suite),
        cases_total=0,
        variants=_variants(suite, None if suite.target_chosen else options.target),
        evaluators=suite.evaluators,
        evaluator_digests=evaluator_digests(suite.evaluators, file_digest_of),
        score_rules=score_rules(suite.evaluators),
        pass_criteria=suite.pass_criteria,
        run=msgspec.structs.replace(suite.run, **settings),
        import_paths=import_folders(suite.source),
        metadata=suite.metadata,
        store=suite.store,
        mirrors=suite.mirrors,
        exports=suite.exports,
        workspace=suite.workspace,
        prices=suite.prices,
        evaluators_by_case=suite.evaluators_by_case,
        gate=suite.gate,
        totals=suite.totals,
        shard=shard,
        warnings=lines_of_warnings(suite.warnings),
    )


def _executor(suite: Suite, name: str) -> Executor | msgspec.UnsetType:
    """The executor that the command line names, with the suite's settings for it."""
    if name == "local":
        return msgspec.UNSET
    return suite.run.executor if suite.run.executor is not msgspec.UNSET else Executor(name)


def _variants(suite: Suite, target: str | None) -> list[Variant]:
    """All variants; with `target`, only the one of that name, or all of them calling `module:callable`."""
    if target is None:
        return suite.variants
    if ":" in target:
        return [
            msgspec.structs.replace(v, adapter="python_function", config={**v.config, "target": target})
            for v in suite.variants
        ]
    named = [v for v in suite.variants if v.name == target]
    if not named:
        known = [v.name for v in suite.variants]
        raise InputError(
            f"no target {target!r}{did_you_mean(target, known)} (expected module:callable or one of {', '.join(known)})"
        )
    return named


def may_call_models(plan: Plan) -> bool:
    """Whether a target or an evaluator of the plan may call models, or should do so, so that it matters which ones."""
    from evalwright.evaluators.build import declared
    from evalwright.targets.build import target_calls_models

    return (
        plan.evaluators_by_case
        or plan.run.places_judges
        or any(declared("evaluators", spec.type).asks is not None for spec in plan.evaluators)
        or any(target_calls_models(variant.adapter) for variant in plan.variants)
    )


def score_rules(specs: Iterable[EvaluatorSpec]) -> dict[str, ScoreRule]:
    """The rules of evaluators whose types declare any; runs no code of the user, and leaves out types not installed."""
    rules = {}
    for spec in specs:
        with suppress(InputError, TypeError, ValueError):  # any score is allowed, or a plug-in is mistaken
            ends, least = _ends(spec), _passes_from(spec.type, spec.config)
            if ends != _USUAL or least is not None:
                rules[spec.name] = ScoreRule(*ends, least)
    return rules


def _ends(spec: EvaluatorSpec) -> tuple[float, float]:
    from evalwright.evaluators.build import build_evaluator, declared

    ends = getattr(load("evaluators", spec.type), "scores", _USUAL)
    if not isinstance(ends, tuple):  # the configuration decides
        code = declared("evaluators", spec.type).imports_code
        ends = _USUAL if code else build_evaluator(spec.type, spec.config).traits.scores
    low, high = map(float, ends)
    return low, high


def _passes_from(type_name: str, config: Mapping[str, Any]) -> float | None:
    from evalwright.evaluators.build import declared, fields_by_key

    key = declared("evaluators", type_name).passes_from
    if key is None:
        return None
    field = fields_by_key(load("evaluators", type_name)).get(key)
    value = config.get(key, None if field is None else field.default)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def documents(suite: Suite, masker: Masker) -> dict[str, bytes]:
    """The documents of a run that say what was run: the masked configuration and the hash of the unmasked one."""
    from evalwright.files.yaml import dump

    return {
        "config.yaml": dump(masker.mask_document(suite.document)).encode(),
        "config_hash.txt": config_hash(suite).encode() + b"\n",
    }


def config_hash(suite: Suite) -> str:
    """SHA-256 (hex) of the unmasked document, so that a resume sees whether it changed.

    The rows of a table are part of it, other datasets are not (evalh).
    """
    return _suite_hash(suite, suite.document)


def _hash_without_secrets(suite: Suite) -> str:
    """The same with the names of secrets instead of their values; other variables count with their values."""
    secrets = {name: value for name, value in suite.secrets.items() if is_secret(name, value)}
    return _suite_hash(suite, Masker(secrets).placeholders(suite.document))


def _suite_hash(suite: Suite, document: object) -> str:
    rendered = json.dumps(document, sort_keys=True, default=str, ensure_ascii=False)
    digest = hashlib.sha256(rendered.encode(errors="surrogatepass") + b"\n")
    for path in getattr(suite.cases, "row_files", ()):
        digest.update(file_digest_of(str(path)).encode())
    return digest.hexdigest()
