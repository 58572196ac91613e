"""A container as the system under test: target `docker`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated

import msgspec

from evalwright.errors import InputError, Problem
from evalwright.files.key_paths import as_written
from evalwright.model.plan import Variant
from evalwright.processes.ties import tie, untie
from evalwright.session import environment
from evalwright.targets.build import keys_of
from evalwright.targets.served import ServedConfig, ServedTarget
from evalwright.workspaces.docker import docker, removed_by

__all__ = ["Container"]

_SECONDS = 60.0
"""Seconds to become healthy, unless the configuration says otherwise."""
_PULLING = 600.0
"""Seconds for pulling an image; the variant's time limit may be shorter."""
_ALIVE = ("created", "running", "restarting", "paused")


class _Config(ServedConfig, kw_only=True):
    image: Annotated[str, msgspec.Meta(min_length=1)]
    container_port: Annotated[int, msgspec.Meta(ge=1, le=65535)] | None = None
    env: dict[str, str] = msgspec.field(default_factory=dict)
    volumes: list[str] = msgspec.field(default_factory=list)


class Container(ServedTarget):
    """A container of `image` whose `container_port` is published as `{port}` on this machine. Raises InputError.

    It gets the environment `env` and the `volumes` (`host:container` or `host:container:mode`). Without a
    `container_port`, the container itself has to listen on `{port}`.
    """

    config_keys: tuple[str, ...] = keys_of(_Config)

    def __init__(self, variant: Variant) -> None:
        super().__init__(variant, _Config, _SECONDS, _service)


def _service(config: _Config) -> _Container:
    odd = [volume for volume in config.volumes if len(volume.split(":")) not in (2, 3) or not all(volume.split(":"))]
    if odd:
        expected = "expected 'host:container' or 'host:container:mode'"
        raise InputError(
            [Problem("", f"'volumes': {expected}, found {as_written(volume)}", key="volumes") for volume in odd]
        )
    return _Container(config)


class _Container:
    """A container that is removed with its anonymous volumes when it is stopped."""

    def __init__(self, config: _Config) -> None:
        self._config = config
        self._name = f"evalwright-{os.urandom(6).hex()}"
        self._started = False
        self._tie = ""

    async def start(self, port: int) -> None:
        await docker("version", "--format", "{{.Server.Version}}")
        self._started = True  # set before the start: a container that may or may not be running is removed, too
        known = environment()
        self._tie = removed_by("rm", "--force", "--volumes", self._name, env=known)
        tie(self._tie)
        words = self._words(port, known)
        await docker("run", *words, env={**self._config.env, **known}, patience=_PULLING)

    def _words(self, port: int, known: Mapping[str, str]) -> Sequence[str]:
        config = self._config
        publish = f"127.0.0.1:{port}:{config.container_port or port}"  # docker's default is all network interfaces
        words = ["--detach", "--name", self._name, "--label", "evalwright", "--publish", publish]
        for name, value in config.env.items():
            words += ["--env", _assignment(name, value, known)]
        for volume in config.volumes:
            words += ["--volume", volume]
        return [*words, "--", config.image]

    async def ended(self) -> str | None:
        state = await docker("inspect", "--format", "{{.State.Status}} {{.State.ExitCode}}", self._name)
        status, _, code = state.partition(" ")
        if status in _ALIVE:
            return None
        with suppress(InputError):
            log = await docker("logs", "--tail", "20", self._name)
            return f"the container ended with exit code {code}: {log[-1000:]}"
        return f"the container ended with exit code {code}"

    async def stop(self) -> None:
        if self._started:
            self._started = False
            with suppress(InputError):
                await docker("rm", "--force", "--volumes", self._name)
            untie(self._tie)


def _assignment(name: str, value: str, environ: Mapping[str, str]) -> str:
    """The name alone, if docker finds the value in its environment: every user can see the arguments of a process."""
    return name if environ.get(name, value) == value else f"{name}={value}"
