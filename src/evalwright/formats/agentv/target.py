"""The target of an AgentEvals file: each case goes to the target that it, its file or the command line names."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from evalwright.errors import InputError, Problem, TargetError
from evalwright.files.boundary import Boundary, OutsideError
from evalwright.files.temporary import TemporaryFolder
from evalwright.formats.agentv.batches import Batch
from evalwright.formats.agentv.commands import Command
from evalwright.formats.agentv.exchange import Asked, Said
from evalwright.formats.agentv.providers import Model, Provider, provider_of
from evalwright.model.chat import ChatRequest
from evalwright.model.plan import Variant
from evalwright.model.snapshot import Case
from evalwright.model.trace import Answer, Metrics, Output, ToolCall, TraceMessage
from evalwright.targets.captured import traced

__all__ = ["AgentvTarget", "files_of"]

_RETRIES = 2
_PROGRAMS = ("code_judge", "composite")
"""Evaluators that may start a program."""


class AgentvTarget:
    """Keys: `targets` by name, the `default` one, `folder` of the eval file, `try_seconds`, `retries`, `files`.

    What a case names must lie within the boundary of the folder, or in `allow_outside`.

    `files` are those of all cases, for targets that are run once for all. `retries` after time-outs are by default the
    target's own `max_retries`, which with models are those of a call.
    """

    def __init__(self, variant: Variant) -> None:
        config = variant.config
        self._default: str = config["default"]
        self._missing: str = config.get("missing", "")
        self._timeout: float = config.get("try_seconds", 120.0)
        self._retries: int | None = config.get("retries")
        self._targets: dict[str, dict[str, Any]] = config["targets"]
        self._boundary = Boundary(Path(config.get("folder", ".")), config.get("allow_outside", ()))
        self._kept: TemporaryFolder | None = None
        self._numbers = count(1)
        self._providers: dict[str, Provider] = {}
        for name, target in self._targets.items():
            try:
                allowed = config.get("allow_tools", False)
                self._providers[name] = provider_of(target, config.get("folder", "."), allow_tools=allowed)
            except InputError as error:
                problems = [Problem("", p.message, key=f"targets.{name}.{p.key}") for p in error.problems]
                raise InputError(problems) from error
        self._batches = {
            name: Batch(provider, config.get("files") or (), self._timeout)
            for name, provider in self._providers.items()
            if isinstance(provider, Command) and self._targets[name].get("provider_batching") is True
        }

    def asks(self, case: Case) -> Iterator[ChatRequest]:
        provider = self._providers.get(case.extra.get("target") or self._default)
        if isinstance(provider, Model) and case.extra.get("load_error") is None:
            yield provider.question

    async def open(self) -> None:
        if self._missing:
            raise InputError(self._missing)

    async def close(self) -> None:
        if self._kept is not None:
            await asyncio.to_thread(self._kept.close)

    def _workspace(self, provider: Provider, case: Case) -> Path | None:
        """Where a workspace is kept until the end, which a program that judges may look at."""
        judged = any(spec.type in _PROGRAMS for spec in case.evaluators or ())
        if not judged or getattr(provider, "workspace_template", None) is None:
            return None
        self._kept = self._kept or TemporaryFolder()
        return self._kept.path / f"cell-{next(self._numbers)}"

    @traced
    async def run(self, case: Case, trial: int) -> Answer:
        if (wrong := case.extra.get("load_error")) is not None:
            raise TargetError(wrong, "load_error")
        self._check_files(case)
        name = case.extra.get("target") or self._default
        batch = self._batches.get(name)
        if batch is not None and (said := await batch.said(case.id, trial)) is not None:
            return _answer(said)
        answer = await self._asked_alone(name, case)
        if batch is not None:
            answer.extra["batch_error"] = batch.why[trial]
        return answer

    async def _asked_alone(self, name: str, case: Case) -> Answer:
        provider = self._providers[name]
        limit = float(case.extra.get("timeout_seconds") or self._timeout)
        for attempt in range(self._retries_of(name) + 1):
            workspace = self._workspace(provider, case)
            asked = _asked(case, attempt)._replace(boundary=self._boundary, workspace=workspace)
            try:
                async with asyncio.timeout(limit):
                    answer = _answer(await provider.ask(asked, "system"))
                if workspace is not None:
                    answer.extra["workspace_path"] = str(workspace)
                return answer
            except TimeoutError:
                error = TargetError(f"timed out after {limit:g}s", "timeout")
            except TargetError as raised:
                error = raised
            if error.type != "timeout":
                break
        raise error

    def _check_files(self, case: Case) -> None:
        """Commands get the paths alone, so that a link turned elsewhere since the suite was read must show here."""
        for file in files_of(case.extra):
            try:
                self._boundary.check(Path(file))
            except OutsideError as error:
                raise TargetError(str(error), "outside") from None

    def _retries_of(self, name: str) -> int:
        own: int | None = None if isinstance(self._providers[name], Model) else self._targets[name].get("max_retries")
        return next(number for number in (self._retries, own, _RETRIES) if number is not None)


def _asked(case: Case, attempt: int) -> Asked:
    extra = case.extra
    return Asked(
        extra.get("prompt", ""),
        extra.get("bare_prompt", ""),
        extra.get("chat", ()),
        None,
        case.id,
        attempt,
        files_of(extra),
        guidelines=extra.get("guidelines", ""),
        messages=extra.get("input_messages", ()),
    )


def files_of(extra: Mapping[str, Any]) -> list[str]:
    """The files that a case names, guidelines after the others: programs get the paths of both."""
    return [*extra.get("input_files", ()), *extra.get("guideline_files", ())]


def _answer(said: Said) -> Answer:
    messages = [*said.messages] or [{"role": "assistant", "content": said.text}]
    extra: dict[str, Any] = {"output_messages": messages}
    for name in ("token_usage", "duration_ms"):
        if getattr(said, name) is not None:
            extra[name] = getattr(said, name)
    if said.warnings:
        extra["warnings"] = [*said.warnings]
    if said.kept:
        extra["output_file"] = said.kept
    usage = said.token_usage or {}
    counts = [value if isinstance(value := usage.get(key), int) and value >= 0 else None for key in ("input", "output")]
    answer = Answer(Output(said.text), extra=extra, metrics=Metrics(counts[0], counts[1], cost_usd=said.cost_usd))
    answer.messages = [_message(message) for message in messages]
    answer.tool_calls = [m.tool_call for m in answer.messages if m.tool_call is not None]
    return answer


def _message(raw: dict[str, Any]) -> TraceMessage:
    content = raw.get("content")
    text = content if isinstance(content, (str, dict)) or content is None else str(content)
    calls = raw.get("tool_calls")
    first = calls[0] if isinstance(calls, list) and calls and isinstance(calls[0], dict) else None
    call = None
    if first is not None:
        arguments = first.get("input")
        named = str(first.get("tool") or (first.get("function") or {}).get("name") or "")
        call = ToolCall(named, first.get("id"), arguments if isinstance(arguments, dict) else {})
    return TraceMessage(str(raw.get("role") or "assistant"), text, tool_call=call, name=raw.get("name"))
