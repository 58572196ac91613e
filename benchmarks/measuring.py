"""A child process and what it cost: wall and CPU seconds, and memory, of it and everything that it started."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Cost", "measure"]

_SAMPLE_SECONDS = 0.05


@dataclass(slots=True)
class Cost:
    """Figures of one finished process tree. `said` is the JSON object on the last line that it printed."""

    status: int
    wall: float
    cpu: float
    """User and system seconds of the process and of the children that it waited for."""
    peak: float
    """MiB: the largest sum of resident memory over the tree that was seen; at least the largest single process."""
    said: dict[str, Any] = field(default_factory=dict)
    errors: str = ""


def measure(command: list[str], environment: dict[str, str] | None = None) -> Cost:
    """Run a command to its end."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start = time.perf_counter()
        process = subprocess.Popen(
            command,
            stdout=out,
            stderr=err,
            stdin=subprocess.DEVNULL,
            env=environment and {**os.environ, **environment},
        )
        tree = _TreeMemory(process.pid)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        sampled = tree.stop()
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    return Cost(
        status=process.returncode,
        wall=wall,
        cpu=usage.ru_utime + usage.ru_stime,
        peak=max(sampled, usage.ru_maxrss / 1024),
        said=_last_object(texts[0]),
        errors=texts[1][-2000:],
    )


def _last_object(text: str) -> dict[str, Any]:
    lines = text.strip().splitlines()
    try:
        document = json.loads(lines[-1]) if lines else {}
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


class _TreeMemory(threading.Thread):
    """Samples the resident memory of a process and its descendants (Linux; nothing elsewhere)."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid, self._peak, self._over = pid, 0.0, threading.Event()
        self.start()

    def run(self) -> None:
        while not self._over.wait(_SAMPLE_SECONDS):
            self._peak = max(self._peak, _resident(self._pid))

    def stop(self) -> float:
        self._over.set()
        self.join()
        return self._peak


def _resident(pid: int) -> float:
    """MiB of a process and its descendants; what ends meanwhile counts as nothing."""
    page = os.sysconf("SC_PAGE_SIZE") / 1_048_576
    total, waiting = 0.0, [str(pid)]
    while waiting:
        folder = Path("/proc") / waiting.pop()
        try:
            total += int((folder / "statm").read_text().split()[1]) * page
            for task in (folder / "task").iterdir():
                waiting += (task / "children").read_text().split()
        except (OSError, IndexError, ValueError):
            continue
    return total
