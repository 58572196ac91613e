"""Stands in for a Letta server where a suite only describes agents.

It keeps agents, their memory blocks and tools in memory; what answers for them is the suite's backend.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

__all__ = ["Agent", "AsyncLetta", "BaseTool", "CreateBlock", "MessageCreate"]


class _Record:
    """An object with the fields it was made with."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


class CreateBlock(_Record):
    """A memory block to create: `label`, `value` and any further fields."""


class MessageCreate(_Record):
    """A message to send: `role`, `content`."""


class BaseTool(BaseModel):
    """What classes of tools derive from: `name`, `description`, `args_schema`, and a method `run`."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow")
    name: str = ""


class _PartialClient:
    """A part of the client's interface; any other attribute raises an error that says there is no server."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"evalwright stands in for the client of a Letta server and has no {name!r}: it keeps agents, their memory "
            "blocks and tools only; a factory may return a callable that answers instead of an agent's id"
        )


class Agent(_Record):
    """One agent: `id`, `blocks` by label, and `arguments`, what it was created with."""

    arguments: dict[str, Any]

    id: str
    model: str | None

    def __init__(self, id: str, arguments: dict[str, Any]) -> None:
        super().__init__(**{"name": None, "model": None, **arguments})
        self.id, self.arguments = id, arguments
        self.blocks: dict[str, str] = {
            str(_field(b, "label")): str(_field(b, "value") or "") for b in arguments.get("memory_blocks") or ()
        }


def _field(block: Any, name: str) -> Any:
    return block.get(name) if isinstance(block, dict) else getattr(block, name, None)


class AsyncLetta(_PartialClient):
    """The part of the client's interface that agent factories and set-up functions use."""

    def __init__(self, **_settings: Any) -> None:
        self.agents: _Agents = _Agents()
        self.tools: _Tools = _Tools()

    async def close(self) -> None: ...


class _Agents(_PartialClient):
    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._agents: dict[str, Agent] = {}
        self.blocks: _Blocks = _Blocks(self._agents)
        self.tools: _AgentTools = _AgentTools()

    async def create(self, **arguments: Any) -> Agent:
        agent = Agent(f"agent-local-{next(self._numbers)}", arguments)
        self._agents[agent.id] = agent
        return agent

    async def retrieve(self, agent_id: str, **_more: Any) -> Agent:
        try:
            return self._agents[agent_id]
        except KeyError:
            raise LookupError(f"no agent {agent_id!r}") from None

    async def update(self, agent_id: str, **changes: Any) -> Agent:
        agent = await self.retrieve(agent_id)
        agent.arguments.update(changes)
        agent.__dict__.update(changes)
        return agent

    modify = update

    async def delete(self, agent_id: str, **_more: Any) -> None:
        self._agents.pop(agent_id, None)

    async def list(self, **_filters: Any) -> list[Agent]:
        return list(self._agents.values())


class _Blocks:
    def __init__(self, agents: dict[str, Agent]) -> None:
        self._agents = agents

    async def retrieve(self, block_label: str, *, agent_id: str, **_more: Any) -> _Record:
        blocks = self._agents[agent_id].blocks
        return _Record(label=block_label, value=blocks[block_label])

    async def list(self, agent_id: str, **_more: Any) -> list[_Record]:
        return [_Record(label=label, value=value) for label, value in self._agents[agent_id].blocks.items()]

    async def update(self, block_label: str, *, agent_id: str, value: str, **_more: Any) -> _Record:
        self._agents[agent_id].blocks[block_label] = value
        return _Record(label=block_label, value=value)

    modify = update


class _AgentTools:
    async def attach(self, *_arguments: Any, **_more: Any) -> None: ...

    async def detach(self, *_arguments: Any, **_more: Any) -> None: ...

    async def list(self, *_arguments: Any, **_more: Any) -> list[_Record]:
        return []


class _Tools(_PartialClient):
    def __init__(self) -> None:
        self._tools: dict[str, _Record] = {}

    async def add(self, *, tool: Any, **_more: Any) -> _Record:
        name = str(getattr(tool, "name", None) or type(tool).__name__)
        return self._tools.setdefault(name, _Record(id=f"tool-local-{name}", name=name, tool=tool))

    async def upsert_from_function(self, *, func: Callable[..., Any], **_more: Any) -> _Record:
        return self._tools.setdefault(func.__name__, _Record(id=f"tool-local-{func.__name__}", name=func.__name__))

    async def list(self, *, name: str | None = None, **_more: Any) -> _Record:
        return _Record(items=[tool for key, tool in self._tools.items() if name in (None, key)])
