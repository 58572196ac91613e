"""How fast evalwright is on this machine, beside the goals that the project holds itself to.

    python benchmarks/bench.py                 everything but the largest size, about two minutes
    python benchmarks/bench.py W2 W4           some works
    python benchmarks/bench.py --large         also a million stored traces (7 GB of disk)

Each measurement is a process of its own. CPU is user + system time of the process and all its children, memory the
sum over the process tree. Every run's verdicts are counted and compared with the truth of the generated data: a
figure with a wrong count is void. `x bare` compares with the least that the work needs, measured in the same
session: decoding the same records (W1, W2, W4), as many bare sleeps (W3), an interpreter that does nothing (W5), so
that figures of different machines can be compared.
Wall-clock figures need a quiet machine.

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


@dataclass(slots=True)
class Line:
    """One line of the table; `worse` is how the figure relates to the goal when it misses it."""

    work: str
    what: str
    figure: float
    goal: float | None = None
    unit: str = ""
    at_least: bool = False
    bare: float | None = None
    """The figure as a multiple of the bare work."""
    void: str = ""

    def text(self) -> str:
        sign = ">=" if self.at_least else "<="
        goal = "" if self.goal is None else f"{sign} {self.goal:g}"
        bare = "" if self.bare is None else f"{self.bare:.2f} x bare"
        return f"{self.work:3} {self.what:52} {self.figure:11.4g} {self.unit:9} {goal:>10}  {self.verdict():6} {bare}"

    def verdict(self) -> str:
        if self.void:
            return f"VOID: {self.void}"
        if self.goal is None:
            return ""
        met = self.figure >= self.goal if self.at_least else self.figure <= self.goal
        return "ok" if met else "MISSED"


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

    def w1(self) -> None:
        count = 100_000
        small, big = (self._suite("w1", n) for n in (1_000, count))
        bare = median(self.child("decode-cases", data.case_file(count, self.folder)), said("cpu"))
        costs = self.child("load", big)
        void = "" if all(cost.said["count"] == count for cost in costs) else "wrong number of cases"
        cpu = median(costs, whole_cpu)
        self.say(Line("W1", f"check {count:,} JSONL cases, CPU", cpu, 1.2, "s", bare=cpu / bare, void=void))
        growth = median(costs, peak) / median(self.child("load", small), peak)
        self.say(Line("W1", f"memory at {count:,} cases / at 1,000", growth, 1.2))

    def w2(self) -> None:
        count = 10_000
        bare = median(self.child("decode-cases", data.case_file(count, self.folder)), said("cpu"))
        costs = self.child("run", self._suite("w2", count))
        cpu = median(costs, said("cpu"))
        name = f"run {count:,} cells, instant target, 3 checks, CPU"
        void = self._void(costs, data.cases, count)
        self.say(Line("W2", name, 1000 * cpu / count, 0.10, "ms/cell", bare=cpu / bare, void=void))
        small = median(self.child("run", self._suite("w2", 1_000)), peak)
        big = self.child("run", self._suite("w2", 100_000), repeats=1)
        void = self._void(big, data.cases, 100_000)
        self.say(Line("W2", "memory at 100,000 cells / at 1,000", peak(big[0]) / small, 1.2, void=void))
        self.say(Line("W2", "memory at 100,000 cells", peak(big[0]), 120, "MiB", void=void))

    def w3(self) -> None:
        count, seconds = 2_000, 0.2
        for concurrency, goal in ((200, 0.94), (1_000, 0.80)):
            suite = self._suite(f"w3-{concurrency}", count, concurrency, seconds)
            costs = self.child("run", suite)
            ideal = count * seconds / concurrency
            bare = ideal / median(self.child("sleep", suite), said("wall"))
            efficiency = ideal / median(costs, said("wall"))
            name = f"{count:,} cells of 200 ms, {concurrency:,} at once: ideal / wall"
            void = self._void(costs, data.cases, count)
            self.say(Line("W3", name, efficiency, goal, at_least=True, bare=efficiency / bare, void=void))

    def w4(self) -> None:
        each = {}
        for count in (10_000, 100_000, *((1_000_000,) if self.large else ())):
            run = self._traces(count)
            repeats = 1 if count > 100_000 else None
            bare = median(self.child("decode-traces", run / "traces.jsonl", repeats=repeats), said("cpu"))
            costs = self.child("judge", run, repeats=repeats)
            void = self._void(costs, data.judged_traces, count)
            each[count] = 1000 * median(costs, said("cpu")) / count
            name = f"judge {count:,} stored traces, 5 checks, CPU"
            goal = 0.040 if count >= 100_000 else None
            self.say(Line("W4", name, each[count], goal, "ms/trace", bare=each[count] * count / 1000 / bare, void=void))
            if count >= 100_000:
                rate = count / median(costs, said("wall"))
                self.say(Line("W4", "the same, by the wall clock", rate, 45_000, "traces/s", at_least=True, void=void))
                self.say(Line("W4", "the same, memory of all processes", median(costs, peak), 100, "MiB", void=void))
                ratio = each[count] / each[10_000]
                self.say(Line("W4", f"CPU a trace at {count:,} / at 10,000", ratio, 1.05, void=void))
            if count > 100_000:
                shutil.rmtree(run)

    def w5(self) -> None:
        bare = median(self.command([sys.executable, "-c", "pass"], 5), whole_cpu)
        single = self._suite("w5", 1)
        for what, command, goal, statuses in (
            ("evalwright --help, CPU", [*CLI, "--help"], 0.10, (0,)),
            ("import evalwright, CPU", [sys.executable, "-c", "import evalwright"], 0.07, (0,)),
            ("run of one case, CPU", [*CLI, "run", str(single), "--quiet"], 0.25, (0, 1)),
        ):
            cpu = median(self.command(command, 5, statuses), whole_cpu)
            self.say(Line("W5", what, cpu, goal, "s", bare=cpu / bare))

    def w6(self) -> None:
        count = 10_000
        before = self.child("run", self._suite("w6-before", count), repeats=1)[0]
        after = self.child("run", self._suite("w6-after", count, answer="worse"), repeats=1)[0]
        runs = [before.said["run_dir"], after.said["run_dir"]]
        cpu = median(self.command([*CLI, "compare", *runs], statuses=(0, 1)), whole_cpu)
        void = self._void([before], data.cases, count)
        self.say(Line("W6", f"compare two runs of {count:,} x 3, CPU", cpu, 0.35, "s", void=void))

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
    asked = parser.parse_args()
    if asked.child:
        child(asked.child, Path(asked.works[0]))
        return
    chosen = [work.lower() for work in asked.works] or ["w1", "w2", "w3", "w4", "w5", "w6"]
    with tempfile.TemporaryDirectory(prefix="evalwright-bench-") as temporary:
        bench = Bench((asked.folder or Path(temporary)).resolve(), asked.repeats, asked.large)
        for work in chosen:
            if not hasattr(Bench, work):
                parser.error(f"no work {work!r}: expected W1 to W6")
            getattr(bench, work)()
    print(f"{bench.missed} goals missed" if bench.missed else "every goal met")


if __name__ == "__main__":
    main()
