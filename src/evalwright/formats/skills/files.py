"""The files of an eval: their places on disk and in its workspace."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from evalwright.files.key_paths import Place, as_written
from evalwright.formats.shared.findings import Findings

__all__ = ["files_of"]


def files_of(raw: Any, place: Place, root: Path, evals: Path, findings: Findings) -> dict[str, str]:
    """Absolute paths by their paths in the workspace, which are relative to the skill's root. Mistakes are reported."""
    if raw is None:
        return {}
    if not isinstance(raw, list):
        findings.report(place, f"expected a list of paths, found {as_written(raw)}")
        return {}
    files: dict[str, str] = {}
    for i, name in enumerate(raw):
        path = _file(name, root, evals.parent)
        if isinstance(path, str):
            findings.report((*place, i), path)
        elif evals == path or path in evals.parents:
            findings.report((*place, i), f"{name!r} contains {evals.name}, which says what is expected: name the files")
        else:
            if path == root / "SKILL.md":
                findings.warn((*place, i), f"{name!r} is the skill: the agent without the skill gets it, too")
            files[path.relative_to(root).as_posix()] = str(path)
    return files


def _file(name: Any, root: Path, folder: Path) -> Path | str:
    """The file or folder of a name, or the problem with it."""
    if not isinstance(name, str) or not name.strip() or "\0" in name:
        return f"expected a path, found {as_written(name)}"
    if Path(name).is_absolute():
        return f"{name!r} is an absolute path: expected one relative to the skill's root"
    try:
        for base in (root, folder):
            path = (base / name).resolve()
            if os.path.exists(path):
                return path if root in path.parents else f"{name!r} leads out of the skill's root {root}"
        outside = root not in (root / name).resolve().parents
    except (OSError, RuntimeError) as error:
        return f"{name!r} cannot be read: {error}"
    return f"{name!r} leads out of the skill's root {root}" if outside else f"there is no file {name!r} in {root}"
