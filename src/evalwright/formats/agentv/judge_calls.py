"""Calls of judges: a judge is a target like any other, the evaluator's own, the suite's `judge_target`, or the target
that answered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Annotated, Any, TypeVar
from weakref import WeakKeyDictionary

import msgspec

from evalwright.errors import EvaluatorError, TargetError, counted
from evalwright.evaluators.judges.replies import BadReply, keys_once
from evalwright.files.temporary import temporary_folder
from evalwright.formats.agentv.exchange import PromptRequest
from evalwright.formats.agentv.providers import MODELS, Model, Provider, model_of, provider_of
from evalwright.llm.kept_calls import kept_call
from evalwright.model.chat import ChatRequest
from evalwright.model.snapshot import Case

__all__ = ["NoReply", "TargetJudge", "UnreadableReply", "reply_object"]

T = TypeVar("T")

_MANY = 50
_TURNS: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, str], asyncio.Semaphore]] = WeakKeyDictionary()
"""By event loop, then by folder and target: runs in one loop take turns, because they share the program's files."""


class TargetJudge(msgspec.Struct, frozen=True, kw_only=True):
    """Which target judges, and how often it may be called for a readable reply."""

    judges: dict[str, Any] = {}
    """`targets` by name, the `default` one, `folder`, and `in_workspace` if the file asks for a workspace."""
    target: str | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0)] | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    max_calls: Annotated[int, msgspec.Meta(ge=1)] = 3

    calls_models = True

    def asks(self, case: Case) -> Iterator[ChatRequest]:
        target = (self.judges.get("targets") or {}).get(self._judge_name(case) or self.judges.get("default"), {})
        if target.get("provider") in MODELS:
            yield model_of(target).question

    def _judge_name(self, case: Case) -> str | None:
        return case.extra.get("judge") if self.target is None else self.target

    async def reply(self, case: Case, prompt: str, system: str, read: Callable[[str], T]) -> T:
        """The first readable reply; a failed call counts as an unreadable one.

        Raises NoReply if no reply is readable, EvaluatorError if no call was answered.
        """
        provider = _provider(self.judges, self._judge_name(case))
        settings = {"temperature": self.temperature, "max_tokens": self.max_tokens}
        options = {key: value for key, value in settings.items() if value is not None}
        apart = bool(self.judges.get("in_workspace") or case.extra.get("workspace"))
        why, failed, unread = "", None, []
        for attempt in range(self.max_calls):
            request = PromptRequest(
                prompt if provider.chats else f"{system}\n\n{prompt}",
                chat=(),
                system=system if provider.chats else None,
                case_id=case.id,
                attempt=attempt,
                settings=options,
            )
            try:
                async with provider.turn:
                    reply = await provider.reply_text(request, apart=apart)
                return read(reply)
            except UnreadableReply as error:
                why = str(error)
                unread.append(request)
            except TargetError as error:
                failed = error
        if not why and failed is not None:
            raise EvaluatorError(f"the judge did not answer: {failed}", failed.type) from failed
        for request in unread:  # or the same unreadable replies would come from the cache for ever
            await provider.forget(request)
        raise NoReply(f"the judge's reply could not be read, asked {counted(self.max_calls, 'time')}: {why}")


class UnreadableReply(Exception):
    """A reply in another form than requested."""


class NoReply(Exception):
    """Every reply of the judge was unreadable: the score is 0, and the result says why."""

    @property
    def detail(self) -> dict[str, Any]:
        return {"judge_error": str(self)}


class _JudgeProvider:
    """A provider, whether it takes a system message separately from the prompt, and the semaphore that limits its
    questions.

    As many questions are sent at once as the target has `workers`; for a command without `workers` only one, because
    programs may keep files of their own that concurrent ones would spoil.
    """

    def __init__(self, provider: Provider, target: dict[str, Any], folder: str) -> None:
        kind = target["provider"]
        self._ask, self.chats = provider.ask, kind not in ("cli", "mock")
        self._model = provider if isinstance(provider, Model) else None
        self._program = None if kind in MODELS else target["name"]
        self._has_template = target.get("workspace_template") is not None
        turns = _TURNS.setdefault(asyncio.get_running_loop(), {})
        workers = target.get("workers") or (1 if kind == "cli" else _MANY)
        self.turn = turns.setdefault((folder, target["name"]), asyncio.Semaphore(workers))

    async def reply_text(self, question: PromptRequest, *, apart: bool) -> str:
        """The reply. A program that works `apart` gets an empty folder, or a copy of its own template.

        Calls of programs are recorded here; calls of models record themselves.
        """
        if self._program is None:
            return (await self._ask(question, "judge")).text
        if apart and not self._has_template:
            with temporary_folder() as folder:
                return await self._reply_with_record(question._replace(workspace=folder))
        return await self._reply_with_record(question)

    async def forget(self, question: PromptRequest) -> None:
        """Do not cache the reply to this. Only models' replies are cached."""
        if self._model is not None:
            await self._model.forget(question)

    async def _reply_with_record(self, request: PromptRequest) -> str:
        texts = {"system": request.system, "user": request.prompt}
        messages = [{"role": role, "content": text} for role, text in texts.items() if text]
        with kept_call(self._program or "", messages) as call:
            reply = await self._ask(request, "judge")
            return call.note_output(reply.text, reply.cost_usd)


def _provider(judges: dict[str, Any], name: str | None) -> _JudgeProvider:
    targets = judges.get("targets") or {}
    chosen = name or judges.get("default") or ""
    if chosen not in targets:
        raise EvaluatorError(f"there is no target {chosen!r} to judge (there are: {', '.join(targets)})", "no_judge")
    target, folder = targets[chosen], judges.get("folder", ".")
    return _JudgeProvider(provider_of(target, folder), target, folder)


def reply_object(text: str) -> dict[str, Any]:
    """The object from the first `{` to the last `}`; two objects count as none."""
    try:
        reply = json.loads(text[text.find("{") : text.rfind("}") + 1], object_pairs_hook=keys_once)
    except BadReply as error:
        raise UnreadableReply(str(error)) from None
    except (ValueError, RecursionError):
        raise UnreadableReply(f"no JSON object in {text[:120]!r}") from None
    assert isinstance(reply, dict)
    return reply
