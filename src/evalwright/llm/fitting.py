"""A request in the form that its model accepts, by its family and by what its server has rejected before.

A part that is rejected by name (HTTP 400) is sent in another way or left out, and the call is repeated; later calls
start from there. So even a model that is in no table is called as it requires.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec

from evalwright.llm.failures import CallFailed
from evalwright.llm.families import Family, family_of
from evalwright.llm.routes import Route
from evalwright.model.chat import ChatReply, ChatRequest

__all__ = ["ANTHROPIC_TOKENS", "Fit", "Fits", "fit_of", "refused_parts", "thinking_budget"]

ANTHROPIC_TOKENS = 4096
"""Sent to Anthropic's API if a request has no limit, as the API requires one."""
_OTHER_LIMIT = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_UNKNOWN = re.compile(r"support|unrecogni[sz]ed|unknown|unexpected|permitted|extra inputs|instead")
_TOO_MANY = re.compile(r"too large|at most|exceed|context length|context window|maximum|greater than")
_FORMAT = re.compile(
    r"response_format|json_schema|json_object|schema|structured|grammar|guided|output_config|output_format"
)
_TOOL = re.compile(r"tool")


class Fit(NamedTuple):
    """How a request is sent to one model."""

    limit: str = "max_tokens"
    max_tokens: int | None = None
    temperature: float | None = None
    reply_format: str | None = None
    """`strict` (a JSON Schema that the provider guarantees), `json_schema`, `tool`, `json_object`, `prompt` (words
    alone); None if the request has no schema."""
    left_out: tuple[str, ...] = ()
    """Parameters that were asked for but not sent."""
    raised: bool = False
    """Whether the limit comes from the family or the budget and is above the request's."""


def fit_of(
    interface: str,
    request: ChatRequest,
    refused: Collection[str] = (),
    *,
    adapts: bool = True,
    affordable: int | None = None,
) -> Fit:
    """The form of a request for a client (`interface`) whose server has `refused` some parts.

    Without `adapts` the parameters are the request's own, whatever the model accepts: nothing is left out. The reply
    has at most `affordable` tokens, even if the request has no limit.
    """
    family = family_of(request.model)
    thinks = _thinks(request)
    limit = _OTHER_LIMIT[family.limit] if "limit" in refused else family.limit
    most, raised = _most_tokens(interface, request, family, adapts=adapts and "tokens" not in refused)
    if affordable is not None and (most is None or most > affordable):
        most, raised = affordable, raised or most is None
        if raised and "tokens" in refused:
            most, raised = min(affordable, ANTHROPIC_TOKENS), False
    temperature = request.temperature
    sent = not adapts or (family.temperature and not thinks and "temperature" not in refused)
    left_out = () if temperature is None or sent else (f"temperature {temperature:g}",)
    formats = _formats(interface, request, family, forces_tools=not thinks)
    reply_format = next((suite_format for suite_format in formats if suite_format not in refused), None)
    return Fit(limit, most, temperature if sent else None, reply_format, left_out, raised)


def refused_parts(failure: CallFailed, fit: Fit) -> Iterator[str]:
    """The part of a request that its server names as the reason for rejecting it; empty if it names none."""
    if failure.kind != "bad_request":
        return
    text = str(failure).lower()
    if fit.raised and ("tokens" in text or "context" in text) and _TOO_MANY.search(text):
        yield "tokens"
    if fit.max_tokens is not None and fit.limit in text and _UNKNOWN.search(text):
        yield "limit"
    if fit.temperature is not None and "temperature" in text:
        yield "temperature"
    signs = _TOOL if fit.reply_format == "tool" else _FORMAT
    if fit.reply_format not in (None, "prompt") and signs.search(text):
        yield fit.reply_format


def _most_tokens(interface: str, request: ChatRequest, family: Family, *, adapts: bool) -> tuple[int | None, bool]:
    """The limit on the reply, and whether it was raised: a default is raised by the family, and for the thinking."""
    needed = request.max_tokens is None and interface == "anthropic"  # whose API requires one
    if not adapts or not (needed or request.default_limit is True):
        return request.max_tokens, False
    most = max(request.max_tokens or ANTHROPIC_TOKENS, family.tokens) + thinking_budget(request)
    return most, most > (request.max_tokens or ANTHROPIC_TOKENS)


def thinking_budget(request: ChatRequest) -> int:
    """The tokens of a reply that Anthropic's models may spend on thinking; the reply itself comes on top of them."""
    thinking = request.extra.get("thinking")
    budget = thinking.get("budget_tokens") if isinstance(thinking, dict) else None
    return budget if isinstance(budget, int) else 0


def _thinks(request: ChatRequest) -> bool:
    """Whether Anthropic's thinking is on, with which neither a temperature nor a forced tool is accepted."""
    thinking = request.extra.get("thinking")
    return isinstance(thinking, dict) and thinking.get("type") in ("enabled", "adaptive")


def _formats(interface: str, request: ChatRequest, family: Family, *, forces_tools: bool) -> Sequence[str]:
    """The ways to ask for a reply in a format, the most reliable first."""
    if request.schema is None or interface == "callable":
        return ()
    if interface == "anthropic":
        by_schema = ["strict"] if request.schema and family.format != "tool" and _is_strict(request.schema) else []
        by_tool = ["tool"] if forces_tools and request.schema and not request.tools else []
        return [*by_schema, *by_tool, "prompt"]
    if not request.schema or family.format == "json_object":
        return ["json_object", "prompt"]
    return [*(["strict"] if _is_strict(request.schema) else []), "json_schema", "json_object", "prompt"]


def _is_strict(schema: Any) -> bool:
    """Whether every object in a schema lists all its keys, and all are required, as strict replies demand."""
    if isinstance(schema, list):
        return all(map(_is_strict, schema))
    if not isinstance(schema, dict):
        return True
    if schema.get("type") == "object" or "properties" in schema:
        properties = schema.get("properties", {})
        if schema.get("additionalProperties") is not False or set(schema.get("required", ())) != set(properties):
            return False
        return all(map(_is_strict, properties.values()))
    return all(_is_strict(value) for key, value in schema.items() if key not in ("enum", "const", "default"))


class Fits:
    """How requests are sent to the models of one run, and what their servers have rejected so far."""

    def __init__(self) -> None:
        self._refused: dict[tuple[Route, bytes], frozenset[str]] = {}

    def of(self, route: Route, request: ChatRequest, *, adapts: bool, affordable: int | None = None) -> Fit:
        refused = self._refused.get(_about(route, request), frozenset())
        return fit_of(route.interface, request, refused, adapts=adapts, affordable=affordable)

    async def chat(
        self, client: Any, route: Route, request: ChatRequest, *, adapts: bool, affordable: int | None = None
    ) -> ChatReply:
        """The reply of a client, with the form in which the request was sent. Raises CallFailed."""
        fit_now = partial(self.of, route, request, adapts=adapts, affordable=affordable)
        while True:
            fit = fit_now()
            try:
                reply: ChatReply = await client.chat(route.model, request, fit)
            except CallFailed as failure:
                if fit_now() != fit and any(True for _ in refused_parts(failure, fit)):
                    continue  # another concurrent call has learned it meanwhile
                # parameters of a system under test are the user's choice: that they are rejected is the answer
                refused = self._refused.get(_about(route, request), frozenset())
                fixed = refused if adapts else refused | {"temperature"}
                part = next(
                    (refused_part for refused_part in refused_parts(failure, fit) if refused_part not in fixed), None
                )
                if part is None:
                    raise
                self._refused[_about(route, request)] = refused | {part}
                continue
            return msgspec.structs.replace(
                reply, reply_format=fit.reply_format, left_out=[*fit.left_out], limit=fit.max_tokens
            )


def _about(route: Route, request: ChatRequest) -> tuple[Route, bytes]:
    """What a rejection is about: a model at its address, and the form of the reply, one of which may be rejected."""
    return route, msgspec.json.encode(request.schema)
