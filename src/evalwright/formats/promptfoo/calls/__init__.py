"""Ways to call a provider, one module each: its input, its output, and which way a provider needs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from evalwright.formats.promptfoo.providers import Provider, called_of, provider_kind
from evalwright.model.chat import ChatRequest
from evalwright.registry import resolve

__all__ = ["Caller", "ProviderCall", "ProviderReply", "caller_of"]

_PLACE = "evalwright.formats.promptfoo.calls."
_CALLERS = {
    "echo": f"{_PLACE}echo:Echo",
    "exec": f"{_PLACE}command:Command",
    "python": f"{_PLACE}python:PythonFile",
    "javascript": f"{_PLACE}javascript:JavaScriptFile",
    "http": f"{_PLACE}http:HttpProvider",
    "chat": f"{_PLACE}chat:Chat",
    "embedding": f"{_PLACE}chat:Chat",
}


class ProviderCall(NamedTuple):
    """One call: the rendered prompt, and what code may know about the cell."""

    prompt: str
    context: dict[str, Any]
    trial: int
    environment: Mapping[str, str]


class ProviderReply(NamedTuple):
    """What a provider returned; `cost` in US dollars. `remarks` is what else it said, which assertions can read:
    `cached`, `finishReason`, `guardrails`, `logProbs` and `tokenUsage` of promptfoo, and keys of the user's own."""

    output: Any
    cost: float | None = None
    tokens: Mapping[str, int | None] = {}
    metadata: Mapping[str, Any] = {}
    raw: Any = None
    remarks: Mapping[str, Any] = {}
    error: str | None = None
    """Why there is no output."""


class Caller(ABC):
    """One provider. Calling it raises TargetError."""

    @abstractmethod
    async def __call__(self, call: ProviderCall) -> ProviderReply: ...

    def asks(self) -> Iterator[ChatRequest]:
        """The model calls that it makes, so that a missing key is reported before the run."""
        return iter(())

    async def close(self) -> None:  # noqa: B027 - most have nothing to close
        """Called once, after all calls."""


def caller_of(provider: Provider, folder: str) -> Caller:
    """The caller for a provider. Raises InputError for a configuration that it cannot use."""
    caller: Caller = resolve(_CALLERS[provider_kind(called_of(provider))])(provider, folder)
    return caller
