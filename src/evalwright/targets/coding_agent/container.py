"""A container for one call of an agent, in which it has none of the user's rights except on the workspace."""

from __future__ import annotations

import os
import uuid
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from evalwright.errors import InputError
from evalwright.processes.ties import tie, untie
from evalwright.targets.coding_agent.agent import AgentCommand
from evalwright.targets.coding_agent.homes import homes_of
from evalwright.targets.coding_agent.programs import Program
from evalwright.workspaces.docker import docker, removed_by

__all__ = ["AgentContainer"]

_WORKSPACE, _HOME = "/workspace", "/home/agent"


class AgentContainer:
    """`docker run` of an image that has the agent's program. It gets `variables`, those of the agent and its home."""

    def __init__(self, image: str, program: Program, variables: Collection[str]) -> None:
        self._image, self._program = image, program
        self._given = (*program.keys, *program.env, *variables)
        self._name = f"evalwright-agent-{uuid.uuid4().hex[:12]}"
        self._environ: Mapping[str, str] = os.environ
        self._tie = ""

    def prepare(
        self, command: Sequence[str], env: Mapping[str, str], workspace: Path, home: Path | None
    ) -> AgentCommand:
        # the docker client needs the user's own home, which has its contexts and logins
        self._environ = docker_env = {**env, "HOME": os.environ.get("HOME", "/")}
        self._tie = removed_by("rm", "--force", self._name, env=docker_env)
        tie(self._tie)
        words = ["docker", "run", "--rm", "--init", "--interactive", "--name", self._name, "--label", "evalwright"]
        words += ["--user", f"{os.getuid()}:{os.getgid()}", "--volume", f"{workspace}:{_WORKSPACE}"]
        words += ["--workdir", _WORKSPACE]
        if home is not None:
            words += ["--volume", f"{home}:{_HOME}"]
            for name, value in {"HOME": _HOME, **homes_of(self._program, _HOME)}.items():
                words += ["--env", f"{name}={value}"]
        for name, value in self._program.contained.items():
            words += ["--env", f"{name}={value}"]
        for name in dict.fromkeys(self._given):
            if name in env and name not in self._program.home:
                words += ["--env", name]  # docker takes the value from its environment: every user can see arguments
        return AgentCommand([*words, self._image, *command], docker_env, str(workspace))

    async def clear_up(self) -> None:
        with suppress(InputError):
            await docker("rm", "--force", self._name, env=self._environ)
        untie(self._tie)
