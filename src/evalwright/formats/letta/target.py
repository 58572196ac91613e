"""The system under test of a Letta suite: an agent is created for each sample and gets its messages one by one."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalwright.errors import InputError, Problem, TargetError
from evalwright.evaluators.conversation.turns import Turn, assistant_texts, text_or_json
from evalwright.files.key_paths import as_written
from evalwright.files.numbers import whole_number_in
from evalwright.formats.letta.backends import Backend, FunctionBackend, backend_of, request_of, turn_of
from evalwright.formats.letta.conversation import Context
from evalwright.formats.letta.functions import function_at
from evalwright.formats.letta.surface.client import Agent, AsyncLetta
from evalwright.formats.letta.surface.models import Sample, sample_of
from evalwright.formats.letta.surface.progress import Emit, reporter
from evalwright.llm.replies import arguments_in
from evalwright.model.chat import ChatRequest
from evalwright.model.plan import Variant
from evalwright.model.snapshot import Case
from evalwright.model.trace import Answer, Metrics, Output, ToolCall, ToolResult, TraceMessage
from evalwright.targets.answer_parts import with_notes
from evalwright.targets.answers import traced
from evalwright.targets.failures import located
from evalwright.targets.threads import Threads

if TYPE_CHECKING:
    from evalwright.formats.letta.recorded_results import Cache

__all__ = ["LettaAgent"]

_NO_BACKEND = (
    "nothing answers for the agent: pass --target (file.py:function, http(s)://..., openai:MODEL) or --cached DIR, "
    "or set target.backend or EVALWRIGHT_TARGET"
)


class LettaAgent:
    """The agent that a Letta suite names, or what answers in its place.

    Keys: `backend`, `cached`, `agent_script`, `agent_id`, `model`, `setup_script`, `setup_once`, `cleanup`.
    """

    may_be_silent: bool = True
    """As in the original, an agent that says nothing has an empty submission."""

    def __init__(self, variant: Variant) -> None:
        config = variant.config
        self._model: str | None = config.get("model")
        self._agent_id: str = config.get("agent_id") or "agent"
        self._cleanup: bool = bool(config.get("cleanup"))
        folder, backend = Path(config.get("folder", ".")), config.get("backend")
        problems: list[Problem] = []
        self._client, self._threads = AsyncLetta(), Threads()
        self._backend: Backend | None = None
        if backend:
            self._backend = _trying(problems, partial(backend_of, backend, folder, self._threads))
        self._factory = _trying(problems, partial(_function, config, "agent_script", "agent_factory"))
        self._setup = _trying(problems, partial(_function, config, "setup_script", "suite_setup"))
        if problems:
            raise InputError(problems)
        self._setup_once: bool = bool(config.get("setup_once", True))
        self._cached: str | None = config.get("cached")
        self._cache: Cache | None = None

    async def open(self) -> None:
        if self._cached is not None:
            from evalwright.formats.letta.recorded_results import read_cache

            self._cache = read_cache(Path(self._cached))
        if self._setup is not None:
            wanted = len(inspect.signature(self._setup).parameters)
            if wanted == 2 or self._setup_once:
                await self._set_up(self._setup, (self._client, self._model)[:wanted])

    async def _set_up(self, setup: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        try:
            await self._threads.result_of(setup, *arguments)
        except (Exception, SystemExit) as error:
            raise InputError(Problem("", f"Setup failed: {located(error)}", key="setup_script")) from error

    def asks(self, case: Case) -> Iterator[ChatRequest]:
        """A recording needs no key, and an agent factory may answer by itself."""
        request = None if self._backend is None or self._cached is not None else request_of(self._backend, self._model)
        if request is not None:
            yield request

    @traced
    async def run(self, case: Case, trial: int) -> Answer:
        emit = reporter(case, trial, self._model)
        emit("sample_started")
        recording = self._cache.find(case.id, self._model) if self._cache is not None else None
        if recording is not None:
            emit("agent_loading", agent_id=recording["agent_id"], from_cache=True)
            if recording["error"] is not None:
                raise TargetError(recording["error"], "recorded_error")
            model, blocks = self._model or recording["model"], recording["blocks"]
            return _answer(recording["trajectory"], recording["agent_id"], blocks, model, recording["usage"])
        emit("agent_loading")
        sample = sample_of(case)
        backend, agent = await self._agent_for(sample)
        model = self._model or (agent.model if agent is not None else None)
        blocks = agent.blocks if agent is not None else {}
        described = agent.arguments if agent is not None else {}
        agent_id = agent.id if agent is not None else self._agent_id
        context = Context(sample, model, trial + 1, agent_id, described, blocks)
        try:
            turns = await self._converse(backend, context, case.input, emit)
        finally:
            if self._cleanup and agent is not None:
                await self._client.agents.delete(agent.id)
        return _answer(turns, agent_id, context.blocks, model, context.usage, case.input)

    async def _agent_for(self, sample: Sample) -> tuple[Backend, Agent | None]:
        """The backend for the sample, and the agent that its factory created."""
        if self._factory is None:
            return self._backend or self._missing(), None
        made = await self._factory(self._client, sample)
        if isinstance(made, str):
            return self._backend or self._missing(), await self._client.agents.retrieve(made)
        answers = getattr(made, "respond", None)
        if answers is not None:
            return FunctionBackend(lambda message, _context: answers(message), self._threads), None
        if callable(made):
            return FunctionBackend(made, self._threads), None
        raise TargetError(
            f"the agent factory returned {type(made).__name__}, expected an agent id or something that answers"
        )

    def _missing(self) -> Backend:
        if self._cached is not None:
            raise TargetError(f"{self._cached} has no result of this sample, and no --target answers it", "no_backend")
        raise TargetError(_NO_BACKEND, "no_backend")

    async def _converse(self, backend: Backend, context: Context, messages_sent: Any, emit: Emit) -> list[Turn]:
        turns: list[Turn] = []
        messages = messages_sent if isinstance(messages_sent, list) else [messages_sent]
        for i, message in enumerate(messages):
            context.turn = i
            emit("message_sending", i + 1, len(messages), agent_id=context.agent_id)
            turns.append(turn_of(await backend.reply(message, context)))
            context.history = turns
        emit("grading_started", agent_id=context.agent_id)
        return turns

    async def close(self) -> None:
        self._threads.close()


def _trying(problems: list[Problem], make: Callable[[], Any]) -> Any:
    """What `make` returns; None if it raises, with its problems added to the others."""
    try:
        return make()
    except InputError as error:
        problems += error.listed
        return None


def _function(config: dict[str, Any], key: str, role: str) -> Callable[..., Any] | None:
    """The user's function. Without its file, the suite can be checked but not run here."""
    place = config.get(key)
    if not place:
        return None
    file = Path(place.rpartition(":")[0])
    if not os.path.isfile(file):
        raise InputError(Problem("", f"{key}: there is no file {file.name!r}", key=key, absent=True))
    return function_at(place, role, key)


def _answer(
    turns: list[Turn],
    agent_id: str | None,
    blocks: dict[str, str] | None,
    model: str | None,
    usage: Any,
    messages: Any = (),
) -> Answer:
    texts = assistant_texts(turns)
    extra: dict[str, Any] = {"turns": turns, "agent_id": agent_id, "model": model, "usage": usage or None}
    if blocks is not None:
        extra["blocks"] = blocks
    notes: list[str] = []
    answer = Answer(Output(final_answer=texts[-1] if texts else None), extra=extra, metrics=_metrics(usage, notes))
    answer.messages = _messages(turns, messages if isinstance(messages, list) else [messages] if messages else [])
    answer.tool_calls = [m.tool_call for m in answer.messages if m.tool_call is not None]
    names = {call.id: call.name for call in answer.tool_calls}
    answer.tool_results = [
        ToolResult(names.get(m.get("tool_call_id"), ""), text_or_json(m.get("tool_return")), m.get("tool_call_id"))
        for turn in turns
        for m in turn
        if m.get("message_type") == "tool_return_message"
    ]
    return with_notes(answer, notes)


def _metrics(usage: Any, notes: list[str]) -> Metrics:
    """Total tokens; recordings have one usage, or one for each message."""
    counted = [counts for counts in (usage if isinstance(usage, list) else [usage]) if isinstance(counts, dict)]
    return Metrics(
        _tokens(counted, notes, "token_input", "prompt_tokens"),
        _tokens(counted, notes, "token_output", "completion_tokens"),
    )


def _tokens(counted: list[dict[str, Any]], notes: list[str], *names: str) -> int | None:
    """Their sum. None if there are none, or if one is no number of tokens: the sum of the others would be too low."""
    given = [(name, one[name]) for one in counted for name in names if one.get(name) is not None]
    numbers = [whole_number_in(value) for _, value in given]
    for (name, value), number in zip(given, numbers, strict=True):
        if number is None or number < 0:
            notes.append(f"usage.{name}: expected a whole number from 0 on, found {as_written(value)}; left out")
            return None
    return sum(number for number in numbers if number is not None) if numbers else None


def _messages(turns: list[Turn], question: list[Any]) -> list[TraceMessage]:
    messages = []
    for i, turn in enumerate(turns):
        if i < len(question):
            messages.append(TraceMessage("user", question[i]))
        for message in turn:
            messages += _generic(message)
    return messages


def _generic(message: dict[str, Any]) -> list[TraceMessage]:
    kind = message.get("message_type")
    if kind == "assistant_message":
        return [TraceMessage("assistant", assistant_texts([[message]])[0])]
    if kind == "reasoning_message":
        return [TraceMessage("assistant", thinking=str(message.get("reasoning") or ""))]
    if kind == "tool_call_message":
        calls = message.get("tool_calls") or [message.get("tool_call")]
        return [TraceMessage("assistant", tool_call=_tool_call(c)) for c in calls if isinstance(c, dict)]
    if kind == "tool_return_message":
        return [TraceMessage("tool", text_or_json(message.get("tool_return")))]
    return []


def _tool_call(call: dict[str, Any]) -> ToolCall:
    given = call.get("arguments")
    arguments = given if isinstance(given, dict) else arguments_in(given if isinstance(given, str) else None)
    return ToolCall(str(call.get("name") or ""), call.get("tool_call_id"), arguments)
