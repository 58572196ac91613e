"""Rows of records as PostgreSQL takes them: their keys, their columns as arrays, and their JSON without what JSONB
rejects."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec
from psycopg import sql

from evalwright.stores.tables.rows import Row

__all__ = ["INSERTS", "NOT_IN_JSONB", "Numbered", "column_arrays", "for_jsonb", "row_key"]

Numbered: TypeAlias = tuple[bytes, int, Row]
"""A row with its key and its number."""
_UNSAFE = re.compile(r"\\u0000|\\u[dD][89abAB]")
"""What JSON allows and JSONB does not: NUL, and lone surrogates. Pairs match too, and prove harmless when replaced."""
NOT_IN_JSONB = '{"not_in_jsonb": true}'
"""Stands for a record that JSONB rejects."""

_TYPES = {
    "key": "bytea",
    "seq": "bigint",
    "case_id": "text",
    "variant_name": "text",
    "trial": "integer",
    "attempt": "integer",
    "evaluator": "text",
    "started_at": "timestamptz",
    "plain": "text",
    "line": "text",
}
_WITHOUT = {"traces": {"evaluator"}, "results": set[str](), "verdicts": {"evaluator", "started_at"}}
_WITHOUT["artifacts"] = _WITHOUT["traces"]


def _insert(table: str) -> sql.SQL:
    """The statement that writes any number of rows of a table, each column as one array: one round trip per batch.

    Rows replace those with the same key, so that a batch can be written again if it is unknown whether it was stored.
    """
    columns = [name for name in _TYPES if name not in _WITHOUT[table]]
    stored = [name for name in columns if name != "plain"]
    arrays = ", ".join(f"%({name})b::{_TYPES[name]}[]" for name in columns)
    updates = ", ".join(f"{name} = excluded.{name}" for name in [*stored, "payload", "namespace"] if name != "key")
    return sql.SQL(
        f"INSERT INTO {table} (run_id, namespace, payload, {', '.join(stored)}) "
        f"SELECT %(run_id)s, %(namespace)s::jsonb, coalesce(plain, line)::jsonb, {', '.join(stored)} "
        f"FROM unnest({arrays}) AS given ({', '.join(columns)}) "
        f"ON CONFLICT (run_id, key) DO UPDATE SET {updates}"
    )


INSERTS = {table: _insert(table) for table in _WITHOUT}
"""By table, the statement for `column_arrays`, `run_id` and `namespace`."""


def column_arrays(rows: Sequence[Numbered], plain: str | None = None) -> dict[str, Any]:
    """The columns of rows as arrays for `INSERTS`; `plain` replaces what JSONB would get of each row."""
    return {
        "key": [key for key, _, _ in rows],
        "seq": [number for _, number, _ in rows],
        "case_id": [row.case_id.replace("\0", "\ufffd") for _, _, row in rows],
        "variant_name": [row.variant_name.replace("\0", "\ufffd") for _, _, row in rows],
        "trial": [row.trial for _, _, row in rows],
        "attempt": [row.attempt for _, _, row in rows],
        "evaluator": [row.evaluator.replace("\0", "\ufffd") for _, _, row in rows],
        "started_at": [row.started_at for _, _, row in rows],
        "plain": [plain or for_jsonb(row.line) for _, _, row in rows],
        "line": [row.line for _, _, row in rows],
    }


def row_key(row: Row) -> bytes:
    """The primary key of a row inside its run: a hash, as ids may be too long for an index or contain any character."""
    parts = (row.case_id, row.variant_name, row.trial, row.attempt, row.evaluator)
    return hashlib.blake2b(msgspec.json.encode(parts), digest_size=16).digest()


def for_jsonb(line: str) -> str | None:
    """The line with U+FFFD for NUL and lone surrogates, which JSONB rejects; None if JSONB accepts it as it is."""
    if _UNSAFE.search(line) is None:
        return None
    try:
        return json.dumps(_without_nul(json.loads(line)))
    except (ValueError, RecursionError):
        return NOT_IN_JSONB


def _without_nul(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\0", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_without_nul(key): _without_nul(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_nul(item) for item in value]
    return value
