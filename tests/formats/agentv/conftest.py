"""What the tests of AgentEvals files share."""

import json
from pathlib import Path

import pytest

from formats.agentv.newer_suites import ECHO
from formats.agentv.projects import TARGETS


@pytest.fixture
def project(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / "targets.yaml").write_text(TARGETS)
    return tmp_path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / "targets.yaml").write_text(json.dumps({"targets": [ECHO]}))
    return tmp_path
