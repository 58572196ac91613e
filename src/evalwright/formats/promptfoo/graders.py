"""What judges: the provider of an assertion, the one in its test's options, or the one that the available keys
suggest."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from evalwright.errors import EvaluatorError, TargetError
from evalwright.evaluators.judges.calls import unheard
from evalwright.formats.promptfoo.calls import ProviderCall, caller_of
from evalwright.formats.promptfoo.default_graders import DEFAULT_EMBEDDER, DEFAULT_MODERATOR, default_model
from evalwright.formats.promptfoo.models import request_of, textless_request
from evalwright.formats.promptfoo.providers import REPLY_RETRIES, Provider, called_of, provider_kind, unfit_grader
from evalwright.formats.promptfoo.values import compact_json, shown_text
from evalwright.llm.kept_calls import kept_call
from evalwright.model.chat import ChatRequest, Embedding, EmbeddingRequest, Moderation
from evalwright.session import environment, session

__all__ = ["Grader", "grader_of", "grader_requests"]


_DEFAULTS = {"embedding": DEFAULT_EMBEDDER, "moderation": DEFAULT_MODERATOR}
"""The judges that write no text, where a configuration names none."""


class Grader:
    """One provider as a judge; `cost_usd` is the sum of its calls' costs.

    A provider that is a program, or a service over HTTP, gets the `variables` of the test and of the question.
    """

    def __init__(self, provider: Provider, folder: str, variables: Mapping[str, Any]) -> None:
        self._folder, self._variables = folder, variables
        self.provider: Provider = provider
        self.name: str = provider["label"]
        self.cost_usd: float | None = None
        self.reply_retries: int = provider.get("config", {}).get(REPLY_RETRIES, 1)
        """How often it is called again if its reply is unreadable."""
        self.complaints: list[str] = []
        """Why it was called again."""

    @property
    def detail(self) -> dict[str, Any]:
        return {"judge": self.name, **({"asked_again": self.complaints} if self.complaints else {})}

    @property
    def model(self) -> ChatRequest:
        """The request of a provider that embeds or moderates, without texts."""
        return textless_request(self.provider)

    async def embed(self, texts: Sequence[str]) -> Embedding:
        """A vector for each text. Raises EvaluatorError."""
        model = self.model
        request = EmbeddingRequest(model.model, texts, model.base_url, model.api_key_env)
        return await session().models.embed(request)

    async def moderate(self, text: str) -> Moderation:
        """What is objectionable in a text. Raises EvaluatorError."""
        model = self.model
        return await session().models.moderate(model.model, text, model.base_url, model.api_key_env)

    async def ask(self, messages: list[dict[str, Any]]) -> str:
        """The reply. Raises EvaluatorError."""
        if not self.is_model:
            return await self._program_reply(
                compact_json(messages) if len(messages) > 1 else str(messages[0]["content"])
            )
        request = self._request(messages)
        try:
            reply = await session().models.chat(request, "judge")
        except EvaluatorError as error:
            raise EvaluatorError(unheard(self.name, error), error.type) from error
        if reply.cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + reply.cost_usd
        if reply.refusal is not None:
            raise EvaluatorError(f"the judge {self.name} refused: {reply.refusal}", "refused")
        return reply.text

    def forget(self, messages: list[dict[str, Any]]) -> None:
        """Do not cache the reply to these messages: it cannot be used."""
        if self.is_model:
            session().models.forget(self._request(messages))

    @property
    def is_model(self) -> bool:
        """Whether it gets messages; a program gets the prompt as it is."""
        return provider_kind(called_of(self.provider)) == "chat"

    def _request(self, messages: list[dict[str, Any]]) -> ChatRequest:
        return request_of(self.provider, compact_json(messages), {}, self._folder, variables=self._variables)

    async def _program_reply(self, prompt: str) -> str:
        """The reply of a provider that is the user's program."""
        context = {"vars": dict(self._variables), "prompt": {"raw": prompt, "label": "judge", "config": {}}}
        call = ProviderCall(prompt, context, 0, environment())
        try:
            with kept_call(self.name, [{"role": "user", "content": prompt}]) as recording:
                reply = await _caller(json.dumps(self.provider, sort_keys=True), self._folder)(call)
                text = recording.note_output(shown_text(reply.output), reply.cost)
        except TargetError as error:
            raise EvaluatorError(f"the judge {self.name} could not be called: {error}", error.type) from error
        if reply.cost is not None:
            self.cost_usd = (self.cost_usd or 0.0) + reply.cost
        return text


@functools.lru_cache(16)
def _caller(provider: str, folder: str) -> Any:
    return caller_of(json.loads(provider), folder)


def grader_of(
    assertion: Mapping[str, Any],
    options: Mapping[str, Any],
    folder: str,
    kind: str,
    variables: Mapping[str, Any] = MappingProxyType({}),
) -> Grader:
    """The judge of an assertion; `kind` is what it has to produce: `text`, `embedding` or `moderation`.

    Raises EvaluatorError if it is named and cannot do that: another model's verdict would not be what the suite asks
    for.
    """
    for provider in (assertion.get("provider"), options.get("provider")):
        if isinstance(provider, dict) and provider:
            return Grader(_fitting(provider, kind), folder, variables)
    named = _DEFAULTS.get(kind) or default_model(environment())
    return Grader({"id": named, "label": named}, folder, variables)


def _fitting(provider: Mapping[str, Any], kind: str) -> Provider:
    if reason := unfit_grader(provider, kind):
        raise EvaluatorError(reason, "bad_value")
    return dict(provider if "id" in provider else provider[kind])


def grader_requests(
    assertion: Mapping[str, Any], options: Mapping[str, Any], folder: str, kind: str
) -> list[ChatRequest]:
    """The calls that judging will need, without their text."""
    try:
        grader = grader_of(assertion, options, folder, kind)
    except EvaluatorError:  # none: it will be an error
        return []
    if kind in _DEFAULTS:
        return [grader.model]
    if not grader.is_model:
        return []
    return [msgspec.structs.replace(request_of(grader.provider, "", {}, folder), messages=[])]
