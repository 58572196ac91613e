"""A server of models for the tests of this room."""

from __future__ import annotations

import pytest

from llm.providers import providing_in_a_thread


@pytest.fixture
def server(monkeypatch, tmp_path_factory):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    with providing_in_a_thread(lambda body: "sunny") as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        yield server
