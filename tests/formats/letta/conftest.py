"""What the tests of Letta suites share."""

import sys

import pytest


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working directory, whose modules are forgotten at the end."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("evalwright_user_")]:
        del sys.modules[name]
