"""Tables of large runs in the user's cache: used again, and removed when nobody uses them any more."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing

import pytest

from evalwright.viewer.kept_tables import kept_table

DAY = 24 * 3600


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "evalwright" / "view"


def build(place):
    with closing(sqlite3.connect(place)) as file:
        file.execute("CREATE TABLE facts (name TEXT, value TEXT)")
        file.execute("INSERT INTO facts VALUES ('stamp', 'now')")
        file.commit()


def aged(table, days):
    os.utime(table, (time.time() - days * DAY,) * 2)


def test_a_table_is_built_once_and_nothing_else_is_left(cache):
    builds = []
    for _ in range(2):
        kept_table("run", "now", lambda place: builds.append(build(place))).close()
    assert len(builds) == 1
    assert [path.suffix for path in cache.iterdir()] == [".sqlite"]


def test_a_build_that_fails_leaves_nothing(cache):
    def fail(place):
        build(place)
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        kept_table("run", "now", fail)
    assert list(cache.iterdir()) == []


def test_tables_that_no_session_used_for_a_month_are_removed(cache):
    kept_table("old", "now", build).close()
    (old,) = cache.iterdir()
    aged(old, 40)
    kept_table("new", "now", build).close()
    assert old not in list(cache.iterdir())


def test_a_table_that_is_used_stays(cache):
    kept_table("old", "now", build).close()
    (old,) = cache.iterdir()
    aged(old, 40)
    kept_table("old", "now", build).close()
    kept_table("new", "now", build).close()
    assert old in list(cache.iterdir())
