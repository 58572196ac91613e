"""Ways to ask a target of `targets.yaml`: commands, models, canned answers, Python (specification agentv, 6)."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from msgspec.structs import replace

from evalwright.errors import InputError, Problem, TargetError
from evalwright.model.chat import ChatRequest
from evalwright.processes import Finished, run_command
from evalwright.sandbox.patterns import search

__all__ = ["KINDS", "MODELS", "Asked", "Model", "Provider", "Said", "model_of", "provider_of"]

MODELS = {"openai": "openai", "anthropic": "anthropic", "azure": "azure", "gemini": "google"}
KINDS = ("cli", "mock", "python", *MODELS)
_MOCKED = '{"text": "mock response"}'
_PLACEHOLDER = re.compile(r"\{([A-Z_]+)\}")
_PLACEHOLDERS = ("PROMPT", "GUIDELINES", "EVAL_ID", "ATTEMPT", "FILES", "OUTPUT_FILE")
_LAST = 2000


class Asked(NamedTuple):
    """One question: `prompt` with the files' content, `bare_prompt` only naming them, `chat` as messages."""

    prompt: str
    bare_prompt: str = ""
    chat: Sequence[dict[str, str]] = ()
    system: str | None = None
    case_id: str = ""
    attempt: int = 0
    files: Sequence[str] = ()
    guidelines: str = ""
    settings: Mapping[str, Any] = {}


class Said(NamedTuple):
    """The answer: `messages` where the provider gave some, and what it reported to have used."""

    text: str
    messages: Sequence[dict[str, Any]] = ()
    token_usage: dict[str, Any] | None = None
    cost_usd: float | None = None
    duration_ms: float | None = None


class Provider(Protocol):
    async def ask(self, asked: Asked, purpose: str) -> Said:
        """Raises TargetError. The caller bounds the time and cancels."""


def provider_of(target: Mapping[str, Any], folder: str) -> Provider:
    """The provider of a target. Raises InputError that names the target and the key."""
    kind = target.get("provider")
    if kind == "mock":
        return _Mock(target)
    if kind == "cli":
        return _Command(target, folder)
    if kind == "python":
        return _Python(target)
    if kind in MODELS:
        return model_of(target)
    name = target.get("name")
    raise _refused("provider", f"unknown provider {kind!r} of target {name!r} (there are: {', '.join(KINDS)})")


def model_of(target: Mapping[str, Any]) -> Model:
    """The provider of a target whose `provider` is one of MODELS. Raises InputError."""
    return Model(target, MODELS[target["provider"]])


def _refused(key: str, message: str) -> InputError:
    return InputError(Problem("", message, key=key))


class _Mock:
    def __init__(self, target: Mapping[str, Any]) -> None:
        self._response = str(target.get("response", _MOCKED))
        self._responses = [(r["pattern"], str(r["response"])) for r in target.get("responses") or () if "pattern" in r]

    async def ask(self, asked: Asked, purpose: str) -> Said:
        for pattern, response in self._responses:
            if search(re.compile(pattern), asked.prompt):
                return Said(response)
        return Said(self._response)


class _Python:
    """`callable: module:function`, given the question, the messages and the id of the case."""

    def __init__(self, target: Mapping[str, Any]) -> None:
        from importlib import import_module

        place = str(target.get("callable"))
        module, _, name = place.partition(":")
        try:
            self._function: Callable[..., Any] = getattr(import_module(module), name)
        except Exception as error:
            raise _refused("callable", f"{place!r} cannot be imported: {type(error).__name__}: {error}") from error

    async def ask(self, asked: Asked, purpose: str) -> Said:
        import inspect

        given = {"prompt": asked.prompt, "messages": list(asked.chat), "eval_id": asked.case_id}
        called = inspect.iscoroutinefunction(self._function)
        said = await self._function(given) if called else await asyncio.to_thread(self._function, given)
        return _read(said if isinstance(said, str) else json.dumps(said, ensure_ascii=False))


class Model:
    """A chat model, through the one way to models that a run has."""

    def __init__(self, target: Mapping[str, Any], provider: str) -> None:
        model = target.get("model", target.get("deployment"))
        if not isinstance(model, str) or not model:
            raise _refused("model", f"target {target.get('name')!r} needs a 'model'")
        base_url = target.get("base_url", target.get("endpoint"))
        self.question = ChatRequest(
            model, [], provider=provider, base_url=base_url, api_key_env=target.get("api_key_env")
        )
        """What every question has in common."""
        self._settings = {"temperature": target.get("temperature"), "max_tokens": target.get("max_output_tokens")}

    async def ask(self, asked: Asked, purpose: str) -> Said:
        from evalwright.llm.current import current
        from evalwright.model.chat import ChatMessage, Purpose

        said = [m for m in asked.chat if m["role"] != "system"] or [{"role": "user", "content": asked.prompt}]
        system = [asked.system or "", asked.guidelines, *(m["content"] for m in asked.chat if m["role"] == "system")]
        settings = {**self._settings, **asked.settings}
        request = replace(
            self.question,
            messages=[ChatMessage(m["role"], m["content"]) for m in said],
            system="\n\n".join(filter(None, system)) or None,
            temperature=settings.get("temperature"),
            max_tokens=settings.get("max_tokens"),
            repeat=asked.attempt,
        )
        meant: Purpose = "judge" if purpose == "judge" else "system"
        reply = await current().chat(request, meant)
        usage = {"input": reply.usage.token_input or 0, "output": reply.usage.token_output or 0}
        return Said(reply.text, (), usage, reply.cost_usd)


class _Command:
    """A command that answers in a file, or on stdout when it names none."""

    def __init__(self, target: Mapping[str, Any], folder: str) -> None:
        name = target.get("name")
        template, listed = target.get("command_template"), target.get("command")
        if not template and not listed:
            raise _refused("command_template", f"target {name!r} needs a 'command_template'")
        words = [template] if template else list(listed or ())
        unknown = [found for word in words for found in _PLACEHOLDER.findall(str(word)) if found not in _PLACEHOLDERS]
        if unknown:
            known = ", ".join(_PLACEHOLDERS)
            raise _refused(
                "command_template", f"target {name!r}: unknown placeholder {{{unknown[0]}}} (known: {known})"
            )
        self._template, self._listed = template, listed
        self._files_format = str(target.get("files_format") or "{path}")
        cwd = target.get("cwd")
        self._cwd = str(Path(folder) / cwd) if cwd else folder
        self._timeout = target.get("timeout_seconds")

    async def ask(self, asked: Asked, purpose: str) -> Said:
        with tempfile.TemporaryDirectory(prefix="evalwright-") as folder:
            output = Path(folder) / "output.json"
            values = {
                "PROMPT": asked.bare_prompt or asked.prompt,
                "GUIDELINES": asked.guidelines,
                "EVAL_ID": asked.case_id,
                "ATTEMPT": str(asked.attempt),
                "OUTPUT_FILE": str(output),
            }
            finished = await self._run(values, asked.files)
            return _read(self._text(finished, output))

    async def _run(self, values: dict[str, str], files: Sequence[str]) -> Finished:
        command, stdin = self._words(values, files)
        try:
            async with asyncio.timeout(self._timeout):
                finished = await run_command(command, env=dict(os.environ), cwd=self._cwd, stdin=stdin.encode())
        except TimeoutError:
            raise TargetError(f"timed out after {self._timeout:g} seconds", "timeout") from None
        except OSError as error:
            raise TargetError(f"{command[0]!r} cannot be started: {error.strerror or error}") from None
        if finished.exit_code != 0:
            said = finished.stderr.last.decode(errors="replace")[-_LAST:].strip()
            raise TargetError(f"{said} ({finished.how()})".strip())
        return finished

    def _words(self, values: dict[str, str], files: Sequence[str]) -> tuple[list[str], str]:
        named = [self._files_format.format(path=path, basename=Path(path).name) for path in files]
        if self._template:
            quoted = {key: shlex.quote(value) for key, value in values.items()}
            quoted["FILES"] = " ".join(map(shlex.quote, named))
            return ["sh", "-c", _PLACEHOLDER.sub(lambda match: quoted[match[1]], self._template)], ""
        bare = {**values, "FILES": " ".join(named)}
        words = [_PLACEHOLDER.sub(lambda match: bare[match[1]], str(word)) for word in self._listed or ()]
        placed = any(_PLACEHOLDER.search(str(word)) for word in self._listed or ())
        return words, "" if placed else values["PROMPT"]

    def _text(self, finished: Finished, output: Path) -> str:
        asks_for_file = "{OUTPUT_FILE}" in (self._template or " ".join(map(str, self._listed or ())))
        if not asks_for_file:
            return finished.stdout.kept.decode(errors="replace").rstrip("\r\n")
        try:
            return output.read_bytes().decode(errors="replace")
        except OSError as error:
            raise TargetError(f"the command wrote no output file: {error.strerror}") from None


def _read(text: str) -> Said:
    """The answer in an output: JSON with `output_messages` or `text`, else the whole text."""
    try:
        found = json.loads(text)
    except ValueError:
        return Said(text)
    if not isinstance(found, dict) or not _fits(found):
        return Said(text)
    usage = found.get("token_usage")
    reported = (
        usage if isinstance(usage, dict) else None,
        _number(found.get("cost_usd")),
        _number(found.get("duration_ms")),
    )
    messages = found.get("output_messages", found.get("outputMessages"))
    if isinstance(messages, list) and messages:
        listed = [message for message in messages if isinstance(message, dict)]
        return Said(_answer(listed), listed, *reported)
    said = found.get("text", text)
    return Said(said if isinstance(said, str) else json.dumps(said, ensure_ascii=False), (), *reported)


def _fits(found: dict[str, Any]) -> bool:
    """Whether what an output reports beside its text is of the right shape; if not, it is a text as a whole."""
    usage = found.get("token_usage")
    counts = [usage.get("input"), usage.get("output")] if isinstance(usage, dict) else []
    numbers = [found.get("cost_usd"), found.get("duration_ms"), *counts]
    sound = all(n is None or (isinstance(n, (int, float)) and not isinstance(n, bool)) for n in numbers)
    return sound and (usage is None or isinstance(usage, dict))


def _answer(messages: Sequence[dict[str, Any]]) -> str:
    """The content of the last message of the assistant that has any."""
    for message in reversed(messages):
        content = message.get("content")
        if message.get("role") == "assistant" and content not in (None, ""):
            return (
                content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, separators=(",", ":"))
            )
    return ""


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
        return None
    return float(value)
