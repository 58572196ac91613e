"""A branch of a repository as the system under test, started as a service: target `git_branch`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import msgspec

from evalwright.errors import InputError, Problem
from evalwright.files.temporary import TemporaryFolder
from evalwright.model.plan import Variant
from evalwright.processes import FinishedCommand, run_command
from evalwright.session import environment
from evalwright.targets.build import keys_of
from evalwright.targets.served import ServedConfig, ServedTarget, with_port
from evalwright.targets.threads import Threads
from evalwright.workspaces.git import check_out, commit_of

__all__ = ["GitBranch"]

_SECONDS = 30.0
"""Seconds to become healthy, unless the configuration says otherwise."""
_KEPT = 64 * 2**10
_LAST = 1_000

_Text = Annotated[str, msgspec.Meta(min_length=1)]


class _Config(ServedConfig, kw_only=True):
    repo_path: _Text
    branch: _Text
    start_command: Annotated[list[str], msgspec.Meta(min_length=1)]


class GitBranch(ServedTarget):
    """A service that is started from a branch, tag or commit of a repository.

    In `repo_path` at `branch`, `start_command` is run with `{port}` filled in. The service is then called through
    `inner_adapter` with `inner_config`, in which `{port}` is filled in as well. Raises InputError.
    """

    config_keys: tuple[str, ...] = keys_of(_Config)

    def __init__(self, variant: Variant) -> None:
        super().__init__(variant, _Config, _SECONDS, _service)


def _service(config: _Config) -> _Branch:
    repo = Path(config.repo_path).expanduser()
    if not repo.is_dir():
        raise InputError(Problem("", f"'repo_path': folder {config.repo_path!r} not found", key="repo_path"))
    return _Branch(repo.resolve(), commit_of(repo, config.branch), config.start_command)


class _Branch:
    """A command in a copy of a repository; stopping it removes both."""

    def __init__(self, repo: Path, commit: str, command: Sequence[str]) -> None:
        self._repo, self._commit, self._command = repo, commit, command
        self._threads = Threads()
        self._folder: TemporaryFolder | None = None
        self._running: asyncio.Task[FinishedCommand] | None = None

    async def start(self, port: int) -> None:
        self._folder = await self._threads.call(TemporaryFolder)
        place = self._folder.path / "service"
        await self._threads.call(check_out, self._repo, self._commit, place)
        command = [with_port(word, port) for word in self._command]
        variables = {**environment(), "PORT": str(port)}
        running = run_command(command, env=variables, cwd=str(place), output_limit=_KEPT)
        self._running = asyncio.create_task(running)

    async def ended(self) -> str | None:
        if self._running is None or not self._running.done():
            return None
        try:
            finished = self._running.result()
        except OSError as error:
            return f"cannot start {self._command[0]!r}: {error.strerror or error}"
        output = (finished.stderr.last or finished.stdout.last).decode(errors="replace").strip()[-_LAST:]
        return f"{self._command[0]!r} ended with {finished.how()}" + (f": {output}" if output else "")

    async def stop(self) -> None:
        running, folder = self._running, self._folder
        # Taken first, so that a second stop, after an interrupt in the middle of this one, does nothing twice.
        self._running = self._folder = None
        if running is not None:
            # Before the folder is removed, because the command may still write in it.
            running.cancel()
            with suppress(asyncio.CancelledError, OSError):
                await running
        if folder is not None:
            await self._threads.call(folder.close)
        self._threads.close()
