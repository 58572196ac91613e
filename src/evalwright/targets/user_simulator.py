"""A model that plays the user in a conversation with another system: target `user_simulator`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from traceback import format_exception
from typing import Annotated, Any, Literal
from uuid import uuid4

import msgspec

from evalwright.errors import AllMistakes, EvaluatorError, InputError, Problem, TargetError, below
from evalwright.files.plain import clean_text
from evalwright.model.chat import ChatMessage, ChatRequest, Usage
from evalwright.model.plan import Variant
from evalwright.model.protocols import Target
from evalwright.model.snapshot import Case
from evalwright.model.trace import Answer, Doubt, Metrics, Output, ToolCall, ToolResult, TraceError, TraceMessage
from evalwright.session import session
from evalwright.targets.build import (
    Unread,
    build_inner_target,
    inside,
    keys_of,
    optional_parts,
    target_traits,
    unread_of,
)
from evalwright.targets.chat.messages import GOING_ON
from evalwright.targets.failures import target_failure
from evalwright.targets.settings import settings
from evalwright.targets.stop import stop_rule, unread_of_rule
from evalwright.targets.templates import SESSION_ID
from evalwright.targets.totals import add_metrics, add_usage, doubts_of_all, joined, sum_of_all

__all__ = ["UserSimulator"]

Party = Literal["agent", "user", "environment"]

_Count = Annotated[int, msgspec.Meta(gt=0)]
_Text = Annotated[str, msgspec.Meta(pattern=r"\S")]

_ROLE = (
    "You play the user in a conversation with an assistant; what the assistant says is given to you as messages. "
    "Write only your next message to it, as this user would:"
)
_BEGIN = "(The conversation begins. Write your first message.)"
_LONGEST_MESSAGE, _LONGEST_STACK = 4_000, 8_000
_SAID_NOTHING = "(no words)"
_OF_INNER = ("adapter", "name", "metadata")
_ENVIRONMENT = (
    *("timeout", "http_5xx", "connection", "rate_limited", "quota", "authentication"),
    *("cost_limit", "no_price", "not_recorded", "network_refused"),
)
"""Error types that are neither party's fault."""


class _Settings(msgspec.Struct):
    user_model: _Text
    user_persona_prompt: _Text
    inner_system: dict[str, Any]
    stopping_criterion: dict[str, Any]
    max_turns: _Count = 10
    user_max_tokens: _Count = 512


class _BrokenConversation(Exception):
    """Raised when the conversation cannot go on."""

    def __init__(
        self,
        by: Party,
        error_type: str,
        message: str,
        stack: str | None = None,
        *,
        status: int | msgspec.UnsetType = msgspec.UNSET,
        attempts: int | msgspec.UnsetType = msgspec.UNSET,
    ) -> None:
        super().__init__(message)
        text = clean_text(message[:_LONGEST_MESSAGE], "message", [])
        # Without the time to wait: a whole conversation is not restarted unless that is asked for.
        stack = stack and clean_text(stack, "stack", [])
        self.by, self.error = by, TraceError(error_type, text, stack, status, attempts=attempts)


class UserSimulator:
    """A model with a persona that talks with another system as its user, until a rule stops it.

    `input.user_message` is the first message. If a conversation breaks off, the messages so far are kept, and who broke
    it off: the agent (it failed or gave no answer), the user (its model refused or gave none), or the environment
    (network, quota, budget).
    """

    config_keys: tuple[str, ...] = keys_of(_Settings)
    text_keys: tuple[str, ...] = ("user_persona_prompt",)

    @staticmethod
    def unread(config: Mapping[Any, Any]) -> Unread:
        yield from inside("stopping_criterion", unread_of_rule(config.get("stopping_criterion")))
        system = config.get("inner_system")
        if isinstance(system, dict) and isinstance(system.get("adapter"), str):
            yield from inside("inner_system", unread_of(system["adapter"], system, _OF_INNER))

    def __init__(self, variant: Variant) -> None:
        criterion, system = variant.config.get("stopping_criterion"), variant.config.get("inner_system")
        mistakes = AllMistakes()
        with mistakes:
            self._settings = settings(_Settings, variant.config)
        if isinstance(criterion, dict):
            with mistakes, below("stopping_criterion"):
                self._stop = stop_rule(criterion)
        if isinstance(system, dict):
            with mistakes, below("inner_system"):
                self._inner = _inner_target(variant, system)
        mistakes.refuse()
        self._may_be_silent = variant.evalh_rules or "final_answer" in optional_parts(variant.config)

    def asks(self, case: Case) -> Iterator[ChatRequest]:
        yield ChatRequest(self._settings.user_model, [])
        for part in (self._inner, self._stop):
            if (asks := target_traits(part).asks) is not None:
                yield from asks(case)

    @property
    def address(self) -> str | None:
        """The inner system's address, if it has one."""
        return getattr(self._inner, "address", None)

    async def open(self) -> None:
        if (opening := getattr(self._inner, "open", None)) is not None:
            await opening()

    async def close(self) -> None:
        if (closing := getattr(self._inner, "close", None)) is not None:
            await closing()

    async def run(self, case: Case, trial: int) -> Answer:
        message = case.input.get("user_message") if isinstance(case.input, dict) else None
        if not isinstance(message, str) or not message.strip():
            text = "nothing" if message is None else f"{message!r:.40}"
            wanted = "a simulated conversation starts with input.user_message"
            raise TargetError(f"{wanted}: expected a text that is not empty, found {text}")
        talk = _Talk()
        state: dict[str, Any] = {"turns": 0, "stop_reason": None}
        error = None
        try:
            state["stop_reason"] = await self._converse(talk, case, trial, message)
        except _BrokenConversation as broken:
            error = broken.error
            state["broken_by"] = broken.by
        state |= {"turns": talk.turns, "user_model": self._settings.user_model, "max_turns": self._settings.max_turns}
        return talk.answer(error, {"user_simulator": state})

    async def _converse(self, talk: _Talk, case: Case, trial: int, message: str) -> str:
        """Talk turn by turn; returns why the conversation ended."""
        while True:
            talk.add_user(message)
            await self._ask_agent(talk, case, trial, message)
            if not self._may_be_silent and talk.last_answer is None and not talk.acted:
                raise _BrokenConversation("agent", "adapter_error", f"the system gave no answer in turn {talk.turns}")
            try:
                reason = await self._stop.reason(talk.turns, talk.messages, trial)
            except (EvaluatorError, TargetError) as error:
                raise _BrokenConversation("environment", error.type, f"stop judge: {error}", attempts=1) from error
            if reason is not None:
                return reason
            if talk.turns >= self._settings.max_turns:
                return "max_turns_reached"
            if not (talk.last_answer or "").strip() and not talk.acted:
                raise _BrokenConversation("agent", "adapter_error", f"the system gave no answer in turn {talk.turns}")
            message = await self._ask_user(talk, trial)

    async def _ask_agent(self, talk: _Talk, case: Case, trial: int, message: str) -> None:
        inputs = {**case.input, "user_message": message, "conversation": talk.conversation()}
        extra = {**case.extra, GOING_ON: list(talk.messages), SESSION_ID: talk.session_id}
        try:
            answer = await self._inner.run(msgspec.structs.replace(case, input=inputs, extra=extra), trial)
        except TargetError as error:
            raise _broken_conversation(target_failure(error), talk.turns + 1) from error
        except Exception as error:
            why, stack = f"turn {talk.turns + 1}: {type(error).__name__}: {error}", "".join(format_exception(error))
            raise _BrokenConversation("agent", "adapter_error", why, stack[-_LONGEST_STACK:]) from error
        number = talk.turns + 1
        talk.add_agent(answer)
        if answer.error is not None:
            raise _broken_conversation(answer.error, number)

    async def _ask_user(self, talk: _Talk, trial: int) -> str:
        request = ChatRequest(
            self._settings.user_model,
            talk.from_the_other_side(),
            f"{_ROLE}\n\n{self._settings.user_persona_prompt}",
            max_tokens=self._settings.user_max_tokens,
            repeat=trial,
        )
        try:
            reply = await session().models.chat(request, "user")
        except TargetError as error:
            by: Party = "user" if error.type in ("refused", "bad_reply") else "environment"
            raise _BrokenConversation(
                by, error.type, f"simulated user: {error}", attempts=error.attempts or 1
            ) from error
        talk.count_user(reply.usage, reply.cost_usd)
        message = clean_text(reply.text.strip(), "text", [])
        if reply.refusal or not message:
            why = "refused" if reply.refusal else "gave no answer"
            raise _BrokenConversation("user", "adapter_error", f"the simulated user {why} after turn {talk.turns}")
        return message


def _broken_conversation(failure: TraceError, turn: int) -> _BrokenConversation:
    """The end of a conversation in which the system failed, with the error that its target reports."""
    return _BrokenConversation(
        _party_of(failure.type),
        failure.type,
        f"turn {turn}: {failure.message}",
        failure.stack,
        status=failure.status,
        attempts=failure.attempts,
    )


def _party_of(error_type: str) -> Party:
    return "environment" if error_type in _ENVIRONMENT else "agent"


def _inner_target(variant: Variant, system: Mapping[str, Any]) -> Target:
    adapter = system.get("adapter")
    if not isinstance(adapter, str) or not adapter:
        raise InputError(Problem("", "'adapter' is missing: the target that calls the inner system", key="adapter"))
    metadata = system.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise InputError(Problem("", "'metadata' must be a mapping", key="metadata"))
    config = {key: value for key, value in system.items() if key not in _OF_INNER}
    metadata = {**variant.metadata, **metadata}
    inner = msgspec.structs.replace(variant, adapter=adapter, config=config, metadata=metadata)
    return build_inner_target(inner, "adapter", "")


class _Talk:
    """The conversation so far."""

    def __init__(self) -> None:
        self.session_id = uuid4().hex
        self.turns = 0
        self.messages: list[TraceMessage] = []
        self.last_answer: str | None = None
        self.acted = False
        """Whether the system called a tool in the last turn."""
        self._spoken: list[TraceMessage] = []
        self._thinking: list[str | None] = []
        self._calls: list[ToolCall] = []
        self._results: list[ToolResult] = []
        self._metrics = Metrics()
        self._costs: list[float | None] = []
        self._structured: dict[str, Any] | None = None
        self._doubts: list[Sequence[Doubt]] = []

    def add_user(self, message: str) -> None:
        self._speak(TraceMessage("user", message))

    def add_agent(self, answer: Answer) -> None:
        output = answer.output
        # A call that failed and left nothing is not a turn: it is as if the system had never answered.
        if answer.error is None or output.final_answer or answer.messages or answer.tool_calls or answer.spans:
            self.turns += 1
        steps = _messages_of_this_turn(answer.messages)
        if steps and steps[-1].role == "assistant" and steps[-1].tool_call is None:
            steps.pop()  # remove the answer itself
        self.messages += steps
        if answer.error is None or output.final_answer:
            self._speak(TraceMessage("assistant", output.final_answer, output.thinking))
        self.last_answer, self.acted, self._structured = (
            output.final_answer,
            bool(steps or answer.tool_calls),
            output.structured,
        )
        self._thinking.append(output.thinking)
        self._calls += answer.tool_calls
        self._results += answer.tool_results
        self._doubts.append(answer.doubts)
        add_metrics(self._metrics, answer.metrics)
        if answer.error is None or answer.metrics.cost_usd is not None:
            self._costs.append(answer.metrics.cost_usd)
        self._metrics.cost_usd = sum_of_all(self._costs)

    def _speak(self, message: TraceMessage) -> None:
        self.messages.append(message)
        self._spoken.append(message)

    def count_user(self, usage: Usage, cost_usd: float | None) -> None:
        """Add the tokens of the user's model. Its cost is kept separate: it is not the system's."""
        add_usage(self._metrics, usage)
        if cost_usd is not None:
            spent = self._metrics.custom.get("user_cost_usd", 0.0) + cost_usd
            self._metrics.custom = {**self._metrics.custom, "user_cost_usd": spent}

    def conversation(self) -> list[dict[str, Any]]:
        """The messages so far, in the form that systems get."""
        return [{"role": message.role, "content": message.content} for message in self._spoken]

    def from_the_other_side(self) -> list[ChatMessage]:
        """The messages as the user's model sees them: there it is the assistant, and the system is its user."""
        roles = {"user": "assistant", "assistant": "user"}
        turns = [ChatMessage(roles[m.role], str(m.content or _SAID_NOTHING)) for m in self._spoken]
        return [ChatMessage("user", _BEGIN), *turns]  # APIs require the first message to be the user's

    def answer(self, error: TraceError | None, extra: dict[str, Any]) -> Answer:
        output = Output(self.last_answer, joined(self._thinking), self._structured)
        answer = Answer(output, self.messages, self._calls, self._results, self._metrics, error, extra)
        answer.doubts = doubts_of_all(self._doubts)
        return answer


def _messages_of_this_turn(messages: list[TraceMessage]) -> list[TraceMessage]:
    """The messages after the user's last one: a system may return the whole conversation."""
    start = max((n for n, message in enumerate(messages, 1) if message.role in ("user", "system")), default=0)
    return messages[start:]
