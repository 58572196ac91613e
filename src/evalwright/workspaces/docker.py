"""Docker, through its command line, and workspaces that containers can mount: types `docker` and `docker_volume`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from evalwright.errors import InputError, in_seconds
from evalwright.model.snapshot import Case
from evalwright.processes import run_command
from evalwright.processes.ties import command, tie, untie
from evalwright.workspaces.snapshot import CopiedWorkspace, Snapshots, reads, tempdir_snapshot

__all__ = ["docker", "docker_volume", "docker_workspace", "removed_by"]

_PATIENCE = 60
"""Seconds for a docker command; one that pulls an image gets more."""


@reads("copy_from", "base_path")
def docker_volume(config: Mapping[str, Any], suite_folder: Path) -> Snapshots:
    """The same as `docker`; artifacts name the type that the suite uses."""
    workspace = docker_workspace(config, suite_folder)
    workspace.kind = "docker_volume"
    return workspace


@reads("copy_from", "base_path")
def docker_workspace(config: Mapping[str, Any], suite_folder: Path) -> Snapshots:
    """A copy like that of `tempdir_snapshot`, with a Docker volume of the same name on it."""
    plain = tempdir_snapshot(config, suite_folder)
    return DockerSnapshots(plain.copy_from, plain.base)


class DockerSnapshots(Snapshots):
    """Copies of one folder, each a volume of the Docker engine of this machine."""

    kind = "docker"

    def open(self) -> None:
        _docker("version", "--format", "{{.Server.Version}}")
        super().open()

    def prepare(self, case: Case, trial: int) -> CopiedWorkspace:
        copied = super().prepare(case, trial)
        volume = copied.path.with_name(f"{copied.path.parent.name}-{copied.path.name}")
        copied.path.rename(volume)
        options = ("type=none", "o=bind", f"device={volume}")
        words = [word for option in options for word in ("--opt", option)]
        tie(removed_by("volume", "rm", "--force", volume.name))
        _docker("volume", "create", "--driver", "local", *words, "--label", "evalwright", volume.name)
        return _Volume(self, volume)


class _Volume(CopiedWorkspace):
    def remove(self) -> None:
        with suppress(InputError):
            _docker("volume", "rm", "--force", self.path.name)
        untie(removed_by("volume", "rm", "--force", self.path.name))
        super().remove()


def removed_by(*words: str, env: Mapping[str, str] = os.environ) -> str:
    """The tie that removes what a docker command created."""
    variables = {name: value for name, value in env.items() if name in ("PATH", "HOME") or name.startswith("DOCKER_")}
    return command(["docker", *words], variables)


def _docker(*words: str) -> str:
    return asyncio.run(docker(*words))


async def docker(*words: str, env: Mapping[str, str] = os.environ, patience: float = _PATIENCE) -> str:
    """The output of a docker command. Raises InputError with docker's message, or if no engine answers."""
    try:
        async with asyncio.timeout(patience):
            finished = await run_command(["docker", *words], env=env)
    except FileNotFoundError:
        raise InputError("Docker is needed, but there is no command 'docker' in the PATH") from None
    except TimeoutError:
        raise InputError(f"docker {words[0]}: no answer within {in_seconds(patience)}") from None
    except OSError as error:
        raise InputError(f"docker {words[0]}: {error.strerror}") from None
    if finished.exit_code != 0:
        message = finished.stderr.last.decode(errors="replace").strip() or finished.how()
        raise InputError(f"docker {words[0]}: {message[-1000:]}")
    return finished.stdout.kept.decode(errors="replace").strip()
