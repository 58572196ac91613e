"""The process that `warm` forks commands from: it has imported what commands import, runs one thread and opens nothing.

Each request on the socket is one byte with five descriptors: the request as a file, the command's streams, and a
socket that is told how the command ended. The child leaves the loop and runs the command as `python` would. It ends as
a process does: with its threads joined, its exit handlers called, what it has made let go and its streams flushed.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import itertools
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import sys
import threading
import time
import types
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

import unsynced

LEFT_OUT = (
    "evalwright.__main__",
    "evalwright.cli.starter",  # files for users
    "evalwright.demo.suite",
    "evalwright.letta",  # the faces stand in for packages when they are imported
    "evalwright.northstar",
    "evalwright.pixie",
    "evalwright.pytest_plugin",  # pytest wants to rewrite its assertions
    "evalwright.pytest_runs",
)


def import_what_commands_import() -> None:
    import evalwright

    loaded = {"anthropic", "openai", "opentelemetry"} - sys.modules.keys()
    for module in pkgutil.walk_packages(evalwright.__path__, "evalwright."):
        if not module.name.startswith(LEFT_OUT):
            importlib.import_module(module.name)
    for record in records():
        with contextlib.suppress(NameError, TypeError):  # those that are never read name types for the reader only
            msgspec.json.Decoder(record)  # msgspec looks at the fields of a record once in a process
    if heavy := loaded & sys.modules.keys():  # a run looks whether a program has loaded them
        raise AssertionError(f"importing the package imports {', '.join(sorted(heavy))}")


def records() -> list[type[msgspec.Struct]]:
    subclasses = list(msgspec.Struct.__subclasses__())
    for record in subclasses:
        subclasses += record.__subclasses__()
    return [record for record in subclasses if record.__module__.startswith("evalwright.")]


def import_what_pytest_imports() -> None:
    """Without plug-ins, which pytest wants to import itself."""
    from _pytest.config import default_plugins

    for name in default_plugins:
        importlib.import_module(f"_pytest.{name}")


def serve(control: socket.socket) -> dict[str, Any]:
    """Fork for each request until the other side is gone; in a child, what it is to do."""
    awake, waker = socket.socketpair()
    for end in (awake, waker):
        end.setblocking(False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
    running: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([control, awake], [], [])
        if awake in ready:
            awake.recv(4096)
            _tell_the_ended(running)
        if control in ready:
            said, descriptors, _, _ = socket.recv_fds(control, 1, 5)
            if not said:
                for pid in running:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(pid, signal.SIGKILL)
                sys.exit()
            request, *streams, status = descriptors
            child = os.fork()
            if child == 0:
                signal.set_wakeup_fd(-1)
                for end in (control, awake, waker, *running.values()):
                    end.close()
                os.close(status)
                return _become(request, streams)
            for descriptor in (request, *streams):
                os.close(descriptor)
            running[child] = socket.socket(fileno=status)
            running[child].send(f"{child}\n".encode())


def _tell_the_ended(running: dict[int, socket.socket]) -> None:
    while running:
        pid, status, used = os.wait4(-1, os.WNOHANG)
        if not pid:
            return
        with running.pop(pid) as end, contextlib.suppress(OSError):  # perhaps nobody waits any more
            end.send(f"{os.waitstatus_to_exitcode(status)} {used.ru_utime + used.ru_stime}\n".encode())


def _become(request: int, streams: list[int]) -> dict[str, Any]:
    """Make this child the process that was asked for."""
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    with open(request) as file:
        asked: dict[str, Any] = json.load(file)
    os.setpgid(0, 0)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    time.tzset()
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    return asked


def run(words: list[str]) -> None:
    """What `python WORDS` does, for `-m MODULE`, `-c PROGRAM` and a file."""
    kind, rest = words[0], words[1:]
    sys.orig_argv[1:] = words
    sys.path[:0] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    if kind == "-m":
        sys.path.insert(0, str(Path.cwd()))
        sys.argv[:] = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        sys.path.insert(0, "")
        sys.argv[:] = ["-c", *rest[1:]]
        sys.modules["__main__"] = program = types.ModuleType("__main__")
        exec(compile(rest[0], "<string>", "exec"), program.__dict__)  # noqa: S102 - the program of a test
    else:
        sys.path.insert(0, str(Path(kind).absolute().parent))
        sys.argv[:] = words
        runpy.run_path(kind, run_name="__main__")


def _newest_first(imported: dict[str, types.ModuleType]) -> list[tuple[str, types.ModuleType]]:
    """The modules that this child has loaded. To look at all of the parent's would copy the page of each."""
    loaded = itertools.takewhile(lambda item: imported.get(item[0]) is not item[1], reversed(sys.modules.items()))
    main = sys.modules["__main__"]
    return [*loaded, *([("__main__", main)] if main is not imported["__main__"] else [])]


def end(code: int, imported: dict[str, types.ModuleType]) -> None:
    """What an interpreter does at its end, but for letting go what the parent had imported: every page of it would be
    copied for this child, which takes ten times as long as all else.
    """
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for name, module in _newest_first(imported):
        vars(module).clear()  # `collect` would close files before all is written
        del sys.modules[name]
    gc.collect()
    with contextlib.suppress(OSError):  # the interpreter tells it, and ends with a code of its own
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    del sys.path[0]  # the folder of the tests
    added = [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder in sys.path]
    import_what_commands_import()
    import_what_pytest_imports()
    gc.collect()
    gc.freeze()
    gc.get_freeze_count = partial(int, gc.get_freeze_count())  # a run asks, and counting takes as long as half a run
    for folder in added:
        sys.path.remove(folder)  # each child has its own
    os.fsync = unsynced.fsync
    imported = dict(sys.modules)
    asked = serve(socket.socket(fileno=int(sys.argv[1])))
    try:
        run(asked["words"])
        code: object = 0
    except SystemExit as ending:
        if not isinstance(code := ending.code or 0, int):
            raise
    end(code & 0xFF, imported)
    sys.exit(code)
