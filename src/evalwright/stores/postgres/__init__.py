"""Runs in a PostgreSQL database (extra `postgres`)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from evalwright.errors import InputError, Problem
from evalwright.files.masker import Masker
from evalwright.stores.tables.config import read_config

if TYPE_CHECKING:
    from evalwright.stores.postgres.database import Database
    from evalwright.stores.postgres.store import Postgres

__all__ = ["DSN_VARIABLE", "SCHEMA", "database_of", "postgres"]

DSN_VARIABLE = "EVALWRIGHT_POSTGRES_DSN"
SCHEMA = "evalwright"


class _Config(msgspec.Struct):
    dsn: str | None = None
    schema: str = SCHEMA
    pool_size: int = 4
    path: str | None = None
    """The folder `runs`, for artifacts; the caller reads it, so here it is merely accepted."""
    run_namespace: dict[str, Any] | None = None


def postgres(config: Mapping[str, Any], masker: Masker | None, runs: Path) -> Postgres:
    """Runs in a PostgreSQL database: `dsn`, `schema`, `pool_size`, `run_namespace`. Raises InputError.

    Does not connect yet. Artifacts are kept in the folder `runs`.
    """
    settings = read_config(_Config, config)
    if settings.pool_size < 1:
        raise InputError(Problem("", f"expected at least 1, found {settings.pool_size}", None, "pool_size"))
    reached = database_of(settings.schema, settings.dsn, settings.pool_size)
    from evalwright.stores.postgres.store import Postgres

    return Postgres(reached, runs, masker, settings.run_namespace)


def database_of(schema: str, dsn: str | None = None, pool_size: int = 1) -> Database:
    """The database at `dsn`, else at the address in the environment. Does not connect yet. Raises InputError."""
    dsn_given = dsn or os.environ.get(DSN_VARIABLE)
    if not dsn_given:
        raise InputError(Problem("", f"expected a connection string, here or in {DSN_VARIABLE}", None, "dsn"))
    try:
        from evalwright.stores.postgres.database import Database
    except ImportError as error:
        raise InputError("the store 'postgres' needs: pip install 'evalwright[postgres]'") from error
    return Database(dsn_given, schema, pool_size, "dsn" if dsn else DSN_VARIABLE)
