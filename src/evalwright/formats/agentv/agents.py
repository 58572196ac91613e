"""Coding agents as targets of `targets.yaml`: the programs that AgentV itself starts."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalwright.errors import TargetError
from evalwright.files.temporary import temporary_folder
from evalwright.formats.agentv.exchange import PromptRequest, ProviderReply
from evalwright.formats.agentv.health import refused
from evalwright.formats.agentv.target_settings import AGENTS
from evalwright.formats.agentv.workspaces import copy_template
from evalwright.model.trace import Answer, TraceMessage
from evalwright.session import environment
from evalwright.targets.coding_agent.agent import Agent, not_found
from evalwright.targets.coding_agent.programs import PROGRAMS, AgentRequest

__all__ = ["AgentProvider"]

_SECONDS = 600.0
_OPTIONS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "codex": {"model_reasoning_effort": ("-c", "model_reasoning_effort={}")},
    "pi": {"subprovider": ("--provider", "{}"), "thinking": ("--thinking", "{}"), "tools": ("--tools", "{}")},
}
"""Keys of targets that are options of one agent only."""


class AgentProvider:
    """An agent that is called for each question, in `cwd`, in a copy of `workspace_template`, or in an empty folder."""

    def __init__(self, target: Mapping[str, Any], folder: str, *, allowed: bool) -> None:
        """Raises InputError."""
        name = AGENTS[target["provider"]]
        program = PROGRAMS[name]
        if program.needs_permission and not allowed:
            message = f"{name} may run any command and change any file with your rights: allow that with --allow-tools"
            raise refused("provider", f"target {target.get('name')!r}: {message}")
        written = target.get("command")
        named = target.get("executable") or (written if isinstance(written, str) else None)
        command = [str(named or program.command[0])]
        if "/" in command[0] and not Path(command[0]).is_absolute():
            command = [str(Path(folder).resolve() / command[0])]
        if shutil.which(command[0], path=environment().get("PATH")) is None:
            raise refused("executable", f"target {target.get('name')!r}: {not_found(command[0], environment())}")
        cwd, template = target.get("cwd"), target.get("workspace_template")
        self._cwd = None if cwd is None else Path(folder) / cwd
        self.workspace_template: Path | None = None if template is None else Path(folder) / template
        self._model, self._args = target.get("model"), _arguments(name, target)
        self._agent = Agent(
            name=name,
            program=program,
            command=command,
            output=program.output,
            seconds=float(target.get("timeout_seconds") or _SECONDS),
        )

    async def ask(self, question: PromptRequest, purpose: str) -> ProviderReply:
        """Raises TargetError."""
        request = AgentRequest(_prompt(question), self._model, args=self._args)
        if question.workspace is not None:
            return _reply_of(await self._agent.ask(request, question.workspace))
        with temporary_folder() as folder:
            return _reply_of(await self._run_agent(request, folder / "workspace"))

    async def _run_agent(self, request: AgentRequest, place: Path) -> Answer:
        if self.workspace_template is not None:
            place = await asyncio.to_thread(copy_template, self.workspace_template, place)
        elif self._cwd is not None:
            place = self._cwd
        else:
            place.mkdir()
        return await self._agent.ask(request, place)


def _arguments(name: str, target: Mapping[str, Any]) -> list[str]:
    messages = []
    for key, (option, value) in _OPTIONS.get(name, {}).items():
        if target.get(key) is not None:
            messages += [option, value.format(target[key])]
    return [*messages, *map(str, target.get("args") or ())]


def _prompt(request: PromptRequest) -> str:
    """The question, preceded by the files that the agent should read itself."""
    listed = "\n".join(f"* {file}" for file in request.files)
    parts = [request.system, request.guidelines, f"Read these files first:\n{listed}" if listed else ""]
    return "\n\n".join([*filter(None, parts), request.bare_prompt or request.prompt])


def _reply_of(answer: Answer) -> ProviderReply:
    if answer.error is not None:
        raise TargetError(answer.error.message, answer.error.type)
    metrics = answer.metrics
    counts = {"input": metrics.token_input, "output": metrics.token_output}
    usage = {name: count for name, count in counts.items() if count is not None}
    messages = [_message(message) for message in answer.messages]
    warnings = answer.extra.get("warnings", ())
    return ProviderReply(answer.output.final_answer or "", messages, usage or None, metrics.cost_usd, warnings=warnings)


def _message(message: TraceMessage) -> dict[str, Any]:
    """A message in AgentV's form, in which the tool call is part of it."""
    record: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.name is not None:
        record["name"] = message.name
    if (call := message.tool_call) is not None:
        record["tool_calls"] = [{"tool": call.name, "input": call.arguments, **({"id": call.id} if call.id else {})}]
    return record
