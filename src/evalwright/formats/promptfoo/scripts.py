"""Scripts of a configuration: JavaScript in Node; Python in the sandbox or, from files, in this process.

Checks and transforms run with the isolation of code evaluators; parts of the system under test (providers, functions of
prompts and variables, generators of tests) run as the programs that they are.
"""

from __future__ import annotations

import asyncio
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
from evalwright.formats.promptfoo.values import as_javascript
from evalwright.session import environment, import_from, returning
from evalwright.session.imports import NotExecutedError, executes_code, module_at
from evalwright.targets.threads import Threads

__all__ = [
    "Generated",
    "call_file",
    "call_hook",
    "called",
    "evaluated_file",
    "generated_tests",
    "provide",
    "python_function",
    "run_javascript",
    "run_python",
]

LIMIT = 30.0
"""Seconds for one call of a check or a transform."""
LONGEST = 600.0
"""Seconds for a provider, which is really limited by the cell's time."""
_threads = Threads()
"""Idle threads, which any run may use."""
_turn = asyncio.Lock()
"""Held by the hook in JavaScript that is being called."""


class Generated(NamedTuple):
    """What a generator of tests returned."""

    tests: Any


@lru_cache(64)
def _walled_command(folder: str) -> tuple[str, ...]:
    from evalwright.sandbox.workers import script_command

    return tuple(script_command(folder, str(Boundary(Path(folder)).root)))


async def _worker_reply(folder: str, request: dict[str, Any], seconds: float, *, walled: bool) -> Any:
    return _value_in(await _checked_reply(folder, request, seconds, walled=walled))


async def _checked_reply(
    folder: str, request: dict[str, Any], seconds: float, *, walled: bool, kept_for: str = ""
) -> Mapping[str, Any]:
    from evalwright.sandbox.workers import call_worker, script_command

    request = {**request, "seconds": seconds}
    try:
        if walled:
            return await call_worker(list(_walled_command(folder)), request, on_stdio=True)
        command = script_command(folder)
        known = environment()
        return await call_worker(command, request, on_stdio=True, environment=known, folder=folder, kept_for=kept_for)
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
    return await _worker_reply(folder, request, LIMIT, walled=True)


async def run_python(code: str, arguments: Mapping[str, Any]) -> Any:
    """The value of a piece of Python, run in the sandbox: an expression or, with line breaks, the body of a function.

    Raises ScriptError.
    """
    from evalwright.sandbox.workers import call_worker, python_command

    lines = code.split("\n") if "\n" in code else [f"return {code}"]
    body = "\n".join(f"    {line}" for line in lines)
    script = f"import json\ndef validate({', '.join(arguments)}):\n{body}\n"
    request = {"code": script, "arguments": list(arguments.values()), "seconds": LIMIT}
    try:
        compile(script, "<code>", "exec")
    except (SyntaxError, ValueError) as error:
        raise ScriptError(f"{type(error).__name__}: {error}", "unusable") from None
    try:
        return _value_in(await call_worker(python_command(), request))
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
    return await _worker_reply(folder, request, LIMIT if walled else LONGEST, walled=walled)


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
    work = _in_turn(_checked_reply(folder, request, seconds, walled=False, kept_for="hooks"))
    reply = await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, _loop_of_hooks()))
    value = _value_in(reply)
    if variables is not None:
        variables |= reply.get("variables") or {}
    return value


def _json_data(value: Any) -> Any:
    """Data that a function of Python returned. Raises ScriptError for what JSON cannot express."""
    notes: list[str] = []
    try:
        script_context = as_javascript(plain(value, "context", notes))
    except TargetError as error:
        raise ScriptError(str(error)) from None
    if notes:
        raise ScriptError(f"it returned what JSON cannot express: {notes[0].partition(', ')[0]}")
    return script_context


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
    return await _worker_reply(folder, request, LONGEST, walled=False)


async def called(function: Callable[..., Any], arguments: Sequence[Any], threads: Threads) -> Any:
    """What a user's function returns, awaited, or called in a thread. Raises ScriptError."""
    from evalwright.targets.failures import located

    try:
        with returning():  # some functions are called while the suite is read
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
    function: Any = module
    for part in name.split("."):
        function = getattr(function, part, None)
    if not callable(function):
        raise ScriptError(f"{file.name} has no function {name!r}", "unusable")
    return function  # type: ignore[no-any-return]


def evaluated_file(path: Path, folder: Path) -> Any:
    """What a configuration in JavaScript exports. Raises InputError, NotExecutedError if nothing may be executed."""
    if not executes_code():
        problem = Problem(str(path), "is a program, which was not executed: --import executes it", absent=True)
        raise NotExecutedError(problem)
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
