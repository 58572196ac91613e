"""How fast datasets of Letta suites are read, and runs written as letta-evals writes them.

    python benchmarks/letta.py [samples]

Goal: at most 3 seconds of CPU for 100,000 samples, JSONL and CSV each; memory does not grow with their number. The
number of samples and of verdicts is counted: a figure with a wrong count is void. Beside it stands what the standard
library alone needs to go through the same file on the same machine, and ours as a multiple of that.
"""

from __future__ import annotations

import csv
import json
import sys
import tempfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from works import Clock

from evalwright.formats.loading import load_suite
from evalwright.run.start import run_suite
from evalwright.session import Session

GOAL = 3.0
FIELDS = ("id", "input", "ground_truth", "tags", "agent_args", "rubric_vars", "metadata")
SUITE = """\
name: bench
dataset: {dataset}
target: {{kind: letta_agent, agent_id: a, backend: agent.py:answers}}
graders:
  right: {{kind: tool, function: contains}}
gate: {{kind: simple, metric_key: right, op: gte, value: 1}}
"""
AGENT = 'def answers(message, ctx):\n    return f"The answer is {ctx.sample.ground_truth}."\n'


def write(folder: Path, samples: int) -> None:
    """The same samples as JSON Lines and as CSV, and a suite for each."""
    (folder / "agent.py").write_text(AGENT)
    with (folder / "data.jsonl").open("w") as lines, (folder / "data.csv").open("w", newline="") as cells:
        table = csv.DictWriter(cells, FIELDS)
        table.writeheader()
        for i in range(samples):
            sample = {
                "id": i,
                "input": f"What is {i} plus {i}?\nSay it in one sentence, please.",
                "ground_truth": str(2 * i),
                "tags": ["math", f"part-{i % 7}"],
                "agent_args": {"item": {"sku": f"SKU-{i}", "price": i / 100}},
                "rubric_vars": {"topic": "sums", "limit": i},
                "metadata": {"source": "generated"},
            }
            lines.write(json.dumps(sample) + "\n")
            table.writerow({k: v if isinstance(v, (int, str)) else json.dumps(v) for k, v in sample.items()})
    for kind in ("jsonl", "csv"):
        (folder / f"{kind}.yaml").write_text(SUITE.format(dataset=f"data.{kind}"))


def measured(what: str, work: Callable[[], int], expected: int, goal: float | None = None) -> float:
    """Seconds of CPU that the work took."""
    with Clock() as clock:
        count = work()
    verdict = "VOID" if count != expected else "" if goal is None else "ok" if clock.cpu <= goal else "MISSED"
    print(f"{what:44} {clock.cpu:8.2f} s CPU  {'' if goal is None else f'<= {goal:g}':8} {verdict}")
    return clock.cpu


def read_alone(data: Path) -> int:
    """Lines or records of a file as the standard library gives them."""
    with data.open(newline="") as file:
        if data.suffix == ".csv":
            return sum(1 for _ in csv.reader(file)) - 1
        return sum(1 for _ in map(json.loads, file))


def counted(suite: Path) -> int:
    return sum(1 for _ in load_suite(suite).cases)


def peak(suite: Path) -> float:
    """MiB of Python objects at most while the samples are gone through."""
    cases = load_suite(suite).cases
    tracemalloc.start()
    for _ in cases:
        pass
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / 2**20


def run(suite: Path, output: Path | None) -> int:
    loaded = load_suite(suite, options={"output": output})
    loaded.out = suite.parent / "runs"
    with Session(owns_process=True, stdout="keep"):  # as the command line works
        summary = run_suite(loaded).summary
    return sum(variant.cells["pass"] for variant in summary.variants)


def main() -> None:
    samples = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        write(here, samples)
        for kind in ("jsonl", "csv"):
            what = f"load {samples:,} samples of {kind}"
            ours = measured(what, lambda k=kind: counted(here / f"{k}.yaml"), samples, GOAL)
            alone = measured("  the standard library alone", lambda k=kind: read_alone(here / f"data.{k}"), samples)
            print(f"  ours: {ours / alone:.1f} times as long")
            print(f"  memory: {peak(here / f'{kind}.yaml'):.1f} MiB")
        tenth = max(1, samples // 10)
        write(here, tenth)
        measured(f"run {tenth:,} samples", lambda: run(here / "jsonl.yaml", None), tenth)
        measured(f"run {tenth:,} samples, with --output", lambda: run(here / "jsonl.yaml", here / "out"), tenth)


if __name__ == "__main__":
    main()
