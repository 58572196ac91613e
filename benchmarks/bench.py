"""How fast evalwright is on this machine, beside the goals that the project holds itself to.

    python benchmarks/bench.py                 everything but the largest size, about two minutes
    python benchmarks/bench.py W2 W4           some works
    python benchmarks/bench.py --large         also a million stored traces (7 GB of disk)

Each measurement is a process of its own. CPU is user + system time of the process and all its children, memory the
sum over the process tree. Every run's verdicts are counted and compared with the truth of the generated data: a
figure with a wrong count is void.

`limit` is the least that the work needs, measured in the same session and in turns with ours: decoding the same records
(W1, which holds them, and W4), a loop that decodes, calls, checks and writes (W2), as many bare sleeps (W3), a program
that checks and writes one case (W5), a comparison of runs of one case (W6). Goals are ratios to it, as machines differ
by a factor of two and more, and so do hours of one machine. Wall-clock figures need a quiet machine. Without byte code
every start compiles all modules: the first line says how evalwright is installed.

W1 load and check cases      W2 run with an instant target    W3 run with a target that takes 200 ms
W4 judge stored traces anew  W5 start                         W6 compare two runs
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import data
import works
from measuring import Cost, measure

HERE = Path(__file__).resolve()
CLI = [sys.executable, "-m", "evalwright"]
ONE_CASE = """
import asyncio, json, msgspec, pydantic
class Case(pydantic.BaseModel):
    id: str
class Trace(msgspec.Struct):
    case: str
asyncio.run(asyncio.sleep(0))
msgspec.json.encode(Trace(Case.model_validate_json('{"id": "a"}').id))
"""
"""The least that a run of one case needs: what checks it, what calls a system, what writes."""


@dataclass(slots=True)
class Line:
    """One line of the table: a figure, the same of the bare work, and the goal for their ratio."""

    work: str
    what: str
    figure: float
    unit: str = ""
    limit: float | None = None
    goal: float | None = None
    """Of the ratio to the limit; without a limit, of the figure."""
    at_least: bool = False
    void: str = ""

    @property
    def measured(self) -> float:
        return self.figure if self.limit is None else self.figure / self.limit

    def text(self) -> str:
        limit = "" if self.limit is None else f"{self.limit:.4g}"
        ratio = "" if self.limit is None else f"{self.measured:.2f}"
        goal = "" if self.goal is None else f"{'>=' if self.at_least else '<='} {self.goal:g}"
        head = f"{self.work:3} {self.what:52} {self.figure:9.4g} {self.unit:9}"
        return f"{head} {limit:>9} {ratio:>7} {goal:>8}  {self.verdict()}"

    def verdict(self) -> str:
        if self.void:
            return f"VOID: {self.void}"
        if self.goal is None:
            return ""
        met = self.measured >= self.goal if self.at_least else self.measured <= self.goal
        return "ok" if met else "MISSED"


HEAD = f"{'':3} {'':52} {'ours':>9} {'':9} {'limit':>9} {'ratio':>7} {'goal':>8}"


class Bench:
    """The works, each printing its lines as it goes."""

    def __init__(self, folder: Path, repeats: int, large: bool) -> None:
        self.folder, self.repeats, self.large = folder, repeats, large
        # Suites of several works share the data, and may name files in their repository only: this folder is one.
        (folder / ".git").mkdir(parents=True, exist_ok=True)
        self.missed = 0

    def say(self, line: Line) -> None:
        self.missed += line.verdict() not in ("", "ok")
        print(line.text(), flush=True)

    def child(self, work: str, *arguments: object, repeats: int | None = None) -> list[Cost]:
        """Runs of one work in processes of its own. Exits when one fails: its figures would mean nothing."""
        command = [sys.executable, str(HERE), "--child", work, *map(str, arguments)]
        return self.command(command, repeats)

    def command(self, command: list[str], repeats: int | None = None, statuses: tuple[int, ...] = (0,)) -> list[Cost]:
        costs = [measure(command) for _ in range(repeats or self.repeats)]
        for cost in costs:
            if cost.status not in statuses:
                sys.exit(f"{' '.join(command)} ended with {cost.status}:\n{cost.errors}")
        return costs

    # ------------------------------------------------------------ works

    def pairs(self, work: str, path: Path, bare: str, bare_path: Path) -> tuple[list[Cost], list[Cost]]:
        """A work and its limit, one after the other and again: neighbours in time are compared."""
        ours, limits = [], []
        for _ in range(self.repeats):
            ours += self.child(work, path, repeats=1)
            limits += self.child(bare, bare_path, repeats=1)
        return ours, limits

    def w1(self) -> None:
        count = 100_000
        small, big = (self._suite("w1", n) for n in (1_000, count))
        costs, bare = self.pairs("load", big, "decode-cases", data.case_file(count, self.folder))
        void = "" if all(cost.said["count"] == count for cost in costs) else "wrong number of cases"
        ours, limit = (median(some, said("cpu")) for some in (costs, bare))
        self.say(Line("W1", f"check {count:,} JSONL cases, CPU", ours, "s", limit, 1.3, void=void))
        growth = median(costs, peak) / median(self.child("load", small), peak)
        self.say(Line("W1", f"memory at {count:,} cases / at 1,000", growth, goal=1.2))

    def w2(self) -> None:
        count = 10_000
        costs, bare = self.pairs("run", self._suite("w2", count), "bare-run", data.case_file(count, self.folder))
        ours, limit = (1000 * median(some, said("cpu")) / count for some in (costs, bare))
        name = f"run {count:,} cells, instant target, 3 checks, CPU"
        void = self._void(costs, data.cases, count)
        self.say(Line("W2", name, ours, "ms/cell", limit, 2.5, void=void))
        small = median(self.child("run", self._suite("w2", 20_000)), peak)  # from here on, runs keep an index
        big = self.child("run", self._suite("w2", 100_000), repeats=1)
        void = self._void(big, data.cases, 100_000)
        self.say(Line("W2", "memory at 100,000 cells / at 20,000", peak(big[0]) / small, goal=1.2, void=void))
        self.say(Line("W2", "memory at 100,000 cells", peak(big[0]), "MiB", goal=60, void=void))

    def w3(self) -> None:
        count, seconds = 2_000, 0.2
        for concurrency, goal in ((200, 1.05), (1_000, 1.12)):
            suite = self._suite(f"w3-{concurrency}", count, concurrency, seconds)
            costs, bare = self.pairs("run", suite, "sleep", suite)
            ours, limit = (median(some, said("wall")) for some in (costs, bare))
            void = self._void(costs, data.cases, count)
            name = f"{count:,} cells of 200 ms, {concurrency:,} at once, wall"
            self.say(Line("W3", name, ours, "s", limit, goal, void=void))

    def w4(self) -> None:
        each = {}
        for count in (10_000, 100_000, *((1_000_000,) if self.large else ())):
            run = self._traces(count)
            costs, bare = self.pairs("judge", run, "decode-traces", run / "traces.jsonl")
            void = self._void(costs, data.judged_traces, count)
            each[count], limit = (1000 * median(some, said("cpu")) / count for some in (costs, bare))
            name = f"judge {count:,} stored traces, 5 checks, CPU"
            self.say(Line("W4", name, each[count], "ms/trace", limit, 3, void=void))
            if count >= 100_000:
                self.say(
                    Line("W4", "the same, memory of all processes", median(costs, peak), "MiB", goal=160, void=void)
                )
                ratio = each[count] / each[10_000]
                self.say(Line("W4", f"CPU a trace at {count:,} / at 10,000", ratio, goal=1.05, void=void))
            if count > 100_000:
                shutil.rmtree(run)

    def w5(self) -> None:
        nothing = median(self.command([sys.executable, "-c", ONE_CASE], 5), whole_cpu)
        single = self._suite("w5", 1)
        run = Path(self.child("run", single, repeats=1)[0].said["run_dir"])
        one = [*CLI, "run", str(single), "--quiet", "--allow-outside", str(self.folder)]
        for what, command, goal, statuses in (
            ("evalwright --help, CPU", [*CLI, "--help"], 0.5, (0,)),
            ("import evalwright, CPU", [sys.executable, "-c", "import evalwright"], 0.8, (0,)),
            ("run of one case, CPU", one, 1.5, (0, 1)),
            ("inspect of a run of one case, CPU", [*CLI, "inspect", str(run)], 1.0, (0,)),
            ("compare of two such runs, CPU", [*CLI, "compare", str(run), str(run)], 1.0, (0,)),
        ):
            cpu = median(self.command(command, 5, statuses), whole_cpu)
            self.say(Line("W5", what, cpu, "s", nothing, goal))

    def w6(self) -> None:
        count = 10_000
        run_dir = self.child("run", self._suite("w6-one", 1), repeats=1)[0].said["run_dir"]
        before = self.child("run", self._suite("w6-before", count), repeats=1)[0]
        after = self.child("run", self._suite("w6-after", count, answer="worse"), repeats=1)[0]
        runs = [before.said["run_dir"], after.said["run_dir"]]
        small = median(self.command([*CLI, "compare", run_dir, run_dir], statuses=(0, 1)), whole_cpu)
        void = self._void([before], data.cases, count)
        costs: dict[str, list[Cost]] = {"without an index": [], "again": []}
        for _ in range(self.repeats):
            for run in runs:
                (Path(run) / "index.sqlite").unlink(missing_ok=True)
            for found in costs.values():  # the first one leaves indexes behind
                found += self.command([*CLI, "compare", *runs], 1, statuses=(0, 1))
        for (when, found), goal in zip(costs.items(), (2.5, 1.2), strict=True):
            name = f"compare two runs of {count:,} x 3 {when}, CPU"
            self.say(Line("W6", name, median(found, whole_cpu), "s", small, goal, void=void))

    # ------------------------------------------------------------ material

    def _suite(self, name: str, count: int, concurrency: int = 32, seconds: float = 0.0, answer: str = "echo") -> Path:
        cases = data.case_file(count, self.folder)
        return works.write_suite(
            self.folder / name / str(count),
            cases,
            data.CASE_CHECKS,
            concurrency=concurrency,
            seconds=seconds,
            answer=answer,
        )

    def _traces(self, count: int) -> Path:
        folder = self.folder / f"traces-{count}"
        run = folder / "stored"
        if not (run / "plan.json").exists():
            unstored = data.trace_file(count, self.folder)
            works.stored_run(folder, data.TRACE_CHECKS, unstored)
            unstored.unlink()
        return run

    def _void(self, costs: list[Cost], records: data.Records, count: int) -> str:
        """Why the figures of these runs mean nothing, if so."""
        truth = data.true_counts(records, count)
        for cost in costs:
            if cost.said["passes"] != truth:
                return f"counted {cost.said['passes']}, true is {truth}"
        return ""


def median(costs: list[Cost], figure: Callable[[Cost], float]) -> float:
    return statistics.median(map(figure, costs))


def whole_cpu(cost: Cost) -> float:
    return cost.cpu


def peak(cost: Cost) -> float:
    return cost.peak


def said(key: str) -> Callable[[Cost], float]:
    """A figure that the child measured itself, without its start-up."""
    return lambda cost: float(cost.said[key])


def child(work: str, path: Path) -> None:
    """One piece of work in this process; its figures as one line of JSON."""
    result: dict[str, object] = {}
    if work == "load":
        result["count"], clock = works.load_cases(path)
    elif work == "run":
        run_dir, clock = works.run_cases(path)
        result |= {"run_dir": str(run_dir), "passes": works.passes(run_dir)}
    elif work == "judge":
        clock = works.re_evaluate(path)
        result["passes"] = works.passes(path)
    elif work == "sleep":
        clock = works.sleep_only(path)
    elif work == "bare-run":
        clock = works.bare_run(path)
    else:
        clock = works.decode_only(path, work.removeprefix("decode-"))
    print(json.dumps({**result, "cpu": clock.cpu, "wall": clock.wall}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("works", nargs="*", metavar="WORK", help="W1 to W6; all without one")
    parser.add_argument("--large", action="store_true", help="W4 also with 1,000,000 traces")
    parser.add_argument("--repeats", type=int, default=3, help="runs behind each median (default 3)")
    parser.add_argument("--folder", type=Path, help="where data is kept between runs; else it is removed at the end")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(args.child, Path(args.works[0]))
        return
    chosen = [work.lower() for work in args.works] or ["w1", "w2", "w3", "w4", "w5", "w6"]
    print(f"evalwright {works.installed()}\n{HEAD}")
    with tempfile.TemporaryDirectory(prefix="evalwright-bench-") as temporary:
        bench = Bench((args.folder or Path(temporary)).resolve(), args.repeats, args.large)
        for work in chosen:
            if not hasattr(Bench, work):
                parser.error(f"no work {work!r}: expected W1 to W6")
            getattr(bench, work)()
    print(f"{bench.missed} goals missed" if bench.missed else "every goal met")


if __name__ == "__main__":
    main()
