"""One writer per run in PostgreSQL: an advisory lock of the session, which the server releases when its owner dies."""

from __future__ import annotations

import hashlib

from evalwright.errors import RunLockedError
from evalwright.stores.postgres.database import Connection

__all__ = ["is_locked", "lock_run"]

# The lock of one 64-bit key is shown as two halves, with objsubid 1.
_OWNER = """
    SELECT activity.application_name FROM pg_catalog.pg_locks AS held
    JOIN pg_catalog.pg_stat_activity AS activity USING (pid)
    WHERE held.locktype = 'advisory' AND held.granted AND held.objsubid = 1
    AND held.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
    AND (held.classid::bigint << 32) | held.objid::bigint = %s
"""


def lock_run(connection: Connection, schema: str, run_id: str) -> None:
    """Take the exclusive right to write to a run. Raises RunLockedError, which names the owner."""
    row = connection.execute("SELECT pg_try_advisory_lock(%s)", (_key(schema, run_id),)).fetchone()
    if row is None or not row[0]:
        words = (_owner(connection, schema, run_id) or "").split()
        named = len(words) == 3 and words[0] == "evalwright"
        who = f"process {words[1]} on host {words[2]}" if named else "another process"
        raise RunLockedError(f"{schema}/{run_id} is being written by {who}; wait until it ends")


def is_locked(connection: Connection, schema: str, run_id: str) -> bool:
    """Whether a process has the right to write to a run."""
    return _owner(connection, schema, run_id) is not None


def _owner(connection: Connection, schema: str, run_id: str) -> str | None:
    """The name of the application that has the lock; of another user's, the server may keep it to itself."""
    row = connection.execute(_OWNER, (_key(schema, run_id),)).fetchone()
    return None if row is None else str(row[0])


def _key(schema: str, run_id: str) -> int:
    digest = hashlib.blake2b(f"{schema}\0{run_id}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
