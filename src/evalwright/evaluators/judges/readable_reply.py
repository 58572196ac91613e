"""Calling a judge until its reply is readable: with the problem, as often as its configuration allows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

import msgspec

from evalwright.errors import EvaluatorError, shorten
from evalwright.model.chat import ChatMessage, ChatReply, ChatRequest
from evalwright.session import session

__all__ = ["JudgeReply", "ReplyRetries", "readable_reply", "what_was_sent"]

T = TypeVar("T")

ReplyRetries = Annotated[int, msgspec.Meta(ge=0, le=3)]
"""How often a judge is called again if its reply cannot be read."""
_SHOWN = 8000
"""Characters of its unreadable reply that a judge sees again."""


class JudgeReply(NamedTuple, Generic[T]):
    """A judge's `value`, or why its last reply is unreadable; `problems` are what led to its further replies."""

    value: T | None
    replies: Sequence[ChatReply]
    problems: Sequence[str]
    problem: str = ""

    @property
    def detail(self) -> dict[str, Any]:
        return {"asked_again": list(self.problems)} if self.problems else {}

    @property
    def cost_usd(self) -> float | None:
        """The cost of all replies, in US dollars; None if that of any is unknown."""
        costs = [reply.cost_usd for reply in self.replies]
        return None if None in costs else sum(cost or 0.0 for cost in costs)


async def readable_reply(
    request: ChatRequest,
    read: Callable[[ChatReply], T],
    retries: int,
    may_go_on: Callable[[Sequence[ChatReply]], bool] = lambda _: True,
) -> JudgeReply[T]:
    """The reply as parsed by `read`, which raises ValueError for an unreadable one, and is not called for a refusal.

    After a refusal the judge is not called again. `may_go_on` decides from the replies so far whether another one can
    be paid for. Raises EvaluatorError if there is no reply, with the cost of the replies before it.
    """
    replies: list[ChatReply] = []
    problems: list[str] = []
    requests: list[ChatRequest] = []
    while True:
        requests.append(request)
        try:
            reply = await session().models.chat(request, "judge")
        except EvaluatorError as error:
            raise _after(replies, problems, error) from error
        replies.append(reply)
        try:
            if reply.refusal is None:
                return JudgeReply(read(reply), replies, problems)
            problem = f"it refused: {shorten(reply.refusal)}"
        except ValueError as error:
            problem = str(error)
        if reply.refusal is not None or len(problems) == retries or not may_go_on(replies):
            for failed_request in requests:  # or the same unreadable replies would come from the cache for ever
                session().models.forget(failed_request)
            return JudgeReply(None, replies, problems, problem)
        problems.append(problem)
        request = _with_problem(request, reply, problem)


def what_was_sent(replies: Sequence[ChatReply]) -> dict[str, Any]:
    """How the form of the replies was requested, and which parameters the model rejected, for a result's detail."""
    formats = list(dict.fromkeys(reply.reply_format for reply in replies if reply.reply_format))
    left_out = list(dict.fromkeys(name for reply in replies for name in reply.left_out))
    return {
        **({"reply_format": formats if len(formats) > 1 else formats[0]} if formats else {}),
        **({"left_out": left_out} if left_out else {}),
    }


def _with_problem(request: ChatRequest, reply: ChatReply, problem: str) -> ChatRequest:
    # some servers reject an empty message of the assistant
    earlier = [ChatMessage("assistant", reply.text[:_SHOWN])] if reply.text.strip() else []
    message = f"This reply cannot be used: {problem}. Reply once more, only with the JSON object that was asked for."
    return msgspec.structs.replace(request, messages=[*request.messages, *earlier, ChatMessage("user", message)])


def _after(replies: Sequence[ChatReply], problems: Sequence[str], error: EvaluatorError) -> EvaluatorError:
    if not replies:
        return error
    costs = [cost for cost in (*(reply.cost_usd for reply in replies), error.cost_usd) if cost is not None]
    message = f"{error} (asked again: {problems[-1]})"
    return EvaluatorError(message, error.type, {**error.detail, "asked_again": list(problems)}, sum(costs) or None)
