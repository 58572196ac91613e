"""The Ray cluster of a run: everything that uses Ray itself, which is imported here and only when it is needed."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from evalwright.errors import InputError
from evalwright.files.masker import Masker
from evalwright.model.plan import Executor, Placement
from evalwright.run.executors.host import Host
from evalwright.session import hidden
from evalwright.targets.portable import cluster_address

__all__ = ["Handle", "RayCluster", "reason_of", "secret_variables"]

_PATIENCE = 30.0
"""Seconds within which a cluster has to answer."""
_HEADLESS, _LOOK_AT_HEAD = 25.0, 5.0
"""Seconds without a head after which the cluster is given up, and seconds between checks."""
_SETTINGS = b"\0\0\0\4\0\0\0\0\0"
"""An empty frame of settings, with which both sides of an HTTP/2 connection begin (RFC 9113, 3.4)."""
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _SETTINGS
_LONGEST_START = 600.0
"""Seconds within which a folder can be sent."""
_FAREWELL = 5.0
"""Seconds that leaving the cluster may take; what is left then ends with this process."""
_NOT_SENT = (".env", ".env.*", ".git/", ".venv/", "__pycache__/")
"""Parts of the folder that are not sent; the variables of `.env` reach the workers separately."""
_CAUSES = (
    r"Worker exit detail: (.*)",
    r"(?s)runtime env failed to be created\.\s*(\S.*)",
    r"because (.*)",
    r"(?:^|\n)\S*(?:Error|Exception): (.*)",
)
"""Where Ray's messages, which have many lines, give the reason."""
_OTHER_VERSION = "Version mismatch"
"""Ray's words for a cluster with another Ray or Python."""
_LONGEST = 400

Handle = Any
"""One worker; its methods are those of `Host`, each with `.remote`."""


class RayCluster:
    """A connection to a cluster, from `open` to `close`."""

    def __init__(self, executor: Executor) -> None:
        self._executor, self._address = executor, cluster_address(executor)
        self._ray: Any = None
        self._head = ""
        self.machines: int = 1
        """The number of machines at the start."""
        self.room: str = ""
        """Their total resources, in words."""
        self._leaving, self._left = threading.Event(), threading.Event()

    async def open(self, folder: Path | None, left_out: list[str]) -> None:
        """Connect, or start a cluster; workers find a copy of `folder` as their working directory. Raises
        InputError."""
        where = self._address or "a Ray of this machine"
        await _answers(self._address)
        options = self._options(folder, left_out)
        joining: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # A daemon, because Ray may wait for minutes. In a thread, because in the main one Ray takes over SIGTERM; in a
        # permanent one, because what Ray starts ends with the thread that started it.
        threading.Thread(target=self._join, args=(options, joining), name="evalwright-ray", daemon=True).start()
        try:
            await asyncio.wait_for(joining, _LONGEST_START)
        except TimeoutError:
            raise InputError(f"{where} could not be joined within {_LONGEST_START:g} seconds") from None
        except (Exception, SystemExit) as error:
            maybe_tokens = self._address and _OTHER_VERSION not in str(error)
            hint = "; a cluster with tokens needs RAY_AUTH_MODE and RAY_AUTH_TOKEN" if maybe_tokens else ""
            raise InputError(f"{where} cannot be used: {type(error).__name__}: {_first(str(error))}{hint}") from error
        finally:
            _handle_again(signal.SIGTERM)

    def _options(self, folder: Path | None, left_out: list[str]) -> dict[str, Any]:
        environment = dict(self._executor.runtime_env)
        if "env_vars" in environment:
            environment["env_vars"] = _shared_out(environment["env_vars"])[0]
        if folder is not None:
            excludes = [*_NOT_SENT, *left_out, *environment.get("excludes", [])]
            environment |= {"working_dir": str(folder), "excludes": excludes}
        options = {"log_to_driver": False, "logging_level": "ERROR", "address": self._address or "local"}
        if self._address is None:
            options["include_dashboard"] = False
        return options | ({"runtime_env": environment} if environment else {})

    def _join(self, options: dict[str, Any], joining: asyncio.Future[None]) -> None:
        failure: BaseException | None = None
        ours = False
        try:
            self._ray = import_module("ray")
            if not self._ray.is_initialized():
                self._ray.init(**options)
                ours = True
            # Asked here, because each of these waits for a minute if the head is lost.
            self._head = str(self._ray.get_runtime_context().gcs_address)
            self.machines = sum(bool(node["Alive"]) for node in self._ray.nodes())
            self.room = _in_words(self._ray.cluster_resources())
        except BaseException as error:
            failure = error
        with suppress(RuntimeError):  # the run has ended meanwhile
            joining.get_loop().call_soon_threadsafe(_settle, joining, failure)
        if ours:
            self._leaving.wait()
            with suppress(Exception):
                self._ray.shutdown()
        self._left.set()

    async def lost_head(self) -> str:
        """Return, with the reason, once the cluster has had no head for so long that Ray would soon end this process.

        Ray does so a minute after losing the head, and would leave no record of why.
        """
        host, _, port = self._head.rpartition(":")
        seen = time.monotonic()
        while self._address is None or not host or time.monotonic() - seen < _HEADLESS:
            await asyncio.sleep(_LOOK_AT_HEAD)
            with suppress(OSError, TimeoutError):
                _, writer = await asyncio.wait_for(asyncio.open_connection(host.strip("[]"), int(port)), _LOOK_AT_HEAD)
                writer.close()
                seen = time.monotonic()
        return f"the head of the cluster, {self._head}, has not answered for {_HEADLESS:g} seconds"

    def start(self, placement: Placement) -> Handle:
        """Start a worker; it is ready when its first call answers."""
        wanted = {key: value for key, value in msgspec.structs.asdict(placement).items() if value and key != "actors"}
        if placement.num_cpus is not None:
            wanted["num_cpus"] = placement.num_cpus
        if "memory" in wanted:
            wanted["memory"] = int(wanted["memory"])
        # Spread: otherwise one machine with room for all would do all the work. Ray never restarts one by itself,
        # because a fresh process knows nothing about the system yet.
        kind = self._ray.remote(Host)
        return kind.options(
            name=None,
            scheduling_strategy="SPREAD",
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=10_000,
            **wanted,
        ).remote()

    def end(self, handle: Handle) -> None:
        """End a worker at once."""
        with suppress(Exception):
            self._ray.kill(handle, no_restart=True)

    async def close(self) -> None:
        """Leave the cluster; a cluster that the run started ends."""
        self._leaving.set()
        until = time.monotonic() + _FAREWELL
        while self._ray is not None and not self._left.is_set() and time.monotonic() < until:
            await asyncio.sleep(0.02)


def secret_variables(executor: Executor) -> dict[str, str]:
    """The executor's variables that contain secrets: workers get them from the run, so that Ray stores none."""
    return _shared_out(executor.runtime_env.get("env_vars") or {})[1]


def _shared_out(variables: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    mask = Masker(hidden()).mask_text
    settings = {str(name): str(value) for name, value in variables.items()}
    secret = {name: value for name, value in settings.items() if mask(value) != value}
    return {name: value for name, value in settings.items() if name not in secret}, secret


def _in_words(resources: Mapping[str, float]) -> str:
    words = [f"{value:g} {key}" for key, value in sorted(resources.items()) if ":" not in key and "memory" not in key]
    return ", ".join([*words, f"{resources.get('memory', 0) / 2**30:.1f} GiB of memory"])


def reason_of(error: BaseException) -> str:
    """Why a worker was lost, in one line of Ray's own words."""
    text = str(error)
    cause_found = next((match[1] for cause in _CAUSES if (match := re.search(cause, text))), text)
    return _first(cause_found)


def _first(text: str) -> str:
    return " ".join(text.split())[:_LONGEST] or "no reason given"


def _handle_again(number: int) -> None:
    """Put Python's handler of a signal back: Ray's library puts one before it, which prints a stack."""
    if threading.current_thread() is threading.main_thread() and (handler := signal.getsignal(number)) is not None:
        signal.signal(number, handler)


def _settle(joining: asyncio.Future[None], failure: BaseException | None) -> None:
    if joining.done():
        return
    if failure is None:
        joining.set_result(None)
    else:
        joining.set_exception(failure if isinstance(failure, Exception) else RuntimeError(str(failure)))


async def _answers(address: str | None) -> None:
    """Raise InputError unless a service like Ray answers: Ray itself would wait a minute, and then end the process."""
    host, colon, port = (address or "").removeprefix("ray://").rpartition(":")
    if not colon or not port.isdecimal() or os.environ.get("RAY_USE_TLS", "0") != "0":
        return
    try:
        async with asyncio.timeout(_PATIENCE):
            reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
            try:
                writer.write(_GREETING)
                greeted = await reader.readexactly(len(_SETTINGS))
            finally:
                writer.close()
    except TimeoutError:
        raise InputError(f"no Ray answers at {address} within {_PATIENCE:g} seconds") from None
    except (OSError, EOFError, OverflowError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
        raise InputError(f"no Ray answers at {address}: {why}") from None
    if greeted[3] != _SETTINGS[3]:
        raise InputError(f"no Ray answers at {address}, but another service")
