"""A coding agent as the system under test: target `coding_agent`."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from evalwright.errors import InputError, Problem, TargetError, did_you_mean
from evalwright.files.temporary import temporary_folder
from evalwright.model.plan import Variant
from evalwright.model.snapshot import Case
from evalwright.model.trace import Answer
from evalwright.registry import names
from evalwright.session import environment
from evalwright.session.workspace import beside_workspace, workspace_path
from evalwright.targets.build import Unread, keys_of
from evalwright.targets.coding_agent.agent import Agent, ThisMachine, not_found
from evalwright.targets.coding_agent.container import AgentContainer
from evalwright.targets.coding_agent.programs import PROGRAMS, AgentRequest
from evalwright.targets.coding_agent.skills import installed, left_out, skill_name
from evalwright.targets.coding_agent.stream import TEXT
from evalwright.targets.settings import settings
from evalwright.targets.templates import template_of

__all__ = ["SKILLS", "CodingAgent"]

SKILLS = "skills_given"
"""The key of a trace's `extra` with the names of the skills that the agent had."""
_SECONDS = 600.0
_GRACE = 20.0
"""Seconds for killing what is running and reading what it printed."""

_MOST_LINKS = 10
"""Links that one warning lists."""

_Text = Annotated[str, msgspec.Meta(pattern=r"\S")]
_Count = Annotated[int, msgspec.Meta(gt=0)]


class _Config(msgspec.Struct, kw_only=True):
    agent: _Text
    command: str | list[_Text] | None = None
    args: list[str] = []
    env: dict[str, str] = {}
    model: _Text | None = None
    max_turns: _Count | None = None
    max_budget_usd: Annotated[float, msgspec.Meta(gt=0)] | None = None
    timeout: Annotated[float, msgspec.Meta(gt=0)] | None = None
    skills: list[_Text] | dict[str, _Text] = []
    """Folders, or folders by the names that their copies get."""
    skill_folder: _Text | None = None
    prompt_template: str | None = None
    prompt_prefix: str = ""
    output: _Text | None = None
    clean_home: bool = True
    allow_tools: bool = False
    sandbox: Literal["docker"] | None = None
    image: _Text | None = None

    @staticmethod
    def problems(values: dict[str, Any]) -> list[Problem]:
        return [Problem("", message, key=key) for key, message in _mistakes(values).items()]


def _mistakes(values: Mapping[str, Any]) -> dict[str, str]:
    mistakes: dict[str, str] = {}
    words: list[str] = []
    agent = values.get("agent")
    program = PROGRAMS.get(str(agent))
    if agent is not None and program is None:
        mistakes["agent"] = f"unknown agent {agent!r}{did_you_mean(agent, PROGRAMS)} (there are: {', '.join(PROGRAMS)})"
    try:
        words = _words(values.get("command"))
    except ValueError as error:
        mistakes["command"] = f"'command': {str(error).lower()}"
    if program is not None and not program.command and not words and "command" not in mistakes:
        mistakes["command"] = "the agent 'command' needs the key 'command': the program and its arguments"
    output = values.get("output")
    if output is not None and output != TEXT and output not in names("importers"):
        mistakes["output"] = f"unknown output {output!r} (there are: {TEXT}, {', '.join(names('importers'))})"
    if program is not None and values.get("skills") and not (program.skills or values.get("skill_folder")):
        mistakes["skill_folder"] = f"the agent {agent!r} needs the key 'skill_folder': where it looks for skills"
    folder = Path(values.get("skill_folder") or ".")
    if folder.is_absolute() or ".." in folder.parts:
        mistakes["skill_folder"] = f"'skill_folder' is below the workspace, found {str(folder)!r}"
    if values.get("sandbox") and not values.get("image"):
        mistakes["image"] = "'sandbox' needs the key 'image': a container image that has the agent's program"
    if program is not None and program.needs_permission and not values.get("allow_tools") and not values.get("sandbox"):
        mistakes["allow_tools"] = (
            f"{agent} may run any command and change any file with your rights: allow that with --allow-tools "
            "(allow_tools: true), or run it in a container with --sandbox docker --image IMAGE"
        )
    return mistakes


class CodingAgent:
    """A coding agent (claude, codex, gemini, copilot or a command), called once per cell with the case's prompt.

    It works in the cell's workspace, or in an empty folder in a run without workspaces. Raises InputError.
    """

    config_keys: tuple[str, ...] = keys_of(_Config)
    template_keys: tuple[str, ...] = ("prompt_template",)
    folder_keys: tuple[str, ...] = ("skills",)
    """Keys with lists of folders, relative to the suite's folder."""
    grace_seconds: float = _GRACE

    def __init__(self, variant: Variant) -> None:
        config = settings(_Config, variant.config)
        program = PROGRAMS[config.agent]
        problems: list[Problem] = []
        template = config.prompt_template
        self._template = None if template is None else template_of(template, "prompt_template", variant, problems)
        self._skills = _skills_by_name(config.skills)
        self.warnings: list[Problem] = []
        """Parts of the skills that the agent will not have."""
        for i, (name, skill) in enumerate(self._skills):
            key = f"skills[{i}]" if isinstance(config.skills, list) else f"skills.{name}"
            if not (skill / "SKILL.md").is_file():
                problems.append(Problem("", f"no SKILL.md in {skill}", key=key))
            else:
                self.warnings += _lacking(skill, key)
        command = _from_here(_words(config.command)) or program.command
        problems += _missing_program(config, command)
        if problems:
            raise InputError(problems)
        self._config = config
        self._place = config.skill_folder or program.skills
        self.account: str = " ".join(command)
        """The command that is signed in, or not."""
        self._agent = Agent(
            name=config.agent if config.agent != "command" else Path(command[0]).name,
            program=program,
            command=command,
            output=config.output or program.output,
            seconds=variant.timeout_seconds,
            env=config.env,
            clean=config.clean_home,
            where=ThisMachine if config.image is None else partial(AgentContainer, config.image, program, config.env),
        )

    @staticmethod
    def default_timeout(config: Mapping[str, Any]) -> float:
        """Seconds of a call, if the system does not set `timeout_seconds`."""
        timeout = config.get("timeout")
        return timeout if isinstance(timeout, int | float) and timeout > 0 else _SECONDS

    @staticmethod
    def announces(config: Mapping[str, Any]) -> str:
        """A notice that is printed before a run."""
        if config.get("sandbox"):
            return ""
        name = config.get("agent") if config.get("agent") != "command" else _words(config.get("command"))[0]
        return f"{name} works with your rights on this machine (--sandbox docker: in a container)"

    @staticmethod
    def unread(config: Mapping[str, Any]) -> Unread:
        """Limits that this agent does not have."""
        program = PROGRAMS.get(str(config.get("agent")))
        for key in ("max_turns", "max_budget_usd"):
            if program is not None and config.get(key) is not None and key not in program.limits:
                yield key, f"{config['agent']} has no such limit: it would run without one"

    async def run(self, case: Case, trial: int) -> Answer:
        workspace = workspace_path()
        if workspace is not None:
            return await self._ask(case, workspace, beside_workspace(workspace))
        with temporary_folder() as folder:
            (folder / "workspace").mkdir()
            return await self._ask(case, folder / "workspace", None)

    async def _ask(self, case: Case, workspace: Path, keep: Path | None) -> Answer:
        config = self._config
        prompt = prompt_of(case) if self._template is None else self._template.render(case)
        request = AgentRequest(
            f"{config.prompt_prefix}\n\n{prompt}" if config.prompt_prefix else prompt,
            config.model,
            config.max_turns,
            config.max_budget_usd,
            config.args,
        )
        async with installed(self._skills, workspace, self._place):
            answer = await self._agent.ask(request, workspace, keep)
        if self._skills:
            answer.extra[SKILLS] = [name for name, _ in self._skills]
        return answer


def prompt_of(case: Case) -> str:
    """What a case asks. Raises TargetError."""
    prompt = case.input
    if isinstance(prompt, dict):
        prompt = next((prompt[key] for key in ("prompt", "user_message") if key in prompt), None)
    if not isinstance(prompt, str) or not prompt.strip():
        raise TargetError("the case has no prompt: expected input.prompt or input.user_message (or prompt_template)")
    return prompt


def _skills_by_name(skills: list[str] | dict[str, str]) -> list[tuple[str, Path]]:
    """The skills by name."""
    if isinstance(skills, dict):
        return [(name, Path(folder).expanduser().resolve()) for name, folder in skills.items()]
    return [(skill_name(folder), folder) for folder in (Path(skill).expanduser().resolve() for skill in skills)]


def _lacking(skill: Path, key: str) -> list[Problem]:
    """Warnings about links that the copy of a skill lacks. Raises InputError for an unreadable skill."""
    try:
        links = left_out(skill)
    except OSError as error:
        message = f"the skill cannot be copied: {error.filename or skill}: {error.strerror or error}"
        raise InputError([Problem("", message, key=key)]) from None
    if not links:
        return []
    more = [f"and {len(links) - _MOST_LINKS} more"] if len(links) > _MOST_LINKS else []
    listed = ", ".join([*links[:_MOST_LINKS], *more])
    return [Problem("", f"links of the skill {skill} are not copied, the agent works without them: {listed}", key=key)]


def _words(command: Any) -> list[str]:
    return shlex.split(command) if isinstance(command, str) else list(command or ())


def _from_here(words: list[str]) -> list[str]:
    """The words, with files of the working directory as absolute paths: the agent works in another folder."""
    words_with_paths = [
        str(Path(word).absolute()) if i and Path(word).is_file() else word for i, word in enumerate(words)
    ]
    return [str(Path(word).absolute()) if not i and "/" in word else word for i, word in enumerate(words_with_paths)]


def _missing_program(config: _Config, command: list[str] | tuple[str, ...]) -> list[Problem]:
    """Reports a missing program once now, instead of in each cell."""
    env = {**environment(), **config.env}
    program = "docker" if config.sandbox else command[0]
    if shutil.which(program, path=env.get("PATH")) is not None:
        return []
    if config.sandbox:
        message = "Docker is needed, but there is no command 'docker' in the PATH"
        return [Problem("", message, key="sandbox", absent=True)]
    return [Problem("", not_found(program, env), key="command", absent=True)]
