"""Docker by its command line, and workspaces that containers can mount: types `docker` and `docker_volume`."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from evalwright.errors import InputError
from evalwright.model.snapshot import Case
from evalwright.workspaces.snapshot import Copied, Snapshots, tempdir_snapshot

__all__ = ["docker", "docker_workspace"]

_PATIENCE = 60


def docker_workspace(config: Mapping[str, Any], suite_folder: Path) -> Snapshots:
    """Like `tempdir_snapshot`, with a volume on each folder; the volume has the folder's name."""
    plain = tempdir_snapshot(config, suite_folder)
    return DockerSnapshots(plain.copy_from, plain.base)


class DockerSnapshots(Snapshots):
    """Copies of one folder, each a volume of the Docker engine of this machine."""

    kind = "docker"

    def open(self) -> None:
        docker("version", "--format", "{{.Server.Version}}", patience=10)
        super().open()

    def prepare(self, case: Case, trial: int) -> Copied:
        copied = super().prepare(case, trial)
        named = copied.path.with_name(f"{copied.path.parent.name}-{copied.path.name}")
        copied.path.rename(named)
        options = ("type=none", "o=bind", f"device={named}")
        words = [word for option in options for word in ("--opt", option)]
        docker("volume", "create", "--driver", "local", *words, "--label", "evalwright", named.name)
        return _Volume(self, named)


class _Volume(Copied):
    def remove(self) -> None:
        with suppress(InputError):
            docker("volume", "rm", "--force", self.path.name)
        super().remove()


def docker(*words: str, patience: float = _PATIENCE, env: Mapping[str, str] | None = None) -> str:
    """What a docker command says. Raises InputError with docker's own words, or when no engine answers."""
    try:
        done = subprocess.run(
            ["docker", *words],
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=patience,
            check=False,
        )
    except FileNotFoundError:
        raise InputError("Docker is needed here, but there is no command 'docker' in the PATH") from None
    except subprocess.TimeoutExpired:
        raise InputError(f"docker {words[0]}: no answer within {patience:g} seconds") from None
    except OSError as error:
        raise InputError(f"docker {words[0]}: {error.strerror}") from None
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip() or f"exit code {done.returncode}"
        raise InputError(f"docker {words[0]}: {said[:1000]}")
    return done.stdout.decode(errors="replace").strip()
