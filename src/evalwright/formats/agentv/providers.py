"""The providers of `targets.yaml`: commands, models, fixed answers, Python functions."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from msgspec.structs import replace

from evalwright.errors import TargetError
from evalwright.formats.agentv.commands import Command
from evalwright.formats.agentv.exchange import PromptRequest, ProviderReply, read_provider_reply
from evalwright.formats.agentv.health import refused
from evalwright.formats.agentv.target_settings import AGENTS
from evalwright.model.chat import ChatMessage, ChatRequest, Purpose, Waits
from evalwright.sandbox.patterns import search
from evalwright.session import session
from evalwright.session.imports import import_by_name

__all__ = ["MODELS", "Model", "Provider", "model_of", "provider_of"]

MODELS = {
    "openai": "openai", "anthropic": "anthropic", "azure": "azure", "gemini": "google", "openrouter": "openrouter",
}  # fmt: skip
KINDS = ("cli", "mock", "python", "replay", *MODELS, *AGENTS)
_MOCKED = '{"text": "mock response"}'


class Provider(Protocol):
    """What calls a target: a program, a model, an agent, or recorded answers."""

    async def ask(self, request: PromptRequest, purpose: str) -> ProviderReply:
        """Raises TargetError. The caller limits the time and cancels."""


def provider_of(target: Mapping[str, Any], folder: str, *, allow_tools: bool = False) -> Provider:
    """The provider of a target; with `allow_tools`, it may be an agent that never asks for permission.

    Raises InputError that names the target and the key.
    """
    kind = target.get("provider")
    if kind == "mock":
        return _Mock(target)
    if kind == "cli":
        return Command(target, folder)
    if kind == "python":
        return _Python(target)
    if kind == "replay":
        from evalwright.formats.agentv.replay import RecordedAnswers

        return RecordedAnswers(target, folder)
    if kind in AGENTS:
        from evalwright.formats.agentv.agents import AgentProvider

        return AgentProvider(target, folder, allowed=allow_tools)
    if kind in MODELS:
        return model_of(target)
    name = target.get("name")
    raise refused("provider", f"unknown provider {kind!r} of target {name!r} (there are: {', '.join(KINDS)})")


def model_of(target: Mapping[str, Any]) -> Model:
    """The provider of a target whose `provider` is one of MODELS. Raises InputError."""
    return Model(target, MODELS[target["provider"]])


class _Mock:
    def __init__(self, target: Mapping[str, Any]) -> None:
        self._response = str(target.get("response", _MOCKED))
        self._responses = [(r["pattern"], str(r["response"])) for r in target.get("responses") or () if "pattern" in r]

    async def ask(self, request: PromptRequest, purpose: str) -> ProviderReply:
        for pattern, response in self._responses:
            if search(re.compile(pattern), request.prompt):
                return ProviderReply(response)
        return ProviderReply(self._response)


class _Python:
    """`callable: module:function`, called with the question, the messages and the id of the case."""

    def __init__(self, target: Mapping[str, Any]) -> None:
        place = str(target.get("callable"))
        module, _, name = place.partition(":")
        try:
            self._function: Callable[..., Any] = getattr(import_by_name(module), name)
        except Exception as error:
            raise refused("callable", f"{place!r} cannot be imported: {type(error).__name__}: {error}") from error
        if not callable(self._function):
            raise refused("callable", f"{place!r} is no function: found {type(self._function).__name__}")

    async def ask(self, request: PromptRequest, purpose: str) -> ProviderReply:
        import inspect

        settings = {
            "prompt": request.prompt,
            "messages": await request.with_images(),
            "input_messages": [*request.messages],
            "eval_id": request.case_id,
        }
        called = inspect.iscoroutinefunction(self._function)
        returned = await self._function(settings) if called else await asyncio.to_thread(self._function, settings)
        if returned is None:
            raise TargetError(f"{self._function.__name__} returned nothing")
        return read_provider_reply(returned if isinstance(returned, str) else json.dumps(returned, ensure_ascii=False))


def _waits(target: Mapping[str, Any]) -> Waits | None:
    first, longest = (_seconds(target.get(f"retry_{name}_delay_ms")) for name in ("initial", "max"))
    waits = Waits(first, longest, target.get("retry_backoff_factor"), target.get("retry_status_codes"))
    return None if waits == Waits() else waits


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


_MODEL = ("model", "deployment", "variant")
"""Keys for the name of a model; the first one that is written is used."""
_MODEL_OF_AZURE = ("deployment", "model")
_DEFAULT_MODELS = {"google": "gemini-2.5-flash"}
"""By provider, the model of targets that name none."""


class Model:
    """A chat model, called through the run's only way to models."""

    def __init__(self, target: Mapping[str, Any], provider: str) -> None:
        names = _MODEL_OF_AZURE if provider == "azure" else _MODEL
        model = next((target[name] for name in names if target.get(name)), _DEFAULT_MODELS.get(provider))
        if not isinstance(model, str):
            raise refused("model", f"target {target.get('name')!r} needs a 'model'")
        base_url = target.get("base_url", target.get("endpoint"))
        if provider == "azure" and isinstance(base_url, str) and "://" not in base_url:
            base_url = f"https://{base_url}" if "." in base_url else f"https://{base_url}.openai.azure.com"
        retries = target.get("max_retries")
        self.question: ChatRequest = ChatRequest(
            model,
            [],
            provider=provider,
            base_url=base_url,
            api_key_env=target.get("api_key_env"),
            attempts=None if retries is None else retries + 1,
            waits=_waits(target),
        )
        """What all questions have in common."""
        self._settings = {"temperature": target.get("temperature"), "max_tokens": target.get("max_output_tokens")}

    async def ask(self, request: PromptRequest, purpose: str) -> ProviderReply:
        meant: Purpose = "judge" if purpose == "judge" else "system"
        reply = await session().models.chat(await self._request(request), meant)
        counts = {"input": reply.usage.token_input, "output": reply.usage.token_output}
        usage = {name: count for name, count in counts.items() if count is not None}
        # what a system refuses with is its answer, and no verdict of a judge
        text = reply.text or (meant == "system" and reply.refusal) or ""
        return ProviderReply(text, (), usage or None, reply.cost_usd)

    async def forget(self, request: PromptRequest) -> None:
        """Do not cache the reply to this: it cannot be used."""
        session().models.forget(await self._request(request))

    async def _request(self, request: PromptRequest) -> ChatRequest:
        chat = await request.with_images()
        messages = [m for m in chat if m["role"] != "system"] or [{"role": "user", "content": request.prompt}]
        system = [request.system or "", request.guidelines, *(m["content"] for m in chat if m["role"] == "system")]
        settings = {**self._settings, **request.settings}
        return replace(
            self.question,
            messages=[ChatMessage(m["role"], m["content"]) for m in messages],
            system="\n\n".join(filter(None, system)) or None,
            temperature=settings.get("temperature"),
            max_tokens=settings.get("max_tokens"),
            repeat=request.attempt,
        )
