"""A cache of judges' replies in a SQLite file: the same call is not paid for twice."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from evalwright.errors import InputError, Problem
from evalwright.files.durable import must_be_a_file, private_file
from evalwright.model.chat import ChatReply, Embedding

__all__ = ["LARGEST_CACHE", "Cache", "CachedModel", "default_path"]

K = TypeVar("K", ChatReply, Embedding)

LARGEST_CACHE = 512 * 2**20
"""Bytes of the replies in a file; beyond that, the oldest ones are removed."""
_LEFT = 0.8
"""The share that is then kept, so that not every further reply triggers a search for the oldest one."""
_LOOK_EVERY = 256
"""Number of replies after which a process checks the size; each check reads a page."""
_PATIENCE = 10.0
"""Seconds for other processes to finish their writes."""
_SCHEMA = "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, model TEXT, stored_at TEXT, reply BLOB)"


class CachedModel(NamedTuple):
    """What is cached of one model; `newest` is a date in UTC."""

    model: str
    replies: int
    size: int
    """Bytes."""
    newest: str


def default_path() -> Path:
    """The file in the user's cache folder."""
    from platformdirs import user_cache_path

    return user_cache_path("evalwright") / "judges.sqlite"


class Cache:
    """Replies and embeddings by key, secrets masked. Several processes may use a file at the same time.

    Raises InputError if the file cannot be used, but only when it is opened.
    """

    path: Path

    def __init__(self, path: Path, mask: Callable[[str], str] = str, most_bytes: int = LARGEST_CACHE) -> None:
        self.path, self._mask, self._most, self._kept = path, mask, most_bytes, 0
        must_be_a_file(path)
        try:
            _must_be_a_cache(path)
            private_file(path)  # its journals get the mode of the file
            self._database = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None)
            _prepare(self._database)
        except (OSError, sqlite3.Error) as error:
            raise InputError(Problem(str(path), f"cannot be used as a cache: {error}")) from error

    def find(self, key: str, kind: type[K]) -> K | None:
        """What is stored of this kind, marked as cached; None if there is nothing or it cannot be read."""
        with _quiet():
            row = self._database.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
            if row is not None:
                return msgspec.structs.replace(msgspec.json.decode(row[0], type=kind), cached=True)
        return None

    def keep(self, key: str, reply: ChatReply | Embedding) -> None:
        with _quiet():
            self._database.execute(
                "INSERT OR REPLACE INTO replies VALUES (?, ?, datetime('now'), ?)",
                (key, reply.model, self._mask(msgspec.json.encode(reply).decode()).encode()),
            )
            self._kept += 1
            if self._kept % _LOOK_EVERY == 1 and self.size() > self._most:
                self.prune(most_bytes=int(self._most * _LEFT))

    def forget(self, key: str) -> None:
        with _quiet():
            self._delete("key = ?", key)

    def size(self) -> int:
        """Bytes of the pages in use."""
        pages, free, size = (self._number(f"PRAGMA {name}") for name in ("page_count", "freelist_count", "page_size"))
        return (pages - free) * size

    def counts(self) -> list[CachedModel]:
        """What is cached, by model."""
        query = "SELECT model, count(*), sum(length(reply)), max(stored_at) FROM replies GROUP BY model ORDER BY model"
        return [CachedModel(str(model), *rest) for model, *rest in self._database.execute(query)]

    def prune(self, *, most_bytes: int | None = None, older_than_days: float | None = None) -> int:
        """Remove the oldest replies beyond this many bytes, and all that are older than this; returns their number."""
        removed = 0
        if older_than_days is not None:
            removed += self._delete("stored_at < datetime('now', ?)", f"-{older_than_days} days")
        while most_bytes is not None and (keys := self._oldest(self.size() - most_bytes)):
            removed += sum(self._delete("key = ?", key) for key in keys)
        return removed

    def clear(self) -> int:
        """Remove all replies; returns how many there were."""
        removed = self._delete("TRUE")
        self.shrink()
        return removed

    def shrink(self) -> None:
        """Return the space of removed replies to the disk."""
        with suppress(sqlite3.OperationalError):  # another process is reading; the pages are reused all the same
            self._database.execute("VACUUM")
            self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        self._database.close()

    def _oldest(self, size: int) -> list[str]:
        """The keys of the oldest replies, of about this many bytes in total."""
        keys = []
        if size > 0:
            for key, length in self._database.execute(
                "SELECT key, length(reply) FROM replies ORDER BY stored_at, rowid"
            ):
                keys.append(str(key))
                size -= length
                if size <= 0:
                    break
        return keys

    def _number(self, query: str) -> int:
        return int(self._database.execute(query).fetchone()[0])

    def _delete(self, condition: str, *values: str) -> int:
        with closing(self._database.execute(f"DELETE FROM replies WHERE {condition}", values)) as cursor:
            return cursor.rowcount


def _must_be_a_cache(path: Path) -> None:
    """Raises InputError for another program's database, of which nothing may be changed."""
    if not path.is_file() or not path.stat().st_size:
        return
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=_PATIENCE)) as database:
        names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    if names and "replies" not in names:
        raise InputError(f"{path} is a database of another program, not a cache of replies: choose another file")


def _prepare(database: sqlite3.Connection) -> None:
    """Set up a database for several processes. SQLite does not wait for a lock while it changes the journal mode."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = NORMAL")  # a reply lost in a power cut is bought again
            database.execute(_SCHEMA)
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(0.01)


@contextmanager
def _quiet() -> Iterator[None]:
    """Ignores errors of the cache: a judge whose reply cannot be cached has nevertheless judged."""
    with suppress(sqlite3.Error, msgspec.MsgspecError):
        yield
