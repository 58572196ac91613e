"""The target of an AgentEvals file: each case goes to the target that it, its file or the command line names."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evalwright.errors import InputError, Problem, TargetError
from evalwright.evaluators.tools.calls import TracedCall, traced_call
from evalwright.files.boundary import Boundary, OutsideError
from evalwright.formats.agentv.batches import Batch
from evalwright.formats.agentv.commands import Command
from evalwright.formats.agentv.conversations import call_in_turns
from evalwright.formats.agentv.exchange import PromptRequest, ProviderReply, text_of
from evalwright.formats.agentv.providers import Model, Provider, provider_of
from evalwright.formats.agentv.workspace_settings import WorkspaceSettings, merged_workspaces
from evalwright.formats.agentv.workspaces import Site, Workplaces
from evalwright.importers.transcript import arguments_of
from evalwright.model.chat import ChatRequest
from evalwright.model.plan import Variant
from evalwright.model.snapshot import Case
from evalwright.model.trace import Answer, Metrics, Output, ToolCall, ToolResult, TraceMessage
from evalwright.targets.answers import traced

__all__ = ["PLACE", "AgentvTarget", "files_of"]

PLACE = "targets."
"""How the keys of mistakes in targets begin; the name of the target follows."""

_RETRIES = 2
_PROGRAMS = ("code_judge", "composite", "conversation_turns")
"""Evaluators that may start a program, which may look at the workspace."""
_JUDGES = (*_PROGRAMS, "criteria_judge", "rubric_checks")
"""Evaluators that may see what changed in it."""


class AgentvTarget:
    """A target of `targets.yaml`, the one that a case names or the default.

    Keys: `targets` by name, the `default` one, `folder` of the eval file, `try_seconds`, `retries`, `files`, and
    `workspace`, the workspace of all cases without one of their own.

    What a case names must lie within the boundary of the folder, or in `allow_outside`.

    `files` are the files of all cases, for targets that run once for all. The default of `retries`, after timeouts, is
    the target's own `max_retries`, which for models means retries of a call.
    """

    def __init__(self, variant: Variant) -> None:
        config = variant.config
        self._default: str = config["default"]
        self._missing: str = config.get("missing", "")
        self._timeout: float = config.get("try_seconds", 120.0)
        self._retries: int | None = config.get("retries")
        self._targets: dict[str, dict[str, Any]] = config["targets"]
        self._folder = Path(config.get("folder", "."))
        self._boundary = Boundary(self._folder, config.get("allow_outside", ()))
        self._workspace: WorkspaceSettings = config.get("workspace") or {}
        self._workspaces: Workplaces | None = None
        self._providers: dict[str, Provider] = {}
        for name, target in self._targets.items():
            try:
                allowed = config.get("allow_tools", False)
                self._providers[name] = provider_of(target, config.get("folder", "."), allow_tools=allowed)
            except InputError as error:
                problems = [Problem("", p.message, key=f"{PLACE}{name}.{p.key}".rstrip(".")) for p in error.listed]
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
        if self._workspaces is not None:
            await self._workspaces.close()

    async def _site(self, name: str, case: Case) -> Site | None:
        """The workspace of an attempt; None if neither the file nor the case nor the target asks for one."""
        own = case.extra.get("workspace") or {}
        settings = merged_workspaces(self._workspace, own)
        template = self._targets[name].get("workspace_template")
        if template and "template" not in own:
            settings["template"] = str(self._folder / template)
        hooks = self._targets[name].get("hooks")
        if not (self._workspace or own or template or hooks):
            return None
        if hooks:
            first = settings["hooks"]
            settings["hooks"] = {key: [*first.get(key, ()), *hooks.get(key, ())] for key in {*first, *hooks}}
        self._workspaces = self._workspaces or Workplaces()
        return await self._workspaces.enter(settings, case)

    @traced
    async def run(self, case: Case, trial: int) -> Answer:
        if (wrong := case.extra.get("load_error")) is not None:
            raise TargetError(wrong, "load_error")
        self._check_files(case)
        name = case.extra.get("target") or self._default
        batch = self._batches.get(name) if "turns" not in case.extra else None
        if batch is not None and (reply := await batch.reply_for(case.id, trial)) is not None:
            return _answer(reply)
        answer = await self._answer_without_batch(name, case)
        if case.description:
            answer.extra["description"] = case.description
        if batch is not None:
            answer.extra["batch_error"] = batch.why[trial]
        return answer

    async def _answer_without_batch(self, name: str, case: Case) -> Answer:
        provider = self._providers[name]
        limit = float(case.extra.get("timeout_seconds") or self._timeout)
        for attempt in range(self._retries_of(name) + 1):
            site = await self._site(name, case)
            request = _request_of(case, attempt, self._boundary, None if site is None else site.path)
            try:
                async with asyncio.timeout(limit * max(1, len(case.extra.get("turns", ())))):
                    answer = await _answer_in_turns(provider, request, case)
                return answer if site is None else await _with_workspace(site, answer, case)
            except TimeoutError:
                error = TargetError(f"timed out after {limit:g}s", "timeout")
            except TargetError as raised:
                error = raised
            if site is not None:
                await site.leave()
                await site.remove()
            if error.type != "timeout":
                break
        raise error

    def _check_files(self, case: Case) -> None:
        """Commands get only the paths, so a link that was redirected since the suite was read must be detected here."""
        for file in files_of(case.extra):
            try:
                self._boundary.check(Path(file))
            except OutsideError as error:
                raise TargetError(str(error), "outside") from None

    def _retries_of(self, name: str) -> int:
        own: int | None = None if isinstance(self._providers[name], Model) else self._targets[name].get("max_retries")
        return next(number for number in (self._retries, own, _RETRIES) if number is not None)


async def _answer_in_turns(provider: Provider, request: PromptRequest, case: Case) -> Answer:
    if "turns" not in case.extra:
        return _answer(await provider.ask(request, "system"))
    reply, turns = await call_in_turns(provider, request, case.extra["turns"], case.extra.get("window_size"))
    answer = _answer(reply)
    answer.extra["turns"] = turns
    return answer


async def _with_workspace(site: Site, answer: Answer, case: Case) -> Answer:
    """The answer with what it left behind; the folder stays if a judging program may look at it."""
    types = {spec.type for spec in case.evaluators or ()}
    if types.intersection(_JUDGES):
        answer.extra["file_changes"] = await site.changes()
    if warnings := await site.leave():
        answer.extra["warnings"] = [*answer.extra.get("warnings", ()), *warnings]
    if types.intersection(_PROGRAMS):
        answer.extra["workspace_path"] = str(site.path)
    else:
        await site.remove()
    return answer


def _request_of(case: Case, attempt: int, boundary: Boundary, workspace: Path | None) -> PromptRequest:
    extra = case.extra
    # File names lead nowhere from a workspace, which is a separate folder.
    located = None if workspace is None else extra.get("located_prompt")
    return PromptRequest(
        extra.get("prompt", ""),
        extra.get("bare_prompt", "") if located is None else "".join(located),
        extra.get("chat", ()),
        None,
        case.id,
        attempt,
        files_of(extra),
        guidelines=extra.get("guidelines", ""),
        messages=extra.get("input_messages", ()),
        boundary=boundary,
        workspace=workspace,
    )


def files_of(extra: Mapping[str, Any]) -> list[str]:
    """The files that a case names, with guidelines last: programs get the paths of both."""
    return [*extra.get("input_files", ()), *extra.get("guideline_files", ())]


def _answer(reply: ProviderReply) -> Answer:
    messages = [*reply.messages] or [{"role": "assistant", "content": reply.text}]
    extra: dict[str, Any] = {"output_messages": messages}
    for name in ("token_usage", "duration_ms"):
        if getattr(reply, name) is not None:
            extra[name] = getattr(reply, name)
    if reply.warnings:
        extra["warnings"] = [*reply.warnings]
    if reply.kept:
        extra["output_file"] = reply.kept
    usage = reply.token_usage or {}
    counts = [value if isinstance(value := usage.get(key), int) and value >= 0 else None for key in ("input", "output")]
    answer = Answer(Output(reply.text), extra=extra, metrics=Metrics(counts[0], counts[1], cost_usd=reply.cost_usd))
    answer.messages, answer.tool_results = _trace_messages(messages)
    answer.tool_calls = [m.tool_call for m in answer.messages if m.tool_call is not None]
    return answer


def _trace_messages(messages: Sequence[dict[str, Any]]) -> tuple[list[TraceMessage], list[ToolResult]]:
    """The messages and the results of tools.

    Further calls of a message are messages of their own after it, as in all traces, and so is the `output` of a call.
    """
    read_messages: list[TraceMessage] = []
    results: list[ToolResult] = []
    called: dict[str | None, str] = {}
    for raw in messages:
        listed = raw.get("tool_calls")
        calls = [traced_call(call) for call in (listed if isinstance(listed, list) else ()) if isinstance(call, dict)]
        called |= {call.id: call.name for call in calls if call.id is not None}
        role, raw_id = str(raw.get("role") or "assistant"), raw.get("tool_call_id")
        call_id = raw_id if isinstance(raw_id, str) else None
        name = raw.get("name") if isinstance(raw.get("name"), str) else called.get(call_id)
        content = _content_of(raw.get("content"))
        read_messages.append(TraceMessage(role, content, tool_call=_as_call(calls[0]) if calls else None, name=name))
        read_messages += [TraceMessage(role, tool_call=_as_call(call)) for call in calls[1:]]
        if role == "tool" and content is not None:
            results.append(ToolResult(name or "", content, call_id))
        for result in _outputs(calls):
            read_messages.append(TraceMessage("tool", result.content, name=result.name))
            results.append(result)
    return read_messages, results


def _as_call(call: TracedCall) -> ToolCall:
    return ToolCall(call.name, call.id, arguments_of(call.args))


def _outputs(calls: Sequence[TracedCall]) -> Iterator[ToolResult]:
    for call in calls:
        if call.output is not None:
            yield ToolResult(call.name, _content_of(call.output) or "", call.id)


def _content_of(content: Any) -> dict[str, Any] | str | None:
    return content if content is None or isinstance(content, (str, dict)) else text_of(content)
