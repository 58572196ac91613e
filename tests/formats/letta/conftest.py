"""What the tests of Letta suites share."""

import sys

import pytest

from formats.letta.projects import AGENT, DATA, SUITE


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working directory, whose modules are forgotten at the end."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("evalwright_user_")]:
        del sys.modules[name]


@pytest.fixture
def project(tmp_path):
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "data.jsonl").write_text(DATA)
    (tmp_path / "suite.yaml").write_text(SUITE)
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("evalwright_user_")]:
        del sys.modules[name]
