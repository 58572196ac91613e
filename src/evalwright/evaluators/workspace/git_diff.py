"""Which files a system changed, and how (evalh 2.0, `git_diff`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from evalwright.errors import EvaluatorError
from evalwright.evaluators.wording import listed
from evalwright.model.artifact import Artifact
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace

__all__ = ["GitDiff"]

_LARGEST_PATCH = 64 * 2**20


class GitDiff(msgspec.Struct, frozen=True):
    """Files that must and must not change, by default the case's, and the patch that the changes must equal."""

    must_modify_files: list[str] | None = None
    must_not_modify_files: list[str] | None = None
    expected_patch_path: str | None = None

    uses_artifact = True
    paths: ClassVar[dict[str, str]] = {"expected_patch_path": ""}

    def evaluate(self, case: Case, trace: Trace, artifact: Artifact | None) -> Evaluation:
        if artifact is None:
            raise EvaluatorError("there are no files to look at: the run has no workspace", "missing_artifact")
        record = artifact.record
        must = self.must_modify_files or case.expected.must_modify_files
        must_not = self.must_not_modify_files or case.expected.must_not_modify_files
        diff = record.diff
        known = record.after_manifest.files.keys() & (record.before_manifest.files.keys() | set(diff.added))
        _must_be_known([path for path in (*must, *must_not) if path not in known], record.left_out)
        there, touched = {*diff.added, *diff.modified}, {*diff.added, *diff.modified, *diff.removed}
        missing = [path for path in must if path not in there]
        forbidden = [path for path in must_not if path in touched]
        reasons = []
        if missing:
            reasons.append(f"not added or modified: {listed(missing)}")
        if forbidden:
            reasons.append(f"changed, but must not be: {listed(forbidden)}")
        if self.expected_patch_path:
            reasons += self._patch_problems(self.expected_patch_path, diff.text_diffs, record.left_out)
        detail: dict[str, Any] = {"added": diff.added, "modified": diff.modified, "removed": diff.removed}
        detail |= {"missing": missing, "forbidden": forbidden}
        return Evaluation(not reasons, float(not reasons), "; ".join(reasons), detail)

    def _patch_problems(self, name: str, diffs: dict[str, str], left_out: dict[str, str]) -> Iterable[str]:
        if left_out:
            path, why = next(iter(left_out.items()))
            raise EvaluatorError(f"the changes are not known as a whole: {path}: {why}", "incomplete_artifact")
        try:
            with Path(name).expanduser().open("rb") as file:
                expected = file.read(_LARGEST_PATCH).decode(errors="replace")
        except OSError as error:
            return [f"the expected patch {name!r} cannot be read: {error.strerror}"]
        actual = "\n".join(diffs[path] for path in sorted(diffs))
        return [] if actual.strip() == expected.strip() else [f"the changes differ from the patch {name!r}"]


def _must_be_known(paths: Sequence[str], left_out: dict[str, str]) -> None:
    """Raise if it is unknown whether a path was changed."""
    for path in paths:
        steps = path.split("/")
        for place in (".", *("/".join(steps[: i + 1]) for i in range(len(steps)))):
            if place in left_out:
                raise EvaluatorError(f"unknown whether {path!r} was changed: {left_out[place]}", "incomplete_artifact")
