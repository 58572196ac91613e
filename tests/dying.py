"""A command that is killed at one of its changes to files, in a process of its own."""

from __future__ import annotations

from pathlib import Path

import warm

_PROGRAM = """
import os, signal, sys

changes = sys.argv[2].split()
left = int(sys.argv[1])

def count(event, arguments):
    global left
    kind = "write" if event == "open" and str(arguments[1])[0] in "wxa" else event
    if kind in changes:
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

from evalwright.cli import main

sys.argv[:3] = ["evalwright"]
sys.addaudithook(count)
main()
"""


_CHANGES = "write os.mkdir os.rename os.remove os.rmdir os.link"


def killed_at(change: int, words: list[str], folder: Path, changes: str = _CHANGES) -> bool:
    """Run a command in a folder until its n-th change to files, from 1; whether there were so many.

    `changes` are those that count: `write` for a file that is opened to write it, and events of Python's audit hooks.
    """
    ended = warm.run(["-c", _PROGRAM, str(change), changes, *words], cwd=folder)
    assert ended.returncode in (0, -9), ended.stderr
    return ended.returncode == -9
