"""Shards: a run whose cases are divided among machines, each with its own run folder.

Every shard stores the plan and the cases of the whole run, so that it can be resumed and checked against the others
without them. Its number alone determines which cells are its own: nothing has to be agreed on while they run.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import UNSET

from evalwright.errors import InputError, counted
from evalwright.files.masker import Masker
from evalwright.llm.choices import ModelChoices
from evalwright.model.plan import Plan, Shard
from evalwright.model.protocols import RunWriter
from evalwright.model.snapshot import Case
from evalwright.model.summary import RunSummary, ShardCounts
from evalwright.run.differences import first_difference_in
from evalwright.run.used_files import sha256_of
from evalwright.stores.documents import reserved_words
from evalwright.stores.local_files import LocalFiles
from evalwright.stores.local_files.lines import LineEncoder
from evalwright.stores.local_files.reader import CASES
from evalwright.stores.manifest import SHARD, manifest_of, write_manifest

if TYPE_CHECKING:
    from evalwright.run.cells import RunState
    from evalwright.run.leases.lease import Lease
    from evalwright.run.options import RunOptions

__all__ = [
    "BegunShard",
    "begun_shard",
    "close_shard",
    "counts_to_merge",
    "first_difference",
    "limits_of",
    "must_need_no_lease",
    "notes_at_start",
    "share_of",
    "stored_config",
    "with_shares",
]

_NANO = 1_000_000_000


def with_shares(plan: Plan, cases: Iterable[Case], masker: Masker, documents: dict[str, bytes]) -> Iterator[Case]:
    """The cases; after the last one, the plan has their hash and its shares, and the documents have `shard.json`."""
    assert plan.shard is not None
    digest, total = hashlib.sha256(), 0
    encoder = LineEncoder(masker.keeping(reserved_words(plan)))
    for case in cases:
        digest.update(encoder.case(case))
        total += 1
        yield case
    limit = None if plan.shard.leased else plan.run.cost_limit_usd
    share = None if limit is None else share_of(limit, plan.shard, total)
    plan.shard = msgspec.structs.replace(plan.shard, cases_sha256=digest.hexdigest(), cost_limit_usd=share)
    documents[SHARD] = msgspec.json.format(msgspec.json.encode(_shard_document(plan, total)), indent=2) + b"\n"


def _shard_document(plan: Plan, total: int) -> dict[str, Any]:
    """The content of `shard.json` for other programs; ours read the plan."""
    assert plan.shard is not None
    shard: dict[str, Any] = msgspec.to_builtins(plan.shard)
    per_case = sum(map(plan.trials_of, plan.variants))
    return {
        "schema_version": "1.0",
        **shard,
        "config_hash": plan.config_hash,
        "cases_total": total,
        "cells": plan.shard.cases(total) * per_case,
        "evalwright": version("evalwright"),
        "dialect": plan.dialect,
    }


def share_of(limit: float, shard: Shard, cases: int) -> float:
    """A shard's share of a limit of the whole run, by its number of cases; the last shard gets what rounding leaves.

    Shares are whole billionths, so that all of them together equal the limit.
    """
    whole = round(limit * _NANO)
    shares = [whole * Shard(i, shard.of).cases(cases) // max(1, cases) for i in range(1, shard.of)]
    return (shares[shard.index - 1] if shard.index < shard.of else whole - sum(shares)) / _NANO


def limits_of(plan: Plan, choices: ModelChoices) -> ModelChoices:
    """This shard's share of the limits on model calls that were given for the whole run."""
    shard, cases = plan.shard, plan.cases_total
    assert shard is not None
    budget, rate = choices.budget_usd, choices.requests_per_minute
    if budget is not None:
        budget = share_of(budget, shard, cases)
    if rate is not None and shard.cases(cases):  # without cases nothing is called, and 0 is not a valid rate
        rate = share_of(rate, shard, cases)
    return replace(choices, budget_usd=budget, requests_per_minute=rate)


def notes_at_start(plan: Plan, choices: ModelChoices | None, lease: Lease | None) -> list[str]:
    """What a user should know about a shard before it runs: its cases, and its share of each limit."""
    shard = plan.shard
    assert shard is not None
    line = f"{shard}: {shard.cases(plan.cases_total):,} of {counted(plan.cases_total, 'case')}"
    if lease is not None:
        return [f"{line}; limits of all shards: {lease}"]
    share = limits_of(plan, choices or ModelChoices())
    spent = f" (${share.spent_usd:.9g} of it spent)" if share.spent_usd else ""
    shares = [
        f"run.cost_limit_usd ${shard.cost_limit_usd:.9g}" if shard.cost_limit_usd is not None else "",
        f"--budget ${share.budget_usd:.9g}{spent}" if share.budget_usd is not None else "",
        f"--requests-per-minute {share.requests_per_minute:.9g}" if share.requests_per_minute is not None else "",
    ]
    limits = ", ".join(filter(None, shares))
    return [f"{line}; its share of the limits: {limits}" if limits else line]


def must_need_no_lease(plan: Plan, choices: ModelChoices | None) -> None:
    """Raises InputError for a shard without a share of the limits that it has."""
    models = choices or ModelChoices()
    limits = {
        "run.cost_limit_usd": plan.run.cost_limit_usd,
        "--budget": models.budget_usd,
        "--requests-per-minute": models.requests_per_minute,
    }
    named = [name for name, limit in limits.items() if limit is not None]
    if plan.shard is not None and plan.shard.leased and named:
        raise InputError(
            f"{plan.shard} was begun with --lease, and has no share of {' and '.join(named)}: give --lease again, with "
            "the same ledger, or retry the merged run"
        )


class BegunShard(NamedTuple):
    """A shard that was begun by an earlier session of the same command line."""

    folder: Path
    plan: Plan
    """As the command line makes it now, with the stored run's identity: nothing else of the stored plan is executed."""

    def spent_on_models(self) -> float:
        """US dollars spent of `--budget`, which applies to the shard however often it is started."""
        from evalwright.run.model_costs import spent_on_models

        with closing(LocalFiles(self.folder.parent).read(self.folder.name)) as reader:
            return spent_on_models(reader, self.plan)


def begun_shard(
    plan: Plan, cases: Iterable[Case], options: RunOptions, masker: Masker, config: bytes
) -> BegunShard | None:
    """The shard of `plan` in the folder `options.out`, if it is there. Raises InputError for a shard of another run.

    `config` is what the run would store as its suite's configuration.
    """
    assert options.out is not None
    assert plan.shard is not None
    stored = list(_shards_in(options.out))
    if not stored:
        return None
    documents: dict[str, bytes] = {}
    plan.cases_total = sum(1 for _ in with_shares(plan, cases, masker, documents))
    for folder, other in stored:
        if difference := first_difference(plan, other, (lambda: config, partial(stored_config, folder))):
            raise InputError(
                f"{folder} contains {other.shard}, but from another run: {difference}; choose another --out, "
                "or remove it"
            )
    same_shard = [(folder, other) for folder, other in stored if other.shard and other.shard.index == plan.shard.index]
    if not same_shard:
        return None
    folder, other = same_shard[-1]
    if sha256_of(folder / CASES) != plan.shard.cases_sha256:
        raise InputError(f"{folder / CASES} was changed since the shard was begun; choose another --out, or remove it")
    return BegunShard(folder, _with_stored_identity(plan, other))


def _shards_in(folder: Path) -> Iterator[tuple[Path, Plan]]:
    store = LocalFiles(folder)
    for run_id in store.run_ids():
        with closing(store.read(run_id)) as reader:
            if reader.plan is not None and reader.plan.shard is not None:
                yield store.folder / run_id, reader.plan


def _with_stored_identity(plan: Plan, stored: Plan) -> Plan:
    return msgspec.structs.replace(
        plan,
        run_id=stored.run_id,
        config_hash=stored.config_hash,
        started_at=stored.started_at,
        cases_total=stored.cases_total,
        shard=stored.shard,
        store=stored.store,
        files=stored.files,
        warnings=stored.warnings,
        seal=stored.seal,
    )


def first_difference(one: Plan, other: Plan, configs: Iterable[Callable[[], bytes]]) -> str:
    """Why two shards are not parts of the same run, in words; empty if they are.

    `configs` return both configurations as they are stored, without secrets: they show which key differs.
    """
    assert one.shard is not None
    assert other.shard is not None
    if difference := first_difference_in(_comparable_plan(one, one.shard), _comparable_plan(other, other.shard)):
        return difference
    if one.config_hash != other.config_hash and not one.shard.suite_sha256 == other.shard.suite_sha256 != "":
        named = _differing_key(*(read() for read in configs))
        return named or f"config_hash is {other.config_hash}, not {one.config_hash}"
    return first_difference_in(one.evaluator_digests, other.evaluator_digests, "evaluator_digests")


def _differing_key(ours: bytes, theirs: bytes) -> str:
    from evalwright.files.yaml import parse

    if not ours or not theirs:
        return ""
    if ours == theirs:
        return "a variable that the suite uses has another value"
    try:
        return first_difference_in(*(parse(one, "", "true_false").value for one in (ours, theirs)))
    except InputError:  # anyone may have changed the file since
        return ""


def _comparable_plan(plan: Plan, shard: Shard) -> dict[str, Any]:
    return {
        "name": plan.name,
        "format": plan.dialect,
        "of": shard.of,
        "by": shard.by,
        "cases_total": plan.cases_total,
        "cases_sha256": shard.cases_sha256,
        "trials": plan.trials_by_variant,
        "systems": {v.name: " ".join([v.adapter, str(v.config.get("target", ""))]).strip() for v in plan.variants},
        "evaluators": {spec.name: spec.type for spec in plan.evaluators},
        "pass_criteria": msgspec.to_builtins(plan.pass_criteria),
        "gate": plan.gate,
    }


def stored_config(folder: Path) -> bytes:
    """The suite's configuration in a run folder; empty if there is none."""
    try:
        return (folder / "config.yaml").read_bytes()
    except OSError:
        return b""


def counts_to_merge(plan: Plan, summary: RunSummary, before: RunSummary | None, state: RunState | None) -> ShardCounts:
    """What a merge needs of a session on a shard, whose numbers are in `summary`; `before` is that of the sessions
    before."""
    replies = {} if before is None or before.to_merge is UNSET else before.to_merge.replies
    of_numbers = [warning for warning in summary.warnings if warning not in plan.warnings]
    return ShardCounts({**replies, **(state.replies if state is not None else {})}, of_numbers)


def close_shard(writer: RunWriter, plan: Plan, summary: RunSummary) -> list[str]:
    """At the end of a session on a shard: its manifest, if no cell is left, and what to report. Raises StorageError."""
    if summary.cells_missing:
        return []
    folder = Path(writer.location)
    # An existing one is kept: made again, it would vouch for what was damaged since.
    if folder.is_dir() and manifest_of(folder) is None:
        cells: Counter[str] = Counter()
        for variant in summary.variants:
            cells.update(variant.cells)
        write_manifest(folder, cells)
    gate = "its gate" if plan.gate is not None else "whether the run passed"
    return [f"{plan.shard} is finished; {gate} is decided when all shards are merged (evalwright merge)"]
