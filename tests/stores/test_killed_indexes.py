"""SIGKILL in the midst of writing a run and its index: the index says then what the records say, and goes on so."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sys
import time
from multiprocessing.connection import Connection

import pytest

from evalwright.errors import RunLockedError
from evalwright.stores.index.file import INDEX
from evalwright.stores.local_files import LocalFiles
from stores.histories import History, TableHistory, said
from stores.stores import Kept

STEPS = [
    *["cell"] * 6,
    "indexed",
    *["cell"] * 4,
    "reopened",
    "cell",
    "indexed",
    "judged_again",
    "indexed",
    "cell",
    "cell",
]


class Fuse:
    """Counts the calls into the interpreter's C code, of which writing to anything is one, and dies at one of them."""

    def __init__(self, length: int | None) -> None:
        self.calls, self._length = 0, length

    def __call__(self, frame: object, event: str, argument: object) -> None:
        if event == "c_call":
            self.calls += 1
            if self.calls == self._length:
                os.kill(os.getpid(), signal.SIGKILL)


def made(kept: Kept) -> History:
    return History(kept.folder / "runs", 3) if kept.kind == "local_files" else TableHistory(kept, 3)


def write(kept: Kept, length: int | None, sender: Connection) -> None:
    """What the killed process does."""
    fuse = Fuse(length)
    history = made(kept)
    sys.setprofile(fuse)
    # The writer of a folder keeps its index by itself, and a reader would wait for it.
    for step in [step for step in STEPS if step != "indexed" or kept.kind != "local_files"]:
        getattr(history, step)()
        history.writer.sync()
    history.close()
    sys.setprofile(None)
    sender.send(fuse.calls)


def written(kept: Kept, length: int | None) -> int:
    """Write in another process; the number of calls, 0 if it was killed."""
    kept.store()  # starts the server here, not in the process that is killed
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=write, args=(kept, length, sender))
    child.start()
    sender.close()
    try:
        calls: int = receiver.recv()
    except EOFError:
        calls = 0
    child.join()
    assert child.exitcode == (0 if calls else -signal.SIGKILL)
    return calls


class Left(History):
    """The run that a killed process left."""

    def __init__(self, kept: Kept) -> None:
        self.random = random.Random(1)
        self.store = LocalFiles(kept.folder / "runs") if kept.kind == "local_files" else kept.store()
        self.run_id = self.store.run_ids()[0]
        self.attempts = {(0, "v1", 0): 50}

    def reader(self):
        return self.store.read(self.run_id)

    def gone_on_with(self) -> None:
        self.writer = self._writer()
        self.cell_of(0, "v1", 0)
        self.writer.close()

    def _writer(self):
        until = time.monotonic() + 60
        while True:  # a database may not have noticed yet that its client is dead
            try:
                return self.store.open(self.run_id)
            except RunLockedError:
                assert time.monotonic() < until
                time.sleep(0.05)


@pytest.mark.slow("kills a process at many moments")
@pytest.mark.parametrize(("kind", "points"), [("local_files", 24), ("sqlite", 12), ("postgres", 4)])
def test_a_killed_writer_leaves_an_index_that_says_what_a_scan_says(kind, points, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for module in ("local_files.reader", "tables.run"):  # each run has an index then, as large ones have
        monkeypatch.setattr(f"evalwright.stores.{module}.INDEXED_FROM", 0)
    calls, killed = written(Kept(kind, tmp_path / "whole"), None), 0
    assert list(tmp_path.rglob(INDEX))
    for point in range(points):
        kept = Kept(kind, tmp_path / str(point))
        killed += not written(kept, 1 + calls * point // points)
        left = Left(kept)
        assert said(left, scanned=False) == said(left, scanned=True)
        left.gone_on_with()
        assert said(left, scanned=False) == said(left, scanned=True)
    assert killed > points // 2  # how often a client of a server waits is not the same each time
