"""Judge calls that were made before, in an SQLite file: the same question is not paid for twice."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import msgspec

from evalwright.errors import InputError
from evalwright.model.chat import ChatReply

__all__ = ["Cache", "default_path"]

_SCHEMA = "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, model TEXT, stored_at TEXT, reply BLOB)"


def default_path() -> Path:
    """The cache in the user's cache folder."""
    from platformdirs import user_cache_path

    return user_cache_path("evalwright") / "judges.sqlite"


class Cache:
    """Replies by key, secrets masked. A file that cannot be used is told once, by InputError, when it is opened."""

    def __init__(self, path: Path, mask: Callable[[str], str] = str) -> None:
        self.path, self._mask = path, mask
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(path, timeout=10, isolation_level=None)
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")
            self._database.execute(_SCHEMA)
        except (OSError, sqlite3.Error) as error:
            raise InputError(f"the cache {path} cannot be used: {error}") from error

    def find(self, key: str) -> ChatReply | None:
        """The stored reply, marked as cached; None for a question that is new, or a row that cannot be read."""
        with _quiet():
            row = self._database.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
            if row is not None:
                reply = msgspec.json.decode(row[0], type=ChatReply)
                return msgspec.structs.replace(reply, cached=True)
        return None

    def keep(self, key: str, reply: ChatReply) -> None:
        with _quiet():
            self._database.execute(
                "INSERT OR REPLACE INTO replies VALUES (?, ?, datetime('now'), ?)",
                (key, reply.model, self._mask(msgspec.json.encode(reply).decode()).encode()),
            )

    def counts(self) -> list[tuple[str, int, str]]:
        """Model, number of replies and date of the newest one."""
        query = "SELECT model, count(*), max(stored_at) FROM replies GROUP BY model ORDER BY model"
        return [(str(model), int(count), str(newest)) for model, count, newest in self._database.execute(query)]

    def clear(self) -> int:
        """Forget everything; the number of replies there were."""
        with closing(self._database.execute("DELETE FROM replies")) as cursor:
            return cursor.rowcount

    def close(self) -> None:
        self._database.close()


@contextmanager
def _quiet() -> Iterator[None]:
    """A cache that fails is no cache; it must not fail a judgement."""
    with suppress(sqlite3.Error, msgspec.MsgspecError):
        yield
