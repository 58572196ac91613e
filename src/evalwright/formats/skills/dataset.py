"""Evals of a skill as the dataset of an `eval.yaml`: type `skills`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evalwright.errors import InputError, Problem
from evalwright.formats.shared.findings import Findings
from evalwright.formats.skills import FORMAT
from evalwright.formats.skills.suite import SKILL_WORKSPACE, document_in, read_evals
from evalwright.model.snapshot import Case
from evalwright.workspaces.case_files import WORKSPACE_FILES

__all__ = ["SkillEvals"]


class SkillEvals:
    """The evals in a file, judged by their own criteria. Raises InputError with every problem."""

    config_keys: tuple[str, ...] = ("judge_model", "criteria")
    completes: Mapping[str, Any] = {
        "evaluators_by_case": True,
        "totals": FORMAT.name,
        "workspace": SKILL_WORKSPACE,
        "alternate": True,
    }
    """The defaults of such a suite."""

    def __init__(self, path: Path, name: str, config: Mapping[str, Any]) -> None:
        problems = [
            Problem(str(path), f"evals are not chosen by {key!r}: use --case and --limit", key=f"dataset.{key}")
            for key in ("filter", "sample")
            if config.get(key)
        ]
        if problems:
            raise InputError(problems)
        document = document_in(path)
        self._findings = Findings(path, document)
        _, self._cases = read_evals(path, document, self._findings, config)
        for case in self._cases:
            case.evaluators = [*config.get("evaluators", ()), *(case.evaluators or ())]
        self._findings.refuse(f"Invalid evals {path}")
        self.files: list[Path] = [
            Path(file) for case in self._cases for file in case.extra.get(WORKSPACE_FILES, {}).values()
        ]

    def __iter__(self) -> Iterator[Case]:
        return iter(self._cases)

    def unknown_keys(self) -> Iterator[Problem]:
        """Oddities of the file."""
        yield from self._findings.warnings
