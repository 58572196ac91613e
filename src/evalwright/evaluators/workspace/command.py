"""A verdict by the exit code of a command that is run on the files left by a system (evalh 2.0, `command`)."""

from __future__ import annotations

import asyncio
import errno
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec

from evalwright.errors import EvaluatorError, Problem, in_seconds
from evalwright.evaluators.passed_variables import passed_variables
from evalwright.files.temporary import TemporaryFolder
from evalwright.model.artifact import Artifact
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace
from evalwright.processes import FinishedCommand, run_command
from evalwright.session import session_path

__all__ = ["CommandCheck"]

_SHOWN = 64 * 2**10
"""Bytes of each stream that the result keeps."""
_LAST = 300
"""Characters of stderr in the reason."""
_ARTIFACT = "artifact"
_ALWAYS = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE",
)  # fmt: skip
"""What programs need to work at all; keys and tokens are in other variables."""


class CommandCheck(msgspec.Struct, frozen=True):
    """Passes if `cmd` ends with `expected_exit_code`, in a copy of the cell's files or in the folder `cwd`."""

    cmd: Annotated[list[str], msgspec.Meta(min_length=1)]
    cwd: Annotated[str, msgspec.Meta(min_length=1)] = _ARTIFACT
    timeout_seconds: Annotated[float, msgspec.Meta(gt=0)] = 60.0
    expected_exit_code: int = 0
    capture_output: bool = True
    env: list[str] = []
    """Variables of the environment that the command gets, besides PATH, HOME, LANG and similar basic ones."""

    uses_artifact = True
    paths: ClassVar[dict[str, str]] = {"cwd": _ARTIFACT}
    uses_case = False

    @staticmethod
    def config_problems(values: dict[str, Any]) -> list[Problem]:
        cmd = values.get("cmd")
        if isinstance(cmd, list) and (not cmd or not cmd[0] or any("\0" in word for word in cmd)):
            return [Problem("", "'cmd' must be a list of strings, the program first, without NUL", key="cmd")]
        return []

    async def evaluate(self, case: Case, trace: Trace, artifact: Artifact | None) -> Evaluation:
        detail: dict[str, Any] = {"cmd": self.cmd, "cwd": self.cwd, "expected_exit_code": self.expected_exit_code}
        async with self._folder(artifact, detail) as folder:
            try:
                async with asyncio.timeout(self.timeout_seconds):
                    finished = await run_command(
                        self.cmd, env=passed_variables(self.env, _ALWAYS, detail), cwd=str(folder), output_limit=_SHOWN
                    )
            except TimeoutError:
                message = f"{self.cmd[0]!r} did not end within {in_seconds(self.timeout_seconds)}"
                raise EvaluatorError(message, "timeout", detail) from None
            except OSError as error:
                raise self._not_started(error, detail) from None
        return self._evaluation(finished, detail)

    @asynccontextmanager
    async def _folder(self, artifact: Artifact | None, detail: dict[str, Any]) -> AsyncIterator[Path]:
        """The folder to run in, a copy if it has the artifact's files: a command must not change them for other
        evaluators."""
        if self.cwd != _ARTIFACT:
            folder = Path(session_path(str(Path(self.cwd).expanduser())))
            if not folder.is_dir():
                raise EvaluatorError(f"there is no folder {self.cwd!r}", "missing_cwd", detail)
            yield folder
            return
        if artifact is None:
            raise EvaluatorError("there are no files to run on: the run has no workspace", "missing_artifact", detail)
        after = artifact.folder / "after"
        if not after.is_dir():
            raise EvaluatorError("the files of the artifact are not stored", "missing_artifact", detail)
        for path, why in artifact.record.left_out.items():
            if not path.startswith("/"):
                raise EvaluatorError(f"not all files were kept: {path}: {why}", "incomplete_artifact", detail)
        place = TemporaryFolder()
        try:
            await asyncio.to_thread(shutil.copytree, after, place.path / "files", symlinks=True)
            yield place.path / "files"
        finally:
            await asyncio.shield(asyncio.to_thread(place.close))

    def _not_started(self, error: OSError, detail: dict[str, Any]) -> EvaluatorError:
        if error.errno == errno.ENOENT:
            return EvaluatorError(f"command not found: {self.cmd[0]!r}", "command_not_found", detail)
        message = f"{self.cmd[0]!r} cannot be started: {error.strerror or error}"
        return EvaluatorError(message, "os_error", detail)

    def _evaluation(self, finished: FinishedCommand, detail: dict[str, Any]) -> Evaluation:
        detail["exit_code"] = finished.exit_code
        if self.capture_output:
            for name, stream in (("stdout", finished.stdout), ("stderr", finished.stderr)):
                detail[name] = stream.kept.decode(errors="replace")
                if stream.cut:
                    detail[f"{name}_bytes"] = stream.size
        if finished.exit_code == self.expected_exit_code:
            return Evaluation(True, 1.0, "", detail)
        reason = f"{self.cmd[0]!r} ended with {finished.how()}, expected {self.expected_exit_code}"
        output = finished.stderr.last.decode(errors="replace").strip()[-_LAST:] if self.capture_output else ""
        return Evaluation(False, 0.0, f"{reason}: {output}" if output else reason, detail)
