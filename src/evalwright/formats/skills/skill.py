"""The skill that evals belong to: its folder and its name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from evalwright.files.key_paths import as_written
from evalwright.formats.shared.findings import Findings
from evalwright.targets.coding_agent.skills import skill_name

__all__ = ["Skill", "skill_of"]

_MANIFEST = "SKILL.md"


class Skill(NamedTuple):
    name: str
    root: Path
    complete: bool
    """Whether it has a SKILL.md, without which it cannot be given to an agent."""


def skill_of(path: Path, document: Mapping[str, Any], findings: Findings) -> Skill:
    """The skill of a file of evals; oddities cause warnings."""
    file = path.resolve()
    root = next((folder for folder in file.parents if (folder / _MANIFEST).is_file()), None)
    own = None if root is None else skill_name(root)
    if root is None:
        root = file.parents[1] if file.parent.name == "evals" else file.parent
        findings.warn((), f"there is no {_MANIFEST} at or above: {root} is taken for the skill, which cannot be run")
    authored = _authored_name(document, findings)
    if authored and own and authored != own:
        findings.warn(("skill_name",), f"the skill is called {authored!r} here and {own!r} in its {_MANIFEST}")
    return Skill(authored or own or root.name, root, own is not None)


def _authored_name(document: Mapping[str, Any], findings: Findings) -> str:
    names: list[str] = []
    for key in ("skill_name", "skill"):
        value = document.get(key)
        if isinstance(value, str) and value.strip():
            names.append(value.strip())
        elif value is not None and value != "":
            findings.report((key,), f"expected the name of the skill, found {as_written(value)}")
    if len({*names}) > 1:
        findings.warn(("skill",), f"{names[1]!r} is not used: skill_name is {names[0]!r}")
    return names[0] if names else ""
