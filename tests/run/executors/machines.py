"""Machines of a Ray cluster, played by two or three `ray start` on this one, each ended by its process id."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

_PATIENCE = 120.0
_SMALL = ["--num-cpus=1", f"--object-store-memory={80 << 20}", "--disable-usage-stats", "--block"]


class Machines:
    """A cluster from the start of its first machine to `end`."""

    def __init__(self) -> None:
        # The paths of Ray's sockets must be short, whatever the folder for temporary files is.
        self._folder = Path(tempfile.mkdtemp(prefix="ray", dir="/tmp"))
        self.environment = {
            **os.environ,
            "RAY_AUTH_MODE": "token",  # asked for as soon as a machine has an address beside loopback
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
            "RAY_USAGE_STATS_ENABLED": "0",
        }
        self.environment.pop("RAY_ADDRESS", None)
        self._started: list[subprocess.Popen[bytes]] = []
        try:
            self.address = self._first()
        except BaseException:
            self.end()
            raise
        self.environment["RAY_ADDRESS"] = self.address

    def add(self) -> int:
        """One more machine; its number."""
        self._start("--node-ip-address=127.0.0.1", f"--address={self.address}", *_SMALL)
        return len(self._started) - 1

    def lose(self, number: int) -> None:
        """All processes of a machine die at once."""
        machine = self._started[number]
        for pid in [machine.pid, *_below(machine.pid)]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        machine.wait()

    def end(self) -> None:
        for number, machine in enumerate(self._started):
            if machine.poll() is None:
                self.lose(number)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _first(self) -> str:
        own = f"--temp-dir={self._folder}"
        port = f"--port={_free_port()}"
        log = self._start("--head", "--node-ip-address=127.0.0.1", port, "--include-dashboard=false", own, *_SMALL)
        told = re.search(r"--address='([^']+)'", log)
        assert told is not None, log
        return told[1]  # Ray puts the machine's own address in the place of loopback

    def _start(self, *words: str) -> str:
        log = self._folder / f"machine{len(self._started)}.log"
        command = [str(Path(sys.executable).with_name("ray")), "start", *words]
        with log.open("wb") as out:
            machine = subprocess.Popen(
                command, stdout=out, stderr=subprocess.STDOUT, env=self.environment, start_new_session=True
            )
        self._started.append(machine)
        until = time.monotonic() + _PATIENCE
        while "--block\n" not in (text := log.read_text(errors="replace")):
            assert machine.poll() is None, text
            assert time.monotonic() < until, text
            time.sleep(0.1)
        return text


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def _below(root: int) -> list[int]:
    """The descendants of a process."""
    children = defaultdict(list)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError, IndexError):
                children[int((entry / "stat").read_text().rpartition(")")[2].split()[1])].append(int(entry.name))
    found, queue = [], [root]
    while queue:
        for child in children[queue.pop()]:
            found.append(child)
            queue.append(child)
    return found
