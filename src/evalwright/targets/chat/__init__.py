"""A chat model as the system under test, with tools that it may call: `chat`, `openai_chat` and `anthropic`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import msgspec

from evalwright.errors import InputError, Problem, TargetError
from evalwright.files.plain import clean_text, plain
from evalwright.llm.endpoints import endpoint_problems
from evalwright.llm.replies import PAUSED, is_unfinished
from evalwright.model.chat import ChatMessage, ChatReply, ChatRequest
from evalwright.model.plan import Variant
from evalwright.model.snapshot import Case
from evalwright.model.trace import Answer, Doubt, Metrics, Output, ToolCall, ToolResult, TraceError, TraceMessage
from evalwright.session import session
from evalwright.targets.build import keys_of
from evalwright.targets.chat.images import Images, without_data
from evalwright.targets.chat.messages import as_trace, opening
from evalwright.targets.chat.tools import Tools, ToolSettings
from evalwright.targets.failures import target_failure
from evalwright.targets.settings import settings
from evalwright.targets.templates import in_session, template_of
from evalwright.targets.totals import add_usage, joined, sum_of_all

__all__ = ["Anthropic", "OpenAIChat", "ProviderChat"]

_Count = Annotated[int, msgspec.Meta(gt=0)]


class _Settings(msgspec.Struct):
    model: str
    system_prompt: str = ""
    user_template: str | None = None
    temperature: float | None = None
    max_tokens: _Count | None = None
    max_turns: _Count = 10
    images: list[str] = []
    """Places in the case (`input.photo`) of images that belong to the user's message."""
    image_folders: list[str] = []
    """Folders with the files that cases may name as images."""
    stream: bool = False
    """Whether the reply is streamed, so that `latency_first_token_ms` is known."""
    base_url: str | None = None
    api_key_env: str | None = None
    parameters: dict[str, Any] = {}
    tools: list[ToolSettings] = []


class _Chat:
    """Calls the model until it answers without calling a tool, at most `max_turns` times.

    Messages before a failure are kept with the error.
    """

    config_keys: tuple[str, ...] = (*keys_of(_Settings), "api_key")  # it is rejected with a message of its own
    folder_keys: tuple[str, ...] = ("image_folders",)
    text_keys: tuple[str, ...] = ("system_prompt", "user_template")
    """Keys whose text may be in a separate file."""
    template_keys: tuple[str, ...] = text_keys
    _provider = ""

    def __init__(self, variant: Variant) -> None:
        problems = endpoint_problems(variant.config)
        if "api_key" in variant.config:
            message = "put the key in an environment variable and give its name as api_key_env"
            problems.append(Problem("", message, key="api_key"))
        system, user = (
            template_of(text, key, variant, problems) if isinstance(text := variant.config.get(key), str) else None
            for key in ("system_prompt", "user_template")
        )
        try:
            self._settings = settings(_Settings, variant.config)
            self._images = Images(self._settings.images, self._settings.image_folders)
        except InputError as error:
            problems += error.listed
        if problems:
            raise InputError(problems)
        self._system, self._user = system, user
        self._tools = Tools(self._settings.tools)

    def asks(self, case: Case) -> Iterator[ChatRequest]:
        chosen = self._settings
        yield ChatRequest(
            chosen.model, [], provider=self._provider, base_url=chosen.base_url, api_key_env=chosen.api_key_env
        )

    async def run(self, case: Case, trial: int) -> Answer:
        case = in_session(case)
        talk = _Talk((self._system and self._system.render(case)) or None, self._opening(case))
        try:
            await self._converse(talk, trial)
        except TargetError as error:
            # Without a turn there is nothing to keep, and the runner may retry the error.
            if not talk.replies:
                raise
            talk.error = target_failure(error)
        return talk.answer()

    def _opening(self, case: Case) -> list[ChatMessage]:
        messages = opening(case, self._user)
        if parts := self._images.parts(case):
            last = messages[-1]
            texts = last.content if isinstance(last.content, list) else [{"type": "text", "text": last.content}]
            messages[-1] = msgspec.structs.replace(last, content=[*texts, *parts])
        return messages

    async def close(self) -> None:
        self._tools.close()

    async def _converse(self, talk: _Talk, trial: int) -> None:
        for _ in range(self._settings.max_turns):
            reply = await session().models.chat(self._request(talk, trial), "system")
            calls = talk.add(reply)
            if not calls:
                if reply.finish_reason == PAUSED:
                    raise TargetError(f"the provider stopped in the middle of the reply ({PAUSED})", "bad_reply")
                if not (reply.text or reply.refusal) and is_unfinished(reply.finish_reason):
                    raise TargetError(f"the reply has no content (it ended with {reply.finish_reason})", "bad_reply")
                return
            for call in calls:
                talk.add_result(await self._tools.use(call))
        raise TargetError(
            f"the model is still calling tools after {self._settings.max_turns} turns (max_turns)", "max_turns"
        )

    def _request(self, talk: _Talk, trial: int) -> ChatRequest:
        chosen = self._settings
        return ChatRequest(
            chosen.model,
            # A copy: the list grows, while recorders and caches may still hold the request.
            list(talk.messages),
            talk.system,
            chosen.temperature,
            chosen.max_tokens,
            tools=self._tools.offers,
            repeat=trial,
            provider=self._provider,
            base_url=chosen.base_url,
            api_key_env=chosen.api_key_env,
            extra=chosen.parameters,
            stream=chosen.stream or msgspec.UNSET,
        )


class ProviderChat(_Chat):
    """A model of any provider, chosen by its name."""


class OpenAIChat(_Chat):
    """A model behind OpenAI's chat completions API, or a compatible one (`base_url`)."""

    _provider = "openai"


class Anthropic(_Chat):
    """A model behind Anthropic's Messages API."""

    _provider = "anthropic"


class _Talk:
    """One conversation: the messages for the next call, and the parts of the trace."""

    def __init__(self, system: str | None, messages: list[ChatMessage]) -> None:
        self.system, self.messages = system, messages
        self.replies: list[ChatReply] = []
        self.error: TraceError | None = None
        self._recorded = [TraceMessage("system", system)] if system else []
        self._recorded += as_trace(map(without_data, messages))
        self._calls: list[ToolCall] = []
        self._results: list[ToolResult] = []

    def add(self, reply: ChatReply) -> list[ToolCall]:
        """Add a reply of the model; returns the tool calls that it waits for, each with an id."""
        self.replies.append(reply)
        served = reply.served_calls or []
        ran = [_recorded(served_call.call, f"served_{len(self._calls) + n}") for n, served_call in enumerate(served, 1)]
        # Some servers give calls no id, but reject results without one.
        calls = [_recorded(call, f"call_{len(self._calls) + n}") for n, call in enumerate(reply.tool_calls, 1)]
        self.messages.append(ChatMessage("assistant", reply.text, tool_calls=calls))
        calls_of_turn = [*ran, *calls]
        recorded = as_trace([ChatMessage("assistant", clean_text(reply.text, "text", []), tool_calls=calls_of_turn)])
        recorded[0].thinking = reply.thinking
        self._recorded += recorded
        self._calls += calls_of_turn
        for call, result in zip(ran, served, strict=True):
            if result.result is not None:
                self._record_result(ToolResult(call.name, plain(result.result, "result", []), call.id))
        return calls

    def add_result(self, result: ToolResult) -> None:
        text = result.content if isinstance(result.content, str) else msgspec.json.encode(result.content).decode()
        self.messages.append(ChatMessage("tool", text, result.name, tool_call_id=result.tool_call_id))
        self._record_result(result)

    def _record_result(self, result: ToolResult) -> None:
        self._recorded.append(TraceMessage("tool", result.content, name=result.name))
        self._results.append(result)

    def answer(self) -> Answer:
        last = self.replies[-1]
        facts = {"model": last.model, "turns": len(self.replies), "finish_reason": last.finish_reason}
        if last.refusal:
            facts["refusal"] = last.refusal
        final = None if last.tool_calls else clean_text(last.text or last.refusal or "", "text", [])
        return Answer(
            Output(final, joined(reply.thinking for reply in self.replies)),
            self._recorded,
            self._calls,
            self._results,
            _totals(self.replies),
            self.error,
            {"chat": plain(facts, "chat", [])},
            doubts=tuple(_doubts(last)),
        )


def _doubts(last: ChatReply) -> Iterator[Doubt]:
    """That the model refused or was cut off, which evaluators cannot see."""
    if last.refusal:
        yield Doubt("the model refused")
    elif is_unfinished(last.finish_reason):
        # The reason is part of what is counted: an example would seem to be the reason of all.
        yield Doubt(f"the reply was cut off, ending with {last.finish_reason!r:.40},")


def _totals(replies: Sequence[ChatReply]) -> Metrics:
    total = Metrics()
    for reply in replies:
        add_usage(total, reply.usage)
    # Without the tokens of one turn, those of the others would give too low a cost.
    total.token_input = sum_of_all([reply.usage.token_input for reply in replies])
    total.token_output = sum_of_all([reply.usage.token_output for reply in replies])
    total.cost_usd = sum_of_all([reply.cost_usd for reply in replies])
    total.latency_first_token_ms = next((reply.first_ms for reply in replies if reply.first_ms is not None), None)
    return total


def _recorded(call: ToolCall, name: str) -> ToolCall:
    return ToolCall(call.name, call.id or name, plain(call.arguments, "arguments", []), call.started_at)
