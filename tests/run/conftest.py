"""What the tests of running share."""

import sys

import pytest

from run.suites import PROJECT


@pytest.fixture(autouse=True)
def agents(monkeypatch):
    """The module that the runs import, fresh for each test."""
    monkeypatch.syspath_prepend(str(PROJECT))
    sys.modules.pop("agents", None)
    import agents

    yield agents
    sys.modules.pop("agents", None)
