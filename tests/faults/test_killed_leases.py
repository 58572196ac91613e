"""Shards that die while they use a ledger: all together, they spend no more than the limit and what was in flight."""

import json
import os
import random
import signal
import sqlite3
from pathlib import Path

import psycopg
import pytest

from faults.harness import make_project
from run.leases import KINDS, address, ledger_at

LIMIT, COST, CELLS, SHARDS, WIDTH = 0.12, 0.01, 24, 2, 3
NANO = 1_000_000_000
SPENDER = """
import os


async def answer(case, variant):
    calls = os.open("calls", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(calls, b".")
    os.close(calls)
    return {"final_answer": "fine", "metrics": {"cost_usd": %s}}
"""


def session(folder: Path, k: int, lease: str, dies_at: int = 0) -> int:
    """The pid of a shard's process, which gets SIGKILL before or after the n-th statement that it sends to a ledger."""
    child = os.fork()
    if child:
        return child
    code = 4
    try:
        os.chdir(folder)
        if dies_at:
            _dies(dies_at)
        from evalwright.cli import main

        main(["run", "eval.yaml", "--shard", f"{k}/{SHARDS}", "--out", "out", "--lease", lease, "-q"])
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        os._exit(code)


def _dies(at: int) -> None:
    """Arm the fault: odd numbers are before a statement, even ones after it."""
    seen = 0

    def dying(execute):
        def wrapped(*given, **named):
            nonlocal seen
            for moment in range(2):
                seen += 1
                if seen == at:
                    os.kill(os.getpid(), signal.SIGKILL)
                if moment == 0:
                    found = execute(*given, **named)
            return found

        return wrapped

    class Dying(sqlite3.Connection):
        execute = dying(sqlite3.Connection.execute)

    connect = sqlite3.connect
    sqlite3.connect = lambda *given, **named: connect(*given, **{**named, "factory": Dying})
    psycopg.Connection.execute = dying(psycopg.Connection.execute)


def ended(children: list[int]) -> list[int]:
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def killed_at(folder: Path, lease: str, at: int) -> bool:
    """Kill one of two shards at a point, and run it again; whether the point was reached."""
    make_project(folder, ["fine"] * CELLS, "spender:answer", concurrency=WIDTH)
    (folder / "spender.py").write_text(SPENDER % COST)
    suite = (folder / "eval.yaml").read_text()
    (folder / "eval.yaml").write_text(suite.replace("run:\n", f"run:\n  cost_limit_usd: {LIMIT}\n"))
    first, second = ended([session(folder, 1, lease, at), session(folder, 2, lease)])
    assert (first, second) in ((-signal.SIGKILL, 0), (0, 0))
    assert ended([session(folder, 1, lease)]) == [0]
    calls = (folder / "calls").stat().st_size
    in_flight = SHARDS + (WIDTH if first else 0)
    assert round(LIMIT / COST) - in_flight <= calls <= round(LIMIT / COST) + in_flight
    rows = [json.loads(line) for file in folder.glob("out/*/traces.jsonl") for line in file.read_text().splitlines()]
    recorded = sum(row.get("metrics", {}).get("cost_usd") or 0 for row in rows)
    assert {row.get("error", {}).get("type") for row in rows if row.get("error")} <= {"cost_limit"}
    assert len(rows) == CELLS
    ledger = ledger_at(lease if ":" in lease else folder / lease)
    with ledger._transaction() as execute:
        assert sum(row[0] for row in execute("SELECT amount FROM lease_holdings")) == round(recorded * NANO)
    ledger.close()
    return first != 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_shard_that_is_killed_holds_what_it_took_until_it_is_resumed(kind, tmp_path, monkeypatch):
    lease = address(kind, tmp_path, monkeypatch)
    # Later statements depend on who is quicker: the other shard may have left nothing to ask for.
    assert killed_at(tmp_path, lease, random.Random(kind).randrange(20, 36))


@pytest.mark.slow("three sessions for each of many statements")
@pytest.mark.parametrize("kind", KINDS)
def test_a_shard_that_is_killed_anywhere_holds_what_it_took_until_it_is_resumed(kind, tmp_path, monkeypatch):
    draw, killed = random.Random(7), 0
    for point in range(16):
        folder = tmp_path / str(point)
        killed += killed_at(folder, address(kind, folder, monkeypatch), draw.randrange(1, 110))
    assert killed > 8
