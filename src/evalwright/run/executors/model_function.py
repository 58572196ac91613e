"""A Python function as a judge's model, called by a worker.

For the worker it is a system like any other: the request is the input of a case, and the reply is a part of the answer.
What is done about a failure is decided by the run, which retries, counts money and knows the limits.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from evalwright.errors import InputError
from evalwright.llm.callable_client import CallableClient
from evalwright.llm.failures import CallFailed
from evalwright.llm.fitting import Fit
from evalwright.llm.routes import Route
from evalwright.model.chat import ChatReply, ChatRequest
from evalwright.model.snapshot import Case
from evalwright.model.trace import Answer
from evalwright.session import import_from

__all__ = ["ModelFunction", "call_of", "reply_from"]


class _Failure(msgspec.Struct):
    """A `CallFailed`."""

    kind: str
    message: str
    retryable: bool
    retry_after: float | None


class _Outcome(msgspec.Struct):
    """A call's reply, or why there is none."""

    reply: ChatReply | None = None
    failure: _Failure | None = None


class ModelFunction:
    """The function at `place` (`module:attribute`) as a target, whose answers contain the outcomes of its calls."""

    def __init__(self, place: str, import_paths: Sequence[str]) -> None:
        """Raises InputError if the function cannot be imported."""
        import_from(import_paths)
        try:
            self._client = CallableClient(Route("callable", place, place, "", ""))
        except CallFailed as failure:
            raise InputError(str(failure)) from failure

    async def run(self, case: Case, trial: int) -> Answer:
        request = msgspec.convert(case.input, ChatRequest)
        try:
            outcome = _Outcome(await self._client.chat(request.model, request, Fit()))
        except CallFailed as failure:
            outcome = _Outcome(
                failure=_Failure(failure.kind, str(failure), failure.retryable, failure.retry_after),
            )
        return Answer.of(structured=msgspec.to_builtins(outcome))


def call_of(request: ChatRequest) -> Case:
    """A request as such a system gets it."""
    return Case(request.model, msgspec.to_builtins(request))


def reply_from(answer: Answer) -> ChatReply:
    """The reply in such a system's answer. Raises CallFailed."""
    outcome = msgspec.convert(answer.output.structured, _Outcome)
    if outcome.reply is None:
        failed = outcome.failure or _Failure("bad_reply", "the worker returned no reply", True, None)
        raise CallFailed(failed.kind, failed.message, retryable=failed.retryable, retry_after=failed.retry_after)
    return outcome.reply
