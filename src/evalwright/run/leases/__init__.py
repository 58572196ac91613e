"""Limits that the shards of a run share by means of a ledger, `--lease DIR|postgres:SCHEMA`, instead of a fixed part
for each. Without that option, nothing here is imported.
"""

from __future__ import annotations

from pathlib import Path

from evalwright.errors import InputError
from evalwright.llm.choices import ModelChoices
from evalwright.model.plan import Plan
from evalwright.run.cells import RunState
from evalwright.run.leases.lease import BUDGET, COST_LIMIT, RATE, Lease
from evalwright.run.leases.ledger import Ledger
from evalwright.run.locations import is_on_a_server
from evalwright.stores.postgres import database_of

__all__ = ["take_part"]

_LARGEST = 4e9
"""US dollars or calls; a ledger counts billionths in 64 bits."""


def take_part(address: str, plan: Plan, models: ModelChoices | None, state: RunState) -> Lease:
    """The lease of a shard, which is noted in the session's state, too.

    Raises InputError, or StorageError if the ledger cannot be reached.
    """
    shard, choices = plan.shard, models or ModelChoices()
    if shard is None:
        raise InputError("--lease: this run is no shard, whose limits could be shared")
    if not shard.leased:
        raise InputError(f"--lease: {shard} was begun without it, and has its share of the limits")
    values = {COST_LIMIT: plan.run.cost_limit_usd, BUDGET: choices.budget_usd, RATE: choices.requests_per_minute}
    limits = {name: None if value is None else min(value, _LARGEST) for name, value in values.items()}

    def halt(why: str) -> None:
        if not state.stopping:
            state.stopping, state.halted = True, why

    # As for a merge: the values of secrets may differ between the machines.
    run = f"{shard.suite_sha256 or plan.config_hash} {plan.name}"
    state.lease = Lease(_ledger_at(address), run, shard.of, limits, lambda: state.stopping, halt)
    return state.lease


def _ledger_at(address: str) -> Ledger:
    schema = address.partition(":")[2] if is_on_a_server(address) else None
    if not address or schema == "" or (schema is not None and "/" in schema):
        raise InputError(f"--lease: expected a folder or postgres:SCHEMA, found {address!r}")
    if schema is None:
        from evalwright.run.leases.sqlite import SqliteLedger

        return SqliteLedger(Path(address))

    database = database_of(schema)
    from evalwright.run.leases.postgres import PostgresLedger

    return PostgresLedger(database)
