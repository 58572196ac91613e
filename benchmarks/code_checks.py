"""Recorded conversations judged by a check that is Python code, from the command line.

    python benchmarks/code_checks.py

Goal: at most 10 ms of CPU a case, so that 1,000 cases do not start 1,000 interpreters. The CPU is that of the whole
command with all its children, less that of the same run without the check. (Larger runs are judged in processes that
do not wait for the interpreters they used, so that their CPU could not be told.)
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from measuring import Cost, measure
from recorded import conversation

CASES = 1_000
CODE = "import json\ndef validate(output, case, run):\n    return 'sunny' in output and bool(run['tool_calls'])\n"


def run(folder: Path, cases: int, graders: list[dict[str, object]]) -> Cost:
    dataset, configuration = folder / "recorded.jsonl", folder / "graders.json"
    with dataset.open("w") as file:
        file.writelines(json.dumps(conversation(number)) + "\n" for number in range(cases))
    configuration.write_text(json.dumps({"graders": graders}))
    options = ["--graders", str(configuration), "--out", str(folder), "--quiet"]
    cost = measure([sys.executable, "-m", "evalwright", "run", str(dataset), *options])
    if cost.status not in (0, 1):
        sys.exit(cost.errors)
    return cost


def measured(cases: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        without = run(Path(folder), cases, [])
        check = {"type": "python", "name": "sunny", "code": CODE, "timeout_ms": 5000}
        cost = run(Path(folder), cases, [check])
    cpu = (cost.cpu - without.cpu) / cases * 1e3
    print(f"{cases:>9,} cases  {cases / cost.wall:>7,.0f} a second  {cpu:6.2f} ms of CPU a check  {cost.peak:5.0f} MiB")


if __name__ == "__main__":
    measured(CASES)
