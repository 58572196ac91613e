"""Commands as targets of `targets.yaml`."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import mkstemp
from typing import Any, NamedTuple

from evalwright.errors import TargetError
from evalwright.files.temporary import temporary_folder
from evalwright.formats.agentv.exchange import PromptRequest, ProviderReply, read_provider_reply, reply_in
from evalwright.formats.agentv.health import HealthCheck, ending, refused
from evalwright.formats.agentv.workspaces import copy_template
from evalwright.processes import FinishedCommand, run_command
from evalwright.session import environment

__all__ = ["Command"]

_PLACEHOLDER = re.compile(r"\{([A-Z_]+)\}")
_PLACEHOLDERS = ("PROMPT", "PROMPT_FILE", "GUIDELINES", "EVAL_ID", "ATTEMPT", "FILES", "OUTPUT_FILE")


class _Output(NamedTuple):
    """The output of a command, and where its output file was kept; empty if it was not."""

    text: str
    kept: str


def _kept_output(output: Path) -> str:
    descriptor, name = mkstemp(prefix="agentv-", suffix=output.suffix)
    with os.fdopen(descriptor, "wb") as file:
        file.write(output.read_bytes())
    return name


class Command:
    """A command that answers in a file, or on stdout if it names none."""

    def __init__(self, target: Mapping[str, Any], folder: str) -> None:
        name = target.get("name")
        template, listed = target.get("command_template"), target.get("command")
        if isinstance(listed, str):  # the newer name of the template
            template, listed = template or listed, None
        if not template and not listed:
            raise refused("command_template", f"target {name!r} needs a 'command_template'")
        words = [template] if template else list(listed or ())
        unknown = [
            placeholder
            for word in words
            for placeholder in _PLACEHOLDER.findall(str(word))
            if placeholder not in _PLACEHOLDERS
        ]
        if unknown:
            known = ", ".join(_PLACEHOLDERS)
            raise refused("command_template", f"target {name!r}: unknown placeholder {{{unknown[0]}}} (known: {known})")
        self._template, self._listed = template, listed
        self._files_format = str(target.get("files_format") or "{path}")
        self._health = HealthCheck.of(target, folder)
        cwd = target.get("cwd")
        self._cwd = str(Path(folder) / cwd) if cwd else folder
        named = target.get("workspace_template")
        self.workspace_template: Path | None = None if named is None else Path(folder) / named
        self._timeout = target.get("timeout_seconds")
        self._keeps = target.get("keep_temp_files") is True

    async def ask(self, request: PromptRequest, purpose: str) -> ProviderReply:
        output = await self._output(request)
        return read_provider_reply(output.text)._replace(kept=output.kept)

    async def ask_all(self, files: Sequence[str]) -> dict[str, ProviderReply]:
        """Run once for all cases; the lines of the output name their case by `id`. Raises TargetError."""
        replies: dict[str, ProviderReply] = {}
        output = await self._output(PromptRequest("", case_id="batch", files=files))
        for number, line in enumerate(output.text.split("\n"), 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise TargetError(f"line {number} of its output is not JSON: {error}") from None
            case_id = record.get("id") if isinstance(record, dict) else None
            if not isinstance(case_id, str):
                raise TargetError(f"line {number} of its output has no 'id'")
            if case_id in replies:
                raise TargetError(f"line {number} of its output has the id {case_id!r} for the second time")
            replies[case_id] = reply_in(record, line)._replace(kept=output.kept)
        return replies

    async def _output(self, request: PromptRequest) -> _Output:
        if self._health is not None:
            await self._health.looked_at()
        with temporary_folder() as folder:
            output, prompt = folder / "output.json", request.bare_prompt or request.prompt
            values = {
                "PROMPT": prompt,
                "PROMPT_FILE": str(folder / "prompt.txt"),
                "GUIDELINES": request.guidelines,
                "EVAL_ID": request.case_id,
                "ATTEMPT": str(request.attempt),
                "OUTPUT_FILE": str(output),
            }
            if self._names("PROMPT_FILE"):
                await asyncio.to_thread(Path(values["PROMPT_FILE"]).write_bytes, prompt.encode())
            cwd = self._cwd
            if request.workspace is not None:
                cwd = str(request.workspace)
            elif self.workspace_template is not None:
                cwd = str(await asyncio.to_thread(copy_template, self.workspace_template, folder / "workspace"))
            finished = await self._run(values, request.files, cwd)
            text = self._text(finished, output)
            return _Output(
                text, await asyncio.to_thread(_kept_output, output) if self._keeps and output.exists() else ""
            )

    async def _run(self, values: dict[str, str], files: Sequence[str], cwd: str) -> FinishedCommand:
        command, stdin = self._command_words(values, files)
        try:
            async with asyncio.timeout(self._timeout):
                finished = await run_command(command, env=environment(), cwd=cwd, stdin=stdin.encode())
        except TimeoutError:
            raise TargetError(f"timed out after {self._timeout:g}s", "timeout") from None
        except OSError as error:
            if not os.path.isdir(cwd):
                raise TargetError(f"the folder {cwd} of the command does not exist") from None
            raise TargetError(f"{command[0]!r} cannot be started: {error.strerror or error}") from None
        if finished.exit_code != 0:
            raise TargetError(ending(finished))
        return finished

    def _command_words(self, values: dict[str, str], files: Sequence[str]) -> tuple[list[str], str]:
        quoted = {key: shlex.quote(value) for key, value in values.items()}
        quoted["FILES"] = " ".join(_formatted_path(self._files_format, path) for path in files)
        if self._template:
            return ["sh", "-c", _PLACEHOLDER.sub(lambda match: quoted[match[1]], self._template)], ""
        named = shlex.split(quoted["FILES"])
        bare = {**values, "FILES": " ".join(named)}
        words: list[str] = []
        for word in map(str, self._listed or ()):
            words += named if word == "{FILES}" else [_PLACEHOLDER.sub(lambda match: bare[match[1]], word)]
        placed = any(_PLACEHOLDER.search(str(word)) for word in self._listed or ())
        return words, "" if placed else values["PROMPT"]

    def _names(self, placeholder: str) -> bool:
        return f"{{{placeholder}}}" in (self._template or " ".join(map(str, self._listed or ())))

    def _text(self, finished: FinishedCommand, output: Path) -> str:
        """What the command wrote, with the line ends of Unix, as AgentV reads it."""
        if not self._names("OUTPUT_FILE"):
            return _read(finished.stdout.kept).rstrip("\r\n")
        try:
            return _read(output.read_bytes())
        except OSError as error:
            raise TargetError(f"the command wrote no output file: {error.strerror}") from None


def _read(written: bytes | bytearray) -> str:
    return written.decode(errors="replace").replace("\r\n", "\n")


def _formatted_path(format: str, path: str) -> str:
    """A file in a command line, in its `format`; `{path}` and `{basename}` are quoted for the shell."""
    values = {"path": shlex.quote(path), "basename": shlex.quote(Path(path).name)}
    return re.sub(r"\{(path|basename)\}", lambda match: values[match[1]], format)
