"""The import path of version 0.1."""

import importlib

import pytest

from evalwright.session.workspace import working_in


def test_the_old_name_works_and_says_the_new_one(tmp_path):
    current = importlib.import_module("evalwright.workspaces.current")
    with pytest.warns(DeprecationWarning, match="evalwright.plugins.workspace_path"):
        workspace_path = current.workspace_path
    with working_in(tmp_path):
        assert workspace_path() == tmp_path
    assert not hasattr(current, "working_in")
