"""Calling models for an evaluator: through the models of the run, or with a client passed by the user."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from evalwright.errors import EvaluatorError
from evalwright.evaluators.judges.replies import BadReply, only_object
from evalwright.formats.pixie.surface.rates import paced
from evalwright.llm.kept_calls import kept_call
from evalwright.llm.replies import is_unfinished
from evalwright.model.chat import ChatMessage, ChatRequest, Embedding, EmbeddingRequest, Models
from evalwright.session import environment, session

__all__ = ["EMBEDDER", "JUDGE", "MODERATION", "chat", "embed", "moderate", "prompt_text", "structured"]

T = TypeVar("T")

JUDGE = "gpt-4o-mini"
"""The judge if an evaluator names none."""
EMBEDDER = "text-embedding-ada-002"
"""The embedding model if an evaluator names none."""
MODERATION = "omni-moderation-latest"
_vectors: WeakKeyDictionary[Models, dict[tuple[str, str], asyncio.Future[Embedding]]] = WeakKeyDictionary()
"""By run, the texts asked about last: expectations repeat, and concurrent evaluators ask about one answer."""
_MOST_VECTORS = 1000
"""About 50 KB each."""


def prompt_text(value: Any) -> str:
    """A value as a prompt shows it."""
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else str(value)


@asynccontextmanager
async def _models() -> AsyncIterator[Models]:
    """The models of the run; outside a run, models that live for this one question."""
    try:
        running: Models | None = session().models
    except RuntimeError:
        running = None
    if running is not None:
        yield running
        return
    from evalwright.llm.models import LiveModels

    own = LiveModels(environment=environment())
    try:
        yield own
    finally:
        await own.close()


async def chat(
    text: str,
    read: Callable[[str], T],
    *,
    system: str | None = None,
    model: str | None = None,
    client: Any = None,
    temperature: float = 0.0,
    schema: dict[str, Any] | None = None,
    repeat: int = 0,
) -> T:
    """What `read` makes of the model's reply; a reply for which it raises BadReply or EvaluatorError is not cached.

    Raises EvaluatorError, BadReply, or whatever the user's client raises.
    """
    await paced(f"{system or ''}{text}")
    if client is not None:
        first = [{"role": "system", "content": system}] if system else []
        messages = [*first, {"role": "user", "content": text}]
        form = {"response_format": {"type": "json_object"}} if schema is not None else {}
        with kept_call(model or JUDGE, messages) as call:
            reply = await _call(
                client.chat.completions.create,
                model=model or JUDGE, messages=messages, temperature=temperature, **form,
            )  # fmt: skip
            choice = reply.choices[0]
            recorded = call.note_output(choice.message.content or "")
        ended = getattr(choice, "finish_reason", None)
        if isinstance(ended, str) and is_unfinished(ended):
            raise BadReply(f"the judge's reply is incomplete: it ended with {ended}")
        return read(recorded)
    request = ChatRequest(
        model or JUDGE,
        [ChatMessage("user", text)],
        system=system,
        temperature=temperature,
        schema=schema,
        repeat=repeat,
    )
    async with _models() as models:
        answer = await models.chat(request, "judge")
        if answer.refusal is not None:
            raise BadReply(f"the judge refused: {answer.refusal}")
        try:
            return read(answer.text)
        except (BadReply, EvaluatorError):
            models.forget(request)  # or the same unreadable reply would come from the cache for ever
            raise


async def structured(text: str, schema: dict[str, Any], read: Callable[[dict[str, Any]], T], **options: Any) -> T:
    """What `read` makes of the JSON object in the model's reply. Raises BadReply, also if there is none."""
    keys = list(schema["properties"])
    required = schema.get("required", keys)
    prompt = f"{text}\n\nAnswer with one JSON object with the keys {', '.join(keys)}."

    def object_in(reply: str) -> T:
        verdict = only_object(reply, required)
        if missing := [key for key in required if key not in verdict]:
            raise BadReply(f"the judge's reply lacks {', '.join(map(repr, missing))}")
        return read(verdict)

    return await chat(prompt, object_in, schema={"type": "object", **schema, "required": keys}, **options)


async def embed(texts: list[str], model: str | None, client: Any) -> list[list[float]]:
    """A vector for each text."""
    if client is not None:
        await paced("".join(texts))
        reply = await _call(client.embeddings.create, model=model or EMBEDDER, input=texts)
        return [list(item.embedding) for item in reply.data]
    async with _models() as models:
        return list(await asyncio.gather(*(_vector(models, model or EMBEDDER, text) for text in texts)))


async def _vector(models: Models, model: str, text: str) -> list[float]:
    known = _vectors.setdefault(models, {})
    pending = known.pop((model, text), None)
    if pending is None:
        pending = asyncio.ensure_future(_embedding_of(models, model, text))
    known[model, text] = pending  # last, so that the first one is the one that was asked for the longest time ago
    if len(known) > _MOST_VECTORS:
        del known[next(iter(known))]
    try:
        return (await asyncio.shield(pending)).vectors[0]
    except EvaluatorError:
        known.pop((model, text), None)
        raise


async def _embedding_of(models: Models, model: str, text: str) -> Embedding:
    await paced(text)
    return await models.embed(EmbeddingRequest(model, [text]))


async def moderate(text: str, client: Any) -> tuple[bool, dict[str, float]]:
    """Whether a text is flagged, and its scores by category."""
    await paced(text)
    if client is not None:
        reply = (await _call(client.moderations.create, input=text)).results[0]
        scores = reply.category_scores
        return bool(reply.flagged), dict(scores if isinstance(scores, dict) else scores.model_dump())
    async with _models() as models:
        answer = await models.moderate(MODERATION, text)
    return answer.flagged, answer.scores


async def _call(function: Callable[..., Any], **arguments: Any) -> Any:
    returned = await asyncio.to_thread(function, **arguments)
    return await returned if inspect.isawaitable(returned) else returned
