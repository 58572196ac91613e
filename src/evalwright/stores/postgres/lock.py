"""One writer per run in PostgreSQL: an advisory lock of the session, which the server releases when its owner dies."""

from __future__ import annotations

import hashlib

from evalwright.errors import RunLockedError
from evalwright.stores.postgres.database import Connection

__all__ = ["lock_run"]

# The lock of one 64-bit key is shown as two halves, with objsubid 1.
_OWNER = """
    SELECT activity.application_name FROM pg_catalog.pg_locks AS held
    JOIN pg_catalog.pg_stat_activity AS activity USING (pid)
    WHERE held.locktype = 'advisory' AND held.granted AND held.objsubid = 1
    AND (held.classid::bigint << 32) | held.objid::bigint = %s
"""


def lock_run(connection: Connection, schema: str, run_id: str) -> None:
    """Take the exclusive right to write to a run. Raises RunLockedError, which names the owner."""
    digest = hashlib.blake2b(f"{schema}\0{run_id}".encode(), digest_size=8).digest()
    key = int.from_bytes(digest, "big", signed=True)
    row = connection.execute("SELECT pg_try_advisory_lock(%s)", (key,)).fetchone()
    if row is None or not row[0]:
        owner = connection.execute(_OWNER, (key,)).fetchone()
        words = str(owner[0]).split() if owner else []
        named = len(words) == 3 and words[0] == "evalwright"
        who = f"process {words[1]} on host {words[2]}" if named else "another process"
        raise RunLockedError(f"{schema}/{run_id} is being written by {who}; wait until it ends")
