"""From a suite and the user's choices to a plan and its cases; nothing is run and nothing is written here."""

from __future__ import annotations

import fnmatch
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import msgspec

from evalwright.errors import InputError, Problem, did_you_mean
from evalwright.files.masker import Masker
from evalwright.model.case import EvalCase
from evalwright.model.plan import Plan, Variant
from evalwright.model.snapshot import Case, snapshot
from evalwright.model.suite import Suite
from evalwright.registry import load
from evalwright.run.options import RunOptions

__all__ = [
    "all_warnings",
    "any_chosen",
    "chosen_cases",
    "config_hash",
    "documents",
    "may_call_models",
    "plan_of",
    "warnings_of",
    "with_warnings",
]


MOST_TRIALS = 10_000
MOST_WARNINGS = 100


def plan_of(suite: Suite, options: RunOptions, now: datetime | None = None) -> Plan:
    """The plan of a new run; the store counts its cases and may give its id a suffix."""
    started = now or datetime.now(UTC)
    if max(options.trials or 0, suite.run.trials, *(v.trials or 0 for v in suite.variants)) > MOST_TRIALS:
        raise InputError(f"trials: expected at most {MOST_TRIALS:,} repeats of a case")
    settings = {
        name: value
        for name, value in (("trials", options.trials), ("max_concurrency", options.concurrency))
        if value is not None
    }
    return Plan(
        run_id=f"{started:%Y-%m-%dT%H-%M-%S}_{suite.name}",
        name=suite.name,
        dialect=suite.dialect,
        started_at=started,
        config_path=str(suite.source.resolve()),
        config_hash=config_hash(suite),
        cases_total=0,
        variants=_variants(suite, None if suite.target_chosen else options.target),
        evaluators=suite.evaluators,
        pass_criteria=suite.pass_criteria,
        run=msgspec.structs.replace(suite.run, **settings),
        import_paths=[str(Path.cwd()), str(suite.source.resolve().parent)],
        metadata=suite.metadata,
        store=suite.store,
        mirrors=suite.mirrors,
        exports=suite.exports,
        workspace=suite.workspace,
        prices=suite.prices,
        evaluators_by_case=suite.evaluators_by_case,
        gate=suite.gate,
        totals=suite.totals,
        warnings=warnings_of(suite.warnings),
    )


def warnings_of(found: Iterable[Problem]) -> list[str]:
    """The lines of `Plan.warnings`: a dataset with one mistake in each of a million cases is said in a hundred."""
    lines = list(dict.fromkeys(map(str, islice(found, MOST_WARNINGS + 1))))
    return [*lines[:MOST_WARNINGS], "… and more of them"] if len(lines) > MOST_WARNINGS else lines


def with_warnings(plan: Plan, suite: Suite, cases: Iterable[Case]) -> Iterator[Case]:
    """The cases; behind the last one the plan has the warnings of them all, and those that reading them added."""
    yield from cases
    plan.warnings = warnings_of(all_warnings(suite))


def all_warnings(suite: Suite) -> Iterator[Problem]:
    """What is most likely not meant in a suite and in its cases."""
    yield from suite.warnings
    yield from getattr(suite.cases, "unknown_keys", tuple)()


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
            f"no target {target!r}{did_you_mean(target, known)}: expected module:callable or one of {', '.join(known)}"
        )
    return named


def may_call_models(plan: Plan) -> bool:
    """Whether a target or an evaluator of the plan may call models, so that their keys are to be looked for."""
    from evalwright.evaluators.build import declared

    return (
        plan.evaluators_by_case
        or any(declared("evaluators", spec.type).asks is not None for spec in plan.evaluators)
        or any(hasattr(load("targets", variant.adapter), "asks") for variant in plan.variants)
    )


def documents(suite: Suite, masker: Masker) -> dict[str, bytes]:
    """The files of a run that say what was run: the masked configuration and the hash of the unmasked one."""
    from evalwright.files.yaml import dump

    return {
        "config.yaml": dump(masker.mask_document(suite.document)).encode(),
        "config_hash.txt": config_hash(suite).encode() + b"\n",
    }


def config_hash(suite: Suite) -> str:
    """SHA-256 (hex) of the unmasked document, so that a resume sees whether it changed."""
    rendered = json.dumps(suite.document, sort_keys=True, default=str, ensure_ascii=False)
    return hashlib.sha256(rendered.encode(errors="surrogatepass") + b"\n").hexdigest()


def chosen_cases(suite: Suite, options: RunOptions) -> Iterator[Case]:
    """The cases to run, in file order. Raises InputError for every mistake of the dataset, or when none fits."""
    fits, taken = _filter(options), 0
    for case in suite.cases:
        if fits(case) and (options.limit is None or taken < options.limit):
            taken += 1
            yield snapshot(case)
    if not taken and options.narrowed:
        raise InputError(f"no case matches {options.narrowed}")


def any_chosen(suite: Suite, options: RunOptions) -> bool:
    """Whether a suite has cases to run, or its author meant none. Raises InputError for mistakes on the way."""
    return not options.narrowed or any(map(_filter(options), suite.cases))


def _filter(options: RunOptions) -> Callable[[EvalCase | Case], bool]:
    tags = set(options.tags)

    def fits(case: EvalCase | Case) -> bool:
        named = not options.cases or any(_globbed(case.id, glob) for glob in options.cases)
        return named and (not tags or not tags.isdisjoint(case.tags))

    return fits


def _globbed(case_id: str, glob: str) -> bool:
    """`*`, `?`, `[...]`, alternatives in braces (not nested), and a leading `!` for all others."""
    if glob.startswith("!"):
        return not _globbed(case_id, glob[1:])
    before, opened, rest = glob.partition("{")
    inside, closed, after = rest.partition("}")
    if opened and closed:
        return any(_globbed(case_id, before + choice + after) for choice in inside.split(","))
    return fnmatch.fnmatchcase(case_id, glob)
