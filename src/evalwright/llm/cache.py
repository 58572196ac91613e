"""A cache of judges' replies in a SQLite file: the same call is not paid for twice."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import msgspec

from evalwright.errors import InputError
from evalwright.files.durable import private_file
from evalwright.model.chat import ChatReply

__all__ = ["Cache", "default_path"]

_SCHEMA = "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, model TEXT, stored_at TEXT, reply BLOB)"


def default_path() -> Path:
    """The file in the user's cache folder."""
    from platformdirs import user_cache_path

    return user_cache_path("evalwright") / "judges.sqlite"


class Cache:
    """Replies by key, secrets masked. Raises InputError if the file cannot be used, but only when it is opened."""

    path: Path

    def __init__(self, path: Path, mask: Callable[[str], str] = str) -> None:
        self.path, self._mask = path, mask
        try:
            private_file(path)  # its journals get the mode of the file
            self._database = sqlite3.connect(path, timeout=10, isolation_level=None)
            self._database.execute("PRAGMA journal_mode = WAL")  # runs in other processes may use it at the same time
            self._database.execute("PRAGMA synchronous = NORMAL")  # a reply lost in a power cut is bought again
            self._database.execute(_SCHEMA)
        except (OSError, sqlite3.Error) as error:
            raise InputError(f"cannot use the cache {path}: {error}") from error

    def find(self, key: str) -> ChatReply | None:
        """The stored reply, marked as cached; None if there is none or it cannot be read."""
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
        """For each model, its name, the number of its replies and the date of the newest one."""
        query = "SELECT model, count(*), max(stored_at) FROM replies GROUP BY model ORDER BY model"
        return [(str(model), int(count), str(newest)) for model, count, newest in self._database.execute(query)]

    def clear(self) -> int:
        """Remove all replies; returns how many there were."""
        with closing(self._database.execute("DELETE FROM replies")) as cursor:
            return cursor.rowcount

    def close(self) -> None:
        self._database.close()


@contextmanager
def _quiet() -> Iterator[None]:
    """Ignores errors of the cache: a judge whose reply cannot be cached has judged all the same."""
    with suppress(sqlite3.Error, msgspec.MsgspecError):
        yield
