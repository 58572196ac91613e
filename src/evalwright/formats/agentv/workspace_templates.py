"""Templates of workspaces, checked before a run: whether targets can work in them."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from evalwright.errors import InputError
from evalwright.files.boundary import Boundary, OutsideError
from evalwright.formats.agentv.cases import Cases
from evalwright.formats.agentv.targets_file import Targets
from evalwright.formats.agentv.workspace_settings import WorkspaceSettings
from evalwright.formats.agentv.workspaces import links_in

__all__ = ["check_workspaces"]


def check_workspaces(
    targets: Targets | None,
    cases: Cases,
    shared: WorkspaceSettings,
    folder: Path | None,
    allowed: Collection[Path],
) -> None:
    """Raise InputError for a template that does not exist or leads outside, or in which a target could not work.

    Templates are only checked with the `folder` to which they are relative; `shared` is the workspace of all cases.
    """
    spaces = [space for space in (shared, *(case.extra.get("workspace") for case in cases)) if space]
    for target in [] if targets is None else targets.used().values():
        _check_workspace(target, spaces, folder, allowed)


def _check_workspace(
    target: Mapping[str, Any], spaces: list[WorkspaceSettings], folder: Path | None, allowed: Collection[Path]
) -> None:
    named, provider = target.get("workspace_template"), target.get("provider")
    if named is None and not spaces and not target.get("hooks"):
        return
    if provider == "python":
        raise InputError(f"workspace_template: target {target.get('name')!r} works in this process, not in a folder")
    if target.get("provider_batching") is True:
        raise InputError(f"workspace_template: target {target.get('name')!r} runs once for all cases, not for each")
    if folder is None:
        return
    for template in {named, *(space.get("template") for space in spaces)} - {None}:
        _check_template(f"workspace_template: target {target.get('name')!r}", folder, str(template), allowed)


def _check_template(place: str, folder: Path, template: str, allowed: Collection[Path]) -> None:
    if not os.path.isdir(folder / template):
        raise InputError(f"{place}: there is no folder {template!r}")
    boundary = Boundary(folder, allowed)
    try:
        for path in (folder / template, *links_in(folder / template)):  # a copy contains what links lead to
            boundary.check(path)
    except OutsideError as error:
        raise InputError(f"{place}: {error}") from None
