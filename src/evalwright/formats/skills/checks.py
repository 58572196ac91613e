"""Checks of an eval that need no judge: files in the workspace, texts in the transcript."""

from __future__ import annotations

import fnmatch
from typing import Any

import msgspec

from evalwright.errors import EvaluatorError
from evalwright.model.artifact import Artifact
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace

__all__ = ["SkillFile", "SkillTranscript"]


class SkillFile(msgspec.Struct, frozen=True):
    """Whether a file at `path` (a pattern, if it has wildcards) is in the workspace when the agent has ended."""

    path: str

    uses_artifact = True
    uses_case = False

    def evaluate(self, case: Case, trace: Trace, artifact: Artifact | None) -> Evaluation:
        if artifact is None:
            raise EvaluatorError("the files of the workspace were not recorded", "incomplete_artifact")
        wanted = self.path.removeprefix("./").rstrip("/")
        files = [
            path
            for path in artifact.record.after_manifest.files
            if path == wanted or path.startswith(f"{wanted}/") or fnmatch.fnmatchcase(path, wanted)
        ]
        message = f"{self.path} is there" if files else f"there is no {self.path}"
        return Evaluation(bool(files), float(bool(files)), message, {"text": f"There is a file {self.path}."})


class SkillTranscript(msgspec.Struct, frozen=True):
    """Whether `text` is in what the agent said, in a call's arguments or in what a tool returned."""

    text: str

    uses_case = False

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        parts: list[Any] = [trace.output.final_answer or "", *(message.content for message in trace.messages[1:])]
        parts += [call.arguments for call in trace.tool_calls]
        is_there = any(self.text in (part if isinstance(part, str) else _json(part)) for part in parts)
        reason = f"{self.text!r} is in the transcript" if is_there else f"{self.text!r} is not in the transcript"
        return Evaluation(is_there, float(is_there), reason, {"text": f"The transcript contains {self.text!r}."})


def _json(value: Any) -> str:
    return msgspec.json.encode(value, enc_hook=str).decode()
