"""Assertions that services judge: a moderation model, and a webhook of the user's own."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

import httpx

from evalwright.errors import EvaluatorError, TargetError
from evalwright.files.key_paths import as_written
from evalwright.formats.promptfoo.checks.code import finite
from evalwright.formats.promptfoo.evaluator import AssertionInput
from evalwright.formats.promptfoo.graders import grader_of
from evalwright.formats.promptfoo.values import compact_json
from evalwright.model.result import Evaluation
from evalwright.session import environment
from evalwright.targets.http.body import json_of, pieces
from evalwright.targets.http.client import new_client
from evalwright.targets.http.config import place_of

__all__ = ["moderation", "webhook"]

_CAP = 2**20
"""Bytes of a webhook's reply."""
_HIGHEST_PORT = 65535
_SECONDS = 5.0
"""The time for a webhook's reply, unless WEBHOOK_TIMEOUT names other milliseconds."""


async def moderation(question: AssertionInput) -> Evaluation:
    """A moderation model flags no category of the output, or none of those in the value. An empty output passes."""
    wanted = _categories(question.value)
    if not question.text:
        return question.of(True, "there is no output to moderate")
    grader = grader_of(question.assertion, question.options, question.folder, "moderation")
    reply = await grader.moderate(question.text)
    if reply.flagged and not reply.categories:
        message = f"{grader.name} flags the output but names no category for that"
        raise EvaluatorError(message, "unreadable_reply", grader.detail)
    flags = [name for name in reply.categories if not wanted or name in wanted] if reply.flagged else []
    evaluation = question.of(not flags, f"flagged: {', '.join(flags)}", "nothing was flagged")
    evaluation.detail = {**grader.detail, "flagged": reply.categories, "scores": reply.scores}
    return evaluation


def _categories(value: Any) -> list[str]:
    if not value:
        return []
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        message = f"moderation: expected a list of categories as the value, found {as_written(value)}"
        raise EvaluatorError(message, "bad_value")
    return value


async def webhook(question: AssertionInput) -> Evaluation:
    """The service at the address in the value gets the output and replies whether it passes."""
    verdict = await _posted(question)
    passed = verdict["pass"] != question.negated
    score = finite(verdict.get("score", float(verdict["pass"])))
    if score is None:
        raise EvaluatorError(f"webhook: expected a number as score, found {as_written(verdict['score'])}", "bad_reply")
    reason = verdict.get("reason")
    default = "" if passed else f"the webhook replied that the output {'passes' if verdict['pass'] else 'fails'}"
    return Evaluation(passed, 1 - score if question.negated else score, reason if isinstance(reason, str) else default)


async def _posted(question: AssertionInput) -> Mapping[str, Any]:
    """The verdict in the reply. Raises EvaluatorError; its message has no more of the address than the place."""
    if not isinstance(question.value, str) or not question.value.startswith(("https://", "http://")):
        raise EvaluatorError("webhook needs a value: expected an address, https://...", "bad_value")
    seen = question.trace.extra.get("promptfoo", {})
    context = {"prompt": seen.get("prompt"), "vars": dict(question.names)}
    body = compact_json({"output": question.output, "context": context}).encode()
    name = f"the webhook {place_of(question.value)}"
    try:
        async with asyncio.timeout(_limit()), new_client() as client:
            headers = {"Content-Type": "application/json"}
            request = client.build_request("POST", question.value, content=body, headers=headers)
            if not request.url.host or (request.url.port or 0) > _HIGHEST_PORT:
                raise ValueError("expected a host, and a port up to 65535 if any")
            verdict = await _reply(client, request)
    except (httpx.InvalidURL, ValueError) as error:
        raise EvaluatorError(f"{name} is no address: {str(error).partition(':')[0]}", "bad_value") from None
    except (TimeoutError, httpx.TimeoutException):
        raise EvaluatorError(f"{name} did not reply within {_limit():g} s", "timeout") from None
    except httpx.HTTPError as error:
        raise EvaluatorError(f"{name} did not reply: {type(error).__name__}", "connection") from None
    except TargetError as error:
        raise EvaluatorError(f"{name}: {error}", "bad_reply") from None
    if not isinstance(verdict, Mapping) or not isinstance(verdict.get("pass"), bool):
        expected = "expected an object with pass, which is true or false"
        raise EvaluatorError(f"{name}: {expected}, found {as_written(verdict)}", "bad_reply")
    return verdict


async def _reply(client: httpx.AsyncClient, request: httpx.Request) -> Any:
    response = await client.send(request, stream=True)
    try:
        async with aclosing(pieces(response, _CAP)) as body:
            received = b"".join([piece async for piece in body])
    finally:
        await response.aclose()
    if not response.is_success:
        raise TargetError(f"HTTP {response.status_code}")
    return json_of(received, response, str)


def _limit() -> float:
    """Seconds."""
    try:
        milliseconds = int(environment().get("WEBHOOK_TIMEOUT", ""))
    except ValueError:
        return _SECONDS
    return milliseconds / 1000 if milliseconds > 0 else _SECONDS
