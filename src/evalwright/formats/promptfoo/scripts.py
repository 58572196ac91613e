"""Scripts of a configuration: JavaScript in Node; Python in the sandbox or, from files, in this process.

Checks and transforms run with the isolation of code evaluators; parts of the system under test (providers, functions of
prompts and variables, generators of tests) run as the programs that they are.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from evalwright.errors import EvaluatorError, InputError, Problem, TargetError
from evalwright.files.boundary import Boundary
from evalwright.files.plain import plain
from evalwright.formats.promptfoo.faults import ScriptError
from evalwright.formats.promptfoo.sources import split_function
from evalwright.formats.promptfoo.values import as_javascript, json_parse, shown_text, template_text
from evalwright.session import environment, import_from
from evalwright.session.imports import executes_code, module_at
from evalwright.targets.threads import Threads

__all__ = [
    "Generated",
    "call_file",
    "call_hook",
    "called",
    "evaluated_file",
    "generated_tests",
    "javascript_body",
    "needs_node",
    "provide",
    "python_function",
    "run_javascript",
    "run_python",
    "simple_path",
]

LIMIT = 30.0
"""Seconds for one call of a check or a transform."""
LONGEST = 600.0
"""Seconds for a provider, which is really limited by the cell's time."""
_DECLARATION = re.compile(r"^(const|let|var)\s")
_NAMED = re.compile(r"[A-Za-z_$][\w$]*(?:\??\.[A-Za-z_$][\w$]*|(?:\?\.)?\[(?:\d+|'[^'\\]*'|\"[^\"\\]*\")\])*;?")
_PARSED = re.compile(r"JSON\.parse\(\s*output\s*\)")
_STEP = re.compile(r"\??\.([A-Za-z_$][\w$]*)|(?:\?\.)?\[(?:(\d+)|'([^'\\]*)'|\"([^\"\\]*)\")\]")
_NO_VALUE = object()
_threads = Threads()
"""Idle threads, which any run may use."""
_turn = asyncio.Lock()
"""Held by the hook in JavaScript that is being called."""


class Generated(NamedTuple):
    """What a generator of tests returned."""

    tests: Any


def javascript_body(code: str) -> str:
    """The body of a function for the code of a check: a single line is an expression, or ends with one; several are
    taken as they are."""
    code = code.rstrip()
    if "\n" in code:
        return code
    code = code.strip().rstrip(";").rstrip()
    if not _DECLARATION.match(code):
        return f"return {code}"
    *before, last = _statements(code)
    return ";".join([*before, f" return {last.strip()}"])


def _statements(line: str) -> list[str]:
    """The statements of a line, separated at semicolons outside strings and brackets."""
    pieces, depth, quote, start = [], 0, "", 0
    i = 0
    while i < len(line):
        sign = line[i]
        if quote:
            if sign == "\\":
                i += 1
            elif sign == quote:
                quote = ""
        elif sign in "'\"`":
            quote = sign
        elif sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth -= 1
        elif sign == ";" and depth == 0:
            pieces.append(line[start:i])
            start = i + 1
        i += 1
    return [piece for piece in [*pieces, line[start:]] if piece.strip()]


def needs_node(code: str) -> bool:
    """Whether an expression is more than a path to a value."""
    return _path_of(code) is None


def simple_path(code: str, names: Mapping[str, Any]) -> tuple[bool, Any]:
    """Whether an expression is only a path to a value, and that value."""
    steps = _path_of(code)
    if steps is None or steps[0] not in names:
        return False, None
    value, parsed = names[steps[0]], steps[1] == [_NO_VALUE]
    if parsed or steps[1][:1] == [_NO_VALUE]:
        try:
            value = json_parse(template_text(value) if isinstance(value, (dict, list)) else shown_text(value))
        except (TypeError, ValueError, RecursionError) as error:
            raise ScriptError(f"SyntaxError: {error}") from None
    for step in steps[1]:
        if step is not _NO_VALUE:
            value = _member(value, step)
    return True, value


def _path_of(code: str) -> tuple[str, list[Any]] | None:
    code = code.strip().removesuffix(";")
    parsed = _PARSED.match(code)
    rest = "output" + code[parsed.end() :] if parsed else code
    if not _NAMED.fullmatch(rest):
        return None
    name = re.match(r"[\w$]+", rest)
    assert name is not None
    steps: list[Any] = [int(m[2]) if m[2] else m[1] or m[3] or m[4] or "" for m in _STEP.finditer(rest, name.end())]
    if "length" in steps:
        return None
    return name[0], [_NO_VALUE, *steps] if parsed else steps


def _member(value: Any, step: Any) -> Any:
    if isinstance(value, dict):
        return value.get(str(step))
    if isinstance(value, (list, str)) and isinstance(step, int):
        return value[step] if step < len(value) else None
    if value is None:
        raise ScriptError(f"TypeError: Cannot read properties of null (reading {str(step)!r})")
    return None


@lru_cache(64)
def _walled(folder: str) -> tuple[str, ...]:
    from evalwright.sandbox.workers import script_command

    return tuple(script_command(folder, str(Boundary(Path(folder)).root)))


async def _asked(folder: str, request: dict[str, Any], seconds: float, *, walled: bool) -> Any:
    return _value_in(await _replied(folder, request, seconds, walled=walled))


async def _replied(
    folder: str, request: dict[str, Any], seconds: float, *, walled: bool, kept_for: str = ""
) -> Mapping[str, Any]:
    from evalwright.sandbox.workers import ask_worker, script_command

    request = {**request, "seconds": seconds}
    try:
        if walled:
            return await ask_worker(list(_walled(folder)), request, on_stdio=True)
        command = script_command(folder)
        known = environment()
        return await ask_worker(command, request, on_stdio=True, environment=known, folder=folder, kept_for=kept_for)
    except EvaluatorError as error:
        raise ScriptError(str(error), error.type) from None


def _value_in(reply: Mapping[str, Any]) -> Any:
    if "error" in reply:
        raise ScriptError(str(reply.get("message")), str(reply["error"]))
    return as_javascript(reply.get("value"))


async def run_javascript(folder: str, body: str, arguments: Mapping[str, Any]) -> Any:
    """What the body of a function in JavaScript returns. Raises ScriptError."""
    request = {
        "code": body,
        "names": list(arguments),
        "arguments": list(arguments.values()),
        "living": True,
    }
    return await _asked(folder, request, LIMIT, walled=True)


async def run_python(code: str, arguments: Mapping[str, Any]) -> Any:
    """The value of a piece of Python, run in the sandbox: an expression or, with line breaks, the body of a function.

    Raises ScriptError.
    """
    from evalwright.sandbox.workers import ask_worker, python_command

    lines = code.split("\n") if "\n" in code else [f"return {code}"]
    body = "\n".join(f"    {line}" for line in lines)
    script = f"import json\ndef validate({', '.join(arguments)}):\n{body}\n"
    request = {"code": script, "arguments": list(arguments.values()), "seconds": LIMIT}
    try:
        compile(script, "<code>", "exec")
    except (SyntaxError, ValueError) as error:
        raise ScriptError(f"{type(error).__name__}: {error}", "unusable") from None
    try:
        return _value_in(await ask_worker(python_command(), request))
    except EvaluatorError as error:
        raise ScriptError(str(error), error.type) from None


async def call_file(
    folder: str,
    named: str,
    default: str,
    arguments: Sequence[Any],
    *,
    walled: bool = True,
    data: bool = False,
) -> Any:
    """What a function in a file returns: `file://f.js[:name]`, or `file://f.py[:name]`. Raises ScriptError; with `data`
    also if the value of JavaScript contains functions."""
    path, name = split_function(named)
    file = Path(folder, path)
    if file.suffix == ".py":
        return as_javascript(await called(python_function(file, name or default), arguments, _threads))
    request = {
        "file": str(file.resolve()),
        "name": name,
        "arguments": list(arguments),
        "living": walled,
        "data": data,
    }
    return await _asked(folder, request, LIMIT if walled else LONGEST, walled=walled)


async def call_hook(
    folder: str,
    named: str,
    arguments: Sequence[Any],
    seconds: float,
    *,
    silent: bool = False,
    variables: dict[str, str] | None = None,
) -> Any:
    """What a function of an extension returns; with `silent` only that it returned. Raises ScriptError.

    What JavaScript's hooks remember they share, as in the original, where they run in one process. What they set in
    `process.env` is added to `variables`.
    """
    path, name = split_function(named)
    file = Path(folder, path)
    if file.suffix == ".py":
        try:
            async with asyncio.timeout(seconds):
                return _json_data(await called(python_function(file, name), arguments, _threads))
        except TimeoutError:
            raise ScriptError(f"took more than {seconds:g} s and was abandoned", "timeout") from None
    request = {
        "file": str(file.resolve()),
        "name": name,
        "arguments": list(arguments),
        "or_whole": True,
        "silent": silent,
        "variables": variables is not None,
    }
    work = _in_turn(_replied(folder, request, seconds, walled=False, kept_for="hooks"))
    reply = await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, _loop_of_hooks()))
    value = _value_in(reply)
    if variables is not None:
        variables |= reply.get("variables") or {}
    return value


def _json_data(value: Any) -> Any:
    """Data that a function of Python returned. Raises ScriptError for what JSON cannot express."""
    notes: list[str] = []
    try:
        found = as_javascript(plain(value, "context", notes))
    except TargetError as error:
        raise ScriptError(str(error)) from None
    if notes:
        raise ScriptError(f"it returned what JSON cannot express: {notes[0].partition(', ')[0]}")
    return found


async def _in_turn(work: Coroutine[Any, Any, Any]) -> Any:
    async with _turn:
        return await work


@cache
def _loop_of_hooks() -> asyncio.AbstractEventLoop:
    """Hooks are called from several event loops, one after the other; a daemon runs this one, as `Threads` does."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="hooks", daemon=True).start()
    return loop


async def provide(folder: str, file: str, name: str, options: Mapping[str, Any], arguments: Sequence[Any]) -> Any:
    """What a provider in a JavaScript file returns. Raises ScriptError."""
    request = {
        "file": str(Path(folder, file).resolve()),
        "name": name,
        "options": dict(options),
        "arguments": list(arguments),
    }
    return await _asked(folder, request, LONGEST, walled=False)


async def called(function: Callable[..., Any], arguments: Sequence[Any], threads: Threads) -> Any:
    """What a user's function returns, awaited, or called in a thread. Raises ScriptError."""
    from evalwright.targets.failures import located

    try:
        return await threads.result_of(function, *arguments)
    except (Exception, SystemExit) as error:
        raise ScriptError(located(error)) from error


def python_function(file: Path, name: str) -> Callable[..., Any]:
    """The function in a user's file, which is executed once. Raises ScriptError (unusable)."""
    import_from([str(file.resolve().parent)])
    try:
        module = module_at(file)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # users' modules may call `sys.exit`
        message = f"{file.name} cannot be imported: {type(error).__name__}: {error}"
        raise ScriptError(message, "unusable") from error
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise ScriptError(f"{file.name} has no function {name!r}", "unusable")
    return found  # type: ignore[no-any-return]


def evaluated_file(path: Path, folder: Path) -> Any:
    """What a configuration in JavaScript exports. Raises InputError, also if nothing may be executed."""
    if not executes_code():
        raise InputError(Problem(str(path), "is a program, which was not executed: --import executes it", absent=True))
    from evalwright.sandbox.workers import awaited_now

    try:
        return awaited_now(call_file(str(folder), path.name, "", [], walled=False, data=True))
    except ScriptError as error:
        raise InputError(Problem(str(path), str(error))) from None


def generated_tests(path: Path, function: str, config: Any, folder: Path) -> Generated | str | None:
    """The tests that a function makes; a string that says what went wrong; None if nothing may be executed."""
    if not executes_code():
        return None
    named = f"{path}:{function}" if function else str(path)
    arguments = [] if config is None else [config]
    from evalwright.sandbox.workers import awaited_now

    try:
        return Generated(
            awaited_now(call_file(str(folder), named, "generate_tests", arguments, walled=False, data=True))
        )
    except ScriptError as error:
        return f"{path.name} made no tests: {error}"
