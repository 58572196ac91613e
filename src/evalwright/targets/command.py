"""A command as the system under test: targets `cli` and `subprocess`."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from typing import Any

from evalwright.errors import InputError, Problem, TargetError
from evalwright.files.key_paths import as_written, kind_in_words
from evalwright.files.plain import plain
from evalwright.model.plan import Variant
from evalwright.model.snapshot import Case
from evalwright.model.trace import Answer, Output
from evalwright.processes import CapturedOutput, FinishedCommand, run_command
from evalwright.session import session_path
from evalwright.session.workspace import workspace_path
from evalwright.targets.answer_parts import with_notes
from evalwright.targets.build import optional_parts
from evalwright.targets.templates import never_filled, template_of

__all__ = ["WORKSPACE", "Command"]

WORKSPACE = "EVALWRIGHT_WORKSPACE"
"""The environment variable with the folder of the cell."""

_STDERR_TAIL = 2_000
"""Characters of stderr in the error of a failed command."""


_KEYS = ("command", "cwd", "env", "stdin_template", "parse_stdout_as")


class Command:
    """A command, run once per cell without a shell; its standard output is the answer.

    `command` is a list of the program and its arguments. `env` is the complete environment: nothing is inherited, not
    even PATH. `cwd` is relative to the suite's folder if it exists there, else to the working directory. In a run with
    workspaces, the command runs in the workspace unless there is a `cwd`, and EVALWRIGHT_WORKSPACE names it.
    `stdin_template` is filled in from the case. With `parse_stdout_as: json`, an object is the structured answer, and
    its `final_answer` and `thinking` are used if they are strings.
    """

    config_keys: tuple[str, ...] = _KEYS
    template_keys: tuple[str, ...] = ("stdin_template",)
    working_folder_key: str = "cwd"

    def __init__(self, variant: Variant) -> None:
        config = variant.config
        problems = [Problem(file="", key=key, message=message) for key, message in _mistakes(config)]
        template = config.get("stdin_template") or ""
        stdin = template_of(template, "stdin_template", variant, problems) if isinstance(template, str) else None
        problems += never_filled(variant, ("command", "cwd", "env"), "stdin_template")
        if problems or stdin is None:
            raise InputError(problems)
        self._command: list[str] = config["command"]
        self._cwd: str | None = config.get("cwd") or None
        self._env: dict[str, str] = config.get("env") or {}
        self._stdin = stdin
        self._evalh_rules, self._optional = variant.evalh_rules, optional_parts(config)
        self._as_json = config.get("parse_stdout_as") == "json"

    async def run(self, case: Case, trial: int) -> Answer:
        # JSON may contain half of a surrogate pair, which UTF-8 cannot encode.
        stdin = self._stdin.render(case).encode(errors="replace")
        try:
            cwd, env = self._surroundings()
            finished = await run_command(self._command, env=env, cwd=cwd, stdin=stdin)
        except OSError as error:
            raise TargetError(self._not_started(error)) from None
        if finished.exit_code != 0:
            raise TargetError(_failure(finished))
        return self._answer(finished)

    def _surroundings(self) -> tuple[str, dict[str, str]]:
        """Folder and environment of one call: the configured ones, and the cell's workspace if there is one."""
        path = workspace_path()
        if path is None:
            return self._cwd or session_path(), self._env
        return self._cwd or str(path), {WORKSPACE: str(path), **self._env}

    def _not_started(self, error: OSError) -> str:
        program = self._command[0]
        # Python reports a missing `cwd` like a missing program; only the file name tells them apart.
        if self._cwd is not None and error.filename == self._cwd:
            return f"cannot enter the folder {self._cwd!r} of 'cwd': {error.strerror}"
        if error.errno == errno.ENOENT:
            if "/" in program:
                return f"command not found: {program!r} (or the interpreter that its first line names)"
            return f"command not found: {program!r} in {os.pathsep.join(os.get_exec_path(self._env))}"
        if error.errno == errno.EACCES:
            return f"command {program!r} is not executable"
        return f"cannot start command {program!r}: {error.strerror or error}"

    def _answer(self, finished: FinishedCommand) -> Answer:
        notes: list[str] = []
        stderr = _text(finished.stderr, "stderr", notes)
        if self._as_json:
            output = _structured_output(finished.stdout, notes, self._evalh_rules)
            if output.final_answer is None and not self._evalh_rules and "final_answer" not in self._optional:
                raise TargetError(_without_answer(finished.stdout))
        else:
            # The line end that `print` adds is not part of the answer: an exact match would always fail.
            output = Output(final_answer=_text(finished.stdout, "stdout", notes).rstrip("\r\n"))
        extra: dict[str, Any] = {"stderr": stderr} if stderr else {}
        streams = {"stdout": finished.stdout, "stderr": finished.stderr}
        if cut := {name: _sizes(stream) for name, stream in streams.items() if stream.cut}:
            extra["truncated"] = cut
        answer = Answer(output=output, extra=extra)
        if notes:
            with_notes(answer, notes)
        return answer


def _mistakes(config: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Each mistake in the configuration, as its key and what was expected."""
    command = config.get("command")
    if not isinstance(command, list) or not command or not all(map(_is_text, command)) or not command[0]:
        yield (
            "command",
            f"'command' must be a list of strings, the program first, found {as_written(command, nothing='nothing')}",
        )
    if not _is_text(config.get("cwd") or ""):
        yield "cwd", f"'cwd' must be the path of a folder, found {as_written(config['cwd'])}"
    yield from _environment_mistakes(config.get("env"))
    if not isinstance(config.get("stdin_template") or "", str):
        yield "stdin_template", f"'stdin_template' must be a string, found {as_written(config['stdin_template'])}"
    if config.get("parse_stdout_as", "text") not in ("text", "json"):
        yield (
            "parse_stdout_as",
            f"'parse_stdout_as' must be text or json, found {as_written(config['parse_stdout_as'])}",
        )


def _environment_mistakes(env: Any) -> Iterator[tuple[str, str]]:
    if env is None:
        return
    if not isinstance(env, dict):
        yield "env", f"'env' must be a mapping of names to strings, found {kind_in_words(env)}"
        return
    for name, value in env.items():
        if not _is_text(name) or not name or "=" in name:
            yield "env", f"'env' has the name {name!r}: expected a string that is not empty and has no '='"
        elif not _is_text(value):
            yield f"env.{name}", f"'env': {name} must be a string (quote it), found {kind_in_words(value)}"


def _is_text(value: Any) -> bool:
    """Whether the operating system accepts it as an argument, in which NUL ends a string."""
    return isinstance(value, str) and "\0" not in value


def _failure(finished: FinishedCommand) -> str:
    # The end rather than the start: programs print last what ended them.
    stderr = finished.stderr.last.decode(errors="replace").strip()[-_STDERR_TAIL:]
    return f"the command ended with {finished.how()}" + (f"; stderr: {stderr}" if stderr else " and an empty stderr")


def _text(stream: CapturedOutput, name: str, notes: list[str]) -> str:
    output = stream.kept
    try:
        return output.decode()
    except UnicodeDecodeError as error:
        # If the output was cut, half a character at its end is our doing.
        if not (stream.cut and error.reason == "unexpected end of data"):
            notes.append(f"{name}: bytes that are not UTF-8 replaced by U+FFFD")
        return output.decode(errors="replace")


def _structured_output(stream: CapturedOutput, notes: list[str], texts_only: bool) -> Output:
    if stream.cut:
        raise TargetError(f"stdout has {stream.size} bytes, too many to read as JSON (limit {len(stream.kept)})")
    try:
        parsed = json.loads(_text(stream, "stdout", notes))
    except (ValueError, RecursionError) as error:
        raise TargetError(f"stdout is not valid JSON: {error}") from None
    structured = plain(parsed if isinstance(parsed, dict) else {"value": parsed}, "structured", notes)
    if not isinstance(parsed, dict):
        return Output(final_answer=None if texts_only else _only_text(parsed), structured=structured)
    answer = structured.get("final_answer")
    if isinstance(answer, (bool, int, float)) and not texts_only:
        answer = json.dumps(answer)
    return Output(
        final_answer=_only_text(answer),
        thinking=_only_text(structured.get("thinking")),
        structured=structured,
    )


def _without_answer(stdout: CapturedOutput) -> str:
    return (
        "no answer: stdout is JSON, but no object with 'final_answer' "
        f"(allow_missing: [final_answer] if it may be absent): {stdout.kept.decode(errors='replace').strip()[:300]}"
    )


def _only_text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _sizes(stream: CapturedOutput) -> dict[str, int]:
    return {"bytes": stream.size, "kept": len(stream.kept)}
