"""The `workspace` of an `eval.yaml`: folders of the suite that it names, and whether it can be built."""

from __future__ import annotations

from functools import partial

from evalwright import registry
from evalwright.formats.native.suite_file import SuiteFile
from evalwright.formats.shared.isolation import OF_PROGRAMS, isolating, refusal
from evalwright.model.plan import Plugin

__all__ = ["check_workspace"]

_FOLDERS = {"copy_from", "repo_path"}
"""Keys that name a folder of the suite."""


def check_workspace(suite: SuiteFile, workspace: Plugin, *, to_run: bool) -> None:
    """Report to the suite's file what is wrong with its workspace."""
    for key, value in workspace.config.items():
        if isinstance(value, str) and key in _FOLDERS:
            folder = suite.found(("workspace", key), value)
            if to_run and key != "repo_path":  # a repository is given to be cloned, and may lie anywhere
                suite.must_be_inside(("workspace", key), folder)
    if to_run and suite.known(("workspace", "type"), "workspaces", workspace.type):
        make = registry.load("workspaces", workspace.type)
        known: tuple[str, ...] | None = getattr(make, "config_keys", None)
        for key in () if known is None else isolating(workspace.config, known, OF_PROGRAMS):
            suite.report(("workspace", *key.split(".")), refusal(key, known or ()))
        suite.doubt_config(("workspace",), "workspaces", workspace)
        folder = suite.path.resolve().parent
        suite.take(("workspace",), partial(make, workspace.config, folder))
