"""A server for the viewer: where it listens, what it prints, how it ends."""

from __future__ import annotations

import errno
import secrets
import socket
import sys
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from evalwright.errors import InputError

if TYPE_CHECKING:
    from evalwright.cli.viewed_runs import StoredRun

__all__ = ["needs_view", "serve_viewer"]

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_TRIES = 50
_SECONDS_TO_END = 0.5
_WAITING = 128
"""Connections that may wait; a browser opens six at most."""


def needs_view() -> None:
    """Raises InputError if the packages of the viewer are not installed."""
    try:
        import starlette
        import uvicorn
    except ImportError as error:
        raise InputError(f"the viewer needs the package {error.name}: pip install 'evalwright[view]'") from error
    del starlette, uvicorn


def serve_viewer(
    places: Sequence[Path],
    port: int,
    host: str,
    *,
    open_browser: bool,
    labels: bool,
    labeller: str | None,
    token: str | None,
    no_token: bool,
    cell: str | None,
    compare: Path | None = None,
) -> int:
    """Serve until Ctrl-C. Raises InputError for places without runs, and if the address cannot be used."""
    from evalwright.cli.viewed_runs import runs_at, usual_places
    from evalwright.viewer.access import Access
    from evalwright.viewer.app import viewer

    if not host:  # of a variable that is not set, it would be every address of the machine
        raise InputError("--host: expected an address, found nothing")
    if token == "":  # as the host
        raise InputError("--token: expected a text, found nothing")
    if no_token and (token is not None or host not in _LOOPBACK):
        why = "with --token" if token is not None else f"on {host}: other machines could read everything"
        raise InputError(f"--no-token cannot be used {why}")
    chosen = list(places) or usual_places()
    runs = list(runs_at(chosen))
    earlier: list[StoredRun] = []
    if compare is not None:
        chosen.append(compare)
        earlier = list(runs_at(chosen))[len(runs) :]
        if len(earlier) != 1 or len(runs) != 1:
            raise InputError("--compare needs one RUN and one other, earlier run")
    page = _page(runs, len(places), cell, earlier)
    with ExitStack() as stack:
        listening = _listening(host, port)
        for server in listening:
            stack.enter_context(server)
        bound = listening[0].getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        access = Access(
            token=None if no_token else token or secrets.token_hex(16),
            hosts=tuple(f"{name}:{bound}" for name in dict.fromkeys(("127.0.0.1", "localhost", "[::1]", shown))),
            port=bound,
        )
        if host not in _LOOPBACK:
            print("warning: the pages are sent to other machines unencrypted", file=sys.stderr)
        app = viewer(lambda: runs_at(chosen), access, labels=labels, labeller=labeller or _user())
        address = f"http://{shown}:{bound}{page}"
        if access.token is not None:
            address += f"{'&' if '?' in address else '?'}{urlencode({'token': access.token})}"
        print(address, flush=True)
        if open_browser and sys.stdout.isatty():
            import webbrowser

            webbrowser.open(address)
        _run(app, listening)
    return 0


def _user() -> str:
    """The user's name on this system: nothing else about a person is stored in labels."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container may run as a user without a name
        return "unknown"


def _page(stored_runs: Sequence[StoredRun], places: int, cell: str | None, earlier: Sequence[StoredRun]) -> str:
    """The page to open first: a single run's own, or the list."""
    if earlier:
        if cell is not None:
            raise InputError("--cell and --compare open different pages: leave one of them out")
        return f"/compare?{urlencode({'a': earlier[0].id, 'b': stored_runs[0].id})}"
    if places != 1 or len(stored_runs) != 1:
        if cell is not None:
            raise InputError("--cell needs one RUN")
        return "/"

    if cell is not None:
        _check_case(stored_runs[0], cell)
    run = quote(stored_runs[0].id, safe="")
    return f"/runs/{run}" if cell is None else f"/runs/{run}/cells?{urlencode({'case': cell})}"


def _check_case(stored_run: StoredRun, case: str) -> None:
    """Raise InputError if the run has no such case."""
    from evalwright.cli.named_cases import has_case, unknown_case

    reader, plan = stored_run.open()
    with closing(reader):
        if not has_case(reader, plan, case):
            raise InputError(f"--cell: {unknown_case(reader, case)}")


def _listening(host: str, port: int) -> list[socket.socket]:
    """Sockets listening on the port, or on the next free one: at 127.0.0.1 also at ::1, which `localhost` may be."""
    for number in range(port, port + (_TRIES if port else 1)):
        try:
            server = _bound(host, number)
        except OSError as error:
            if error.errno == errno.EADDRINUSE and number < 65535:
                continue
            raise InputError(f"cannot listen on {host}:{number}: {error.strerror or error}") from error
        except OverflowError:
            break
        if host != "127.0.0.1":
            return [server]
        try:
            return [server, _bound("::1", server.getsockname()[1])]
        except OSError:  # a machine without IPv6, or another program that only listens there
            return [server]
    raise InputError(f"no free port from {port} on")


def _bound(host: str, port: int) -> socket.socket:
    """A socket that listens there. Raises OSError and OverflowError."""
    server = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((host, port))
        server.listen(_WAITING)
    except (OSError, OverflowError):
        server.close()
        raise
    return server


def _run(app: object, listening: Sequence[socket.socket]) -> None:
    import asyncio
    import signal

    import uvicorn

    config = uvicorn.Config(
        app,  # type: ignore[arg-type]
        log_level="critical",
        access_log=False,
        server_header=False,
        date_header=False,
        lifespan="off",
        ws="none",
        http="h11",
        loop="asyncio",
        limit_concurrency=1000,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=0,
        h11_max_incomplete_event_size=32 * 1024,
    )
    server = uvicorn.Server(config)

    async def serve() -> None:
        loop = asyncio.get_running_loop()

        def stop() -> None:
            server.should_exit = server.force_exit = True

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop)
        await server._serve([*listening])

    # uvicorn's own `serve` raises the signal again once it has ended, but Ctrl-C is the normal end of this command
    asyncio.run(serve())
    _leave_unfinished_pages()


def _leave_unfinished_pages() -> None:
    """End the process while a thread still makes the page of a large run: Python would wait for that thread.

    Nothing is lost: a label is on disk before the browser gets the page.
    """
    import posix  # While a session is open, `os._exit` is replaced so that code of users cannot call it.
    import threading

    threads = [
        thread for thread in threading.enumerate() if not thread.daemon and thread is not threading.main_thread()
    ]
    for thread in threads:
        thread.join(_SECONDS_TO_END / len(threads))
    if any(thread.is_alive() for thread in threads):
        sys.stdout.flush()
        posix._exit(0)
