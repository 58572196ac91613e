"""The system under test: renders a prompt with the variables of a test, calls a provider, transforms the output."""

from __future__ import annotations

import asyncio
import json
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec

from evalwright.errors import TargetError
from evalwright.formats.promptfoo.calls import ProviderCall, ProviderReply, caller_of
from evalwright.formats.promptfoo.dependence import remembers, talk_of
from evalwright.formats.promptfoo.extensions import vars_before
from evalwright.formats.promptfoo.faults import ScriptError, TemplateError
from evalwright.formats.promptfoo.kinds import reads_tools
from evalwright.formats.promptfoo.prompts import TURNS, allows
from evalwright.formats.promptfoo.recorded_results import RecordedResults, mark_replayed
from evalwright.formats.promptfoo.rendering import Rendering, rendering_error
from evalwright.formats.promptfoo.transforms import transformed, transformed_vars
from evalwright.formats.promptfoo.values import as_javascript, recorded, shown_text
from evalwright.model.chat import ChatRequest
from evalwright.model.plan import Variant
from evalwright.model.snapshot import Case
from evalwright.model.trace import Answer, Metrics, Output
from evalwright.session import environment, session_began
from evalwright.targets.answers import traced
from evalwright.targets.failures import target_failure

__all__ = ["PromptfooTarget"]

_NOT_KEPT = (TURNS, "env")


class PromptfooTarget:
    """A provider of a promptfoo configuration with one of its prompts.

    Keys: `provider` and `prompt` as they were read, `folder`, `env`, `filters`, `extensions`, `allow_outside`; the
    `repeat` of tests without their own, if others have one; and `max_seconds`, after which nothing is called any more.
    """

    may_be_silent: bool = True
    """An empty text is an output."""

    def __init__(self, variant: Variant) -> None:
        self._config = variant.config
        self._provider: dict[str, Any] = variant.config["provider"]
        self._folder: str = variant.config["folder"]
        self._extensions: list[str] = variant.config.get("extensions", [])
        self._rendering = Rendering(variant.config)
        cached = variant.config.get("cached")
        self._caller = None if cached is not None else caller_of(self._provider, self._folder)
        self._cached = (
            None if cached is None else RecordedResults(Path(cached["path"]), cached["column"], cached["trials"])
        )
        self._others: dict[str, Any] = {}
        self._talks: dict[str, dict[tuple[str, int], dict[str, Any]]] = defaultdict(dict)
        """The turns of each conversation, by test and trial."""
        self._kept: dict[str, Any] = {}
        self._remembers = remembers(variant.config["prompt"])
        self._had: set[str] = set()
        """Cases whose turn has come in this session."""

    async def open(self) -> None:
        self._environment = {**environment(), **self._config.get("env", {})}
        most: float | None = self._config.get("max_seconds")
        # of the session, and not of this target: the end is the same for all columns
        self._end = None if most is None else session_began() + most

    def asks(self, case: Case) -> Iterator[ChatRequest]:
        own = _settings_of_test(case)
        if "provider_output" not in own and self._cached is None:
            yield from self._caller_for(own).asks()

    @traced
    async def run(self, case: Case, trial: int) -> Answer:
        own = _settings_of_test(case)
        missing = [id for id in own.get("relies_on", ()) if id not in self._had]
        self._had.add(case.id)
        if not self._is_for(own, trial):
            return Answer(Output(""), extra={"promptfoo": {"left_out": True, "vars": case.input}}, called=False)
        if missing:
            raise TargetError(
                f"it goes on from {missing[0]}, which was not answered in this session: run the whole suite",
                "earlier_turn_missing",
            )
        answer = Answer(extra={"promptfoo": {"vars": case.input}})
        end = asyncio.timeout(None if self._end is None else self._end - time.monotonic())
        try:
            async with end:
                await asyncio.sleep(0)  # or what never waits would be done after the end, too
                case = await self._with_own_variables(case, own.get("options", {}))
                answer.extra["promptfoo"]["vars"] = recorded(dict(case.input))
                await self._fill(answer, case, trial, own)
        except TimeoutError:
            if not end.expired():
                raise
            most = self._config["max_seconds"]
            answer.error = target_failure(TargetError(f"the {most:g} s of maxEvalTimeMs are over", "time_limit"))
        except (ScriptError, TemplateError) as error:
            answer.error = target_failure(rendering_error(error))
        except TargetError as error:
            answer.error = target_failure(error)
        return answer

    def _is_for(self, own: Mapping[str, Any], trial: int) -> bool:
        """Whether a test names this column's prompt and provider, if it names any, and is repeated this often."""
        repeat = own.get("options", {}).get("repeat", self._config.get("repeat"))
        if repeat is not None and trial >= repeat:
            return False
        return allows(own.get("prompts"), self._config["prompt"]) and allows(own.get("providers"), self._provider)

    async def _fill(self, answer: Answer, case: Case, trial: int, own: Mapping[str, Any]) -> None:
        """Add to the answer what is known about the cell, also if that is all because an exception is raised."""
        options: Mapping[str, Any] = own.get("options", {})
        seen: dict[str, Any] = answer.extra["promptfoo"]
        values, prompt, config = await self._rendered_prompt(case, trial, options)
        context = self._context(values, prompt, {**config, **_settings_of_call(options)})
        provider = own.get("provider", self._provider)
        seen.update(prompt=prompt, provider={key: provider[key] for key in ("id", "label", "calls") if key in provider})
        if any(reads_tools(spec.config["assertion"]) for spec in case.evaluators or () if "assertion" in spec.config):
            from evalwright.formats.promptfoo.models import offered_tools

            seen["offered"] = offered_tools(provider, self._folder, context["vars"])
        resolved = {name: value for name, value in context["vars"].items() if seen["vars"].get(name) != value}
        if resolved:
            seen["resolved"] = resolved
        turn = {"prompt": _parsed_prompt(prompt), "input": _question_in(prompt), "output": ""}
        if self._remembers:  # before the call: a turn that fails is one without an output
            self._talks[talk_of(case)][case.id, trial] = turn
        if self._cached is not None and "provider_output" not in own:
            reply, took = self._cached.find(case, trial)
            turn["output"] = reply.output
            self._keep(options, reply.output)
            _add_reply(answer, reply)
            _add_output(answer, reply, reply.output)
            mark_replayed(answer, took)
            return
        if "provider_output" in own:
            reply = ProviderReply(own["provider_output"], cost=0.0)
        else:
            inner = {"__evalId": "evalwright", "__evalStepId": case.id, "__repeatIndex": trial}
            hook_context = {**context, "vars": {**context["vars"], **inner}, "test": _test_for_code(case, own)}
            reply = await self._caller_for(own)(ProviderCall(prompt, hook_context, trial, self._environment))
        _add_reply(answer, reply)
        # A test's own provider merely replaces the column's, whose transform and delay still apply.
        turn |= {"output": reply.output or "", "metadata": reply.metadata}
        output = await self._transformed_output(reply, options, context, seen)
        self._keep(options, output)
        if delay := self._provider.get("delay"):
            await asyncio.sleep(float(delay) / 1000)
        _add_output(answer, reply, output)

    def _context(self, values: Mapping[str, Any], prompt: str, config: Mapping[str, Any]) -> dict[str, Any]:
        """What code gets to know about a call: the variables as they were rendered, and the prompt."""
        authored: Mapping[str, Any] = self._config["prompt"]
        template = dict.fromkeys(("raw", "template"), authored["raw"]) if "raw" in authored else {"raw": prompt}
        return {
            "vars": {key: value for key, value in values.items() if key not in _NOT_KEPT},
            "prompt": {**template, "label": authored["label"], "config": config},
        }

    async def _with_own_variables(self, case: Case, options: Mapping[str, Any]) -> Case:
        """The test with the variables that `transformVars` makes, as `beforeEach` then leaves them."""
        inputs: Mapping[str, Any] = case.input if isinstance(case.input, dict) else {}
        if code := options.get("transformVars"):
            context = {"vars": inputs, "prompt": {}, "uuid": str(uuid4())}
            inputs = {**inputs, **await transformed_vars(code, inputs, context, self._folder)}
        case = msgspec.structs.replace(case, input=inputs)
        return await self._after_hooks(case) if self._extensions else case

    async def _after_hooks(self, case: Case) -> Case:
        """The test with the variables that `beforeEach` leaves it."""
        try:
            variables = await vars_before(self._extensions, self._folder, case)
            return msgspec.structs.replace(case, input=variables)
        except ScriptError as error:
            raise TargetError(str(error), "timeout" if error.type == "timeout" else "hook_error") from error

    async def _rendered_prompt(
        self, case: Case, trial: int, options: Mapping[str, Any]
    ) -> tuple[dict[str, Any], str, dict[str, Any]]:
        read = await self._rendering.read({**case.input, **self._kept})
        values = self._rendering.resolved(read)
        if self._remembers and options.get("disableConversationVar") is not True:
            turns = self._talks[talk_of(case)]
            turns.pop((case.id, trial), None)  # of an attempt that failed
            read[TURNS] = values[TURNS] = [*turns.values()]
        values["env"] = self._environment
        prompt, config = await self._rendering.prompt(values, read, options)
        return values, prompt, config

    def _caller_for(self, own: Mapping[str, Any]) -> Any:
        provider = own.get("provider")
        if provider is None:
            return self._caller
        key = json.dumps(provider, sort_keys=True)
        if key not in self._others:
            self._others[key] = caller_of(provider, self._folder)
        return self._others[key]

    async def _transformed_output(
        self, reply: ProviderReply, options: Mapping[str, Any], context: Mapping[str, Any], seen: dict[str, Any]
    ) -> Any:
        """The output after all transforms; `seen` gets what it was before the test's, if that is something else."""
        if reply.output is None:
            raise TargetError("no output: the provider returned null")
        context = {**context, "metadata": reply.metadata}
        provided = await self._transformed_by(self._provider.get("transform"), reply.output, context)
        output = await self._transformed_by(options.get("transform", options.get("postprocess")), provided, context)
        if output != provided:
            seen["provided"] = provided
        return output

    async def _transformed_by(self, code: Any, output: Any, context: Mapping[str, Any]) -> Any:
        if not code:
            return output
        try:
            return await transformed(code, output, context, self._folder)
        except ScriptError as error:
            raise TargetError(f"transform: {error}", "transform_error") from None

    def _keep(self, options: Mapping[str, Any], output: Any) -> None:
        """Make an output that is not empty a variable of the tests behind it."""
        name = options.get("storeOutputAs")
        if name and (output or isinstance(output, (dict, list))):
            self._kept[str(name)] = output

    async def close(self) -> None:
        for caller in (self._caller, *self._others.values()):
            if caller is not None:
                await caller.close()


def _settings_of_test(case: Case) -> dict[str, Any]:
    native: dict[str, Any] = case.extra.get("promptfoo", {})
    return native


def _settings_of_call(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a test as settings for the call, which take precedence over those of prompt and provider."""
    return {key: value for key, value in options.items() if key != "repeat"}


def _test_for_code(case: Case, own: Mapping[str, Any]) -> dict[str, Any]:
    """The test in the form in which promptfoo shows it to code."""
    test = {"vars": case.input, "metadata": case.metadata, "options": own.get("options", {})}
    return {**test, "description": case.description} if case.description else test


def _parsed_prompt(prompt: str) -> Any:
    try:
        return json.loads(prompt)
    except ValueError:
        return prompt


def _question_in(prompt: str) -> Any:
    """The content of the last message of a prompt, the last message, or the whole prompt if it is no list."""
    messages = _parsed_prompt(prompt)
    last = messages[-1] if isinstance(messages, list) and messages else None
    return (last.get("content") if isinstance(last, dict) else None) or last or messages


def _add_reply(answer: Answer, reply: ProviderReply) -> None:
    """What a call has cost counts, whatever becomes of its output. Raises TargetError if it ended with an error."""
    tokens = reply.tokens
    answer.metrics = Metrics(
        token_input=tokens.get("prompt"), token_output=tokens.get("completion"), cost_usd=reply.cost
    )
    if reply.error is not None:
        raise TargetError(reply.error, "provider_error")


def _add_output(answer: Answer, reply: ProviderReply, output: Any) -> None:
    """The output after all transforms, and what else is to be known of it."""
    structured = as_javascript(output) if isinstance(output, dict) else None
    answer.output = Output(shown_text(output), structured=structured)
    seen = answer.extra["promptfoo"]
    seen["output"] = output
    if reply.raw is not None:
        seen["raw"] = reply.raw
    if reply.output != output:
        seen["response"] = reply.output
    if reply.metadata:
        seen["metadata"] = reply.metadata
    if reply.remarks:
        seen["remarks"] = reply.remarks
