"""What the tests of running share."""

import sys

import pytest

from evalwright.session import Session
from run.suites import PROJECT


@pytest.fixture(autouse=True)
def process_is_ours():
    """As that of the command line: signals and blocking code are what many of these tests are about."""
    with Session(owns_process=True, stdout="keep"):
        yield


@pytest.fixture(autouse=True)
def agents(monkeypatch):
    """The module that the runs import, fresh for each test."""
    monkeypatch.syspath_prepend(str(PROJECT))
    sys.modules.pop("agents", None)
    import agents

    yield agents
    sys.modules.pop("agents", None)
