"""Recorded conversations graded from the command line, with the deterministic plan.

    python benchmarks/recorded.py [CASES]

Goals: at least 20,000 cases a second on 2 cores, and memory that does not grow with their number. The time is that of
the whole command: start, reading and checking the dataset, writing cases, traces, results and verdicts, the summary.

Machines differ, and one machine from hour to hour. So the CPU of a case is given in `loops` as well: how often
`json.loads` and `json.dumps` of the same case fit into it, in one bare process, measured just before and after.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from measuring import measure

CASES = 100_000


def conversation(number: int) -> dict[str, object]:
    """One call of a tool with its result, and an answer; half of the checks apply."""
    arguments = {"city": f"city {number}", "unit": "C"}
    call = {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": json.dumps(arguments)}}
    output = json.dumps({"temp": number % 40, "sky": "sunny"})
    return {
        "id": f"case-{number}",
        "messages": [
            {"role": "system", "content": "You are a helpful travel agent."},
            {"role": "user", "content": f"What is the weather in city {number}?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "name": "get_weather", "content": output},
            {"role": "assistant", "content": f"It is sunny in city {number} with {number % 40} degrees."},
        ],
        "expected": {
            "required_tools": ["get_weather"],
            "forbidden_tools": ["delete"],
            "contains": ["sunny"],
            "max_tool_calls": 3,
            "tool_arguments": [{"name": "get_weather", "arguments": {"city": f"city {number}"}}],
            "max_latency_ms": 2000,
        },
        "metrics": {"latency_ms": 100 + number % 2400, "cost_usd": 0.001},
    }


LOOP = """
import json, sys
with open(sys.argv[1], "rb") as file:
    for line in file:
        json.dumps(json.loads(line))
"""


def bare_loop(dataset: Path, cases: int) -> float:
    """Seconds of CPU that reading and writing one case takes in a loop of Python and nothing else."""
    return measure([sys.executable, "-S", "-c", LOOP, str(dataset)]).cpu / cases


def measured(cases: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        dataset = Path(folder, "recorded.jsonl")
        with dataset.open("w") as file:
            file.writelines(json.dumps(conversation(number)) + "\n" for number in range(cases))
        command = [sys.executable, "-m", "evalwright", "run", str(dataset), "--out", folder, "--quiet"]
        before = bare_loop(dataset, cases)
        cost = measure(command)
        loop = (before + bare_loop(dataset, cases)) / 2
    if cost.status not in (0, 1):
        sys.exit(cost.errors)
    rate = cases / cost.wall
    cpu = cost.cpu / cases
    print(
        f"{cases:>9,} cases  {rate:>9,.0f} a second  {cpu * 1e6:6.1f} us of CPU a case "
        f"= {cpu / loop:4.1f} loops of {loop * 1e6:5.1f} us  {cost.peak:5.0f} MiB"
    )


if __name__ == "__main__":
    total = int(sys.argv[1]) if len(sys.argv) > 1 else CASES
    measured(total // 10)
    measured(total)
