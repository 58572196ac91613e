"""Ledgers of both kinds, each new."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalwright.run.leases.ledger import Ledger
from evalwright.run.leases.postgres import PostgresLedger
from evalwright.run.leases.sqlite import SqliteLedger
from evalwright.stores.postgres import DSN_VARIABLE, database_of
from postgres_server import fresh_schema, server_dsn

KINDS = ("sqlite", "postgres")


def address(kind: str, folder: Path, patch: pytest.MonkeyPatch) -> str:
    """What `--lease` takes for a new ledger."""
    if kind == "sqlite":
        return str(folder / "ledger")
    patch.setenv(DSN_VARIABLE, server_dsn())
    return f"postgres:{fresh_schema()}"


def ledger_at(where: str | Path) -> Ledger:
    """A ledger, as one more process opens it."""
    schema = str(where).removeprefix("postgres:")
    ledger = SqliteLedger(Path(where)) if schema == str(where) else PostgresLedger(database_of(schema))
    ledger.prepare()
    return ledger
