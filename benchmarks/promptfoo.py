"""What a configuration of promptfoo costs here and there, and what an inline assertion in JavaScript costs.

    python benchmarks/promptfoo.py                              ours alone
    python benchmarks/promptfoo.py node .../promptfoo/dist/src/entrypoint.js     in turns with promptfoo

2,000 tests with three assertions that need no model, on `echo` and on a provider in Python that answers at once. Goal:
a tenth of the CPU and memory of promptfoo. Then 1,000 tests with one assertion in JavaScript more: at most 2 ms of CPU
each. The number of successes is counted on both sides: a figure with a wrong count is void.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml
from measuring import Cost, measure

TESTS, SCRIPTED, ROUNDS = 2000, 1000, 3
GOAL, GOAL_MS = 0.1, 2.0
PROVIDER = "def call_api(prompt, options, context):\n    return {'output': prompt}\n"
QUIET = {
    "PROMPTFOO_DISABLE_TELEMETRY": "1",
    "PROMPTFOO_DISABLE_UPDATE": "1",
    "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1",
}


def write(folder: Path) -> None:
    """The configurations."""
    (folder / "p.py").write_text(PROVIDER)
    plain = [{"type": "contains", "value": "question"}, {"type": "not-contains", "value": "zebra"}]
    tests = [
        {"vars": {"q": f"question {i}"}, "assert": [*plain, {"type": "regex", "value": f"{i}$"}]} for i in range(TESTS)
    ]
    for name, provider in (("echo", "echo"), ("python", "file://p.py")):
        _dump(folder / f"{name}.yaml", provider, tests)
    code = {"type": "javascript", "value": "output.includes('question') && context.vars.q.length > 3"}
    scripted = [{**test, "assert": [*test["assert"], code]} for test in tests[:SCRIPTED]]
    _dump(folder / "scripts.yaml", "echo", scripted)
    _dump(folder / "without.yaml", "echo", tests[:SCRIPTED])


def _dump(path: Path, provider: str, tests: list[dict[str, Any]]) -> None:
    path.write_text(yaml.safe_dump({"prompts": ["Say {{q}}"], "providers": [provider], "tests": tests}))


def ours(folder: Path, name: str) -> Cost:
    command = [sys.executable, "-m", "evalwright", "run", str(folder / f"{name}.yaml"), "--out", str(folder / "runs")]
    cost = measure([*command, "--json"])
    cost.said = cost.said.get("summary", {}).get("native", {})
    return cost


def theirs(folder: Path, name: str, program: list[str]) -> Cost:
    out = folder / "out.json"
    command = [*program, "eval", "-c", str(folder / f"{name}.yaml"), "-o", str(out), "--no-cache"]
    cost = measure(command, {**QUIET, "PROMPTFOO_CONFIG_DIR": str(folder / "home")})
    # By a process of its own: the memory of this one counts as that of the next that it starts (ru_maxrss, Linux).
    look = "import json, sys; print(json.dumps(json.load(open(sys.argv[1]))['results']['stats']))"
    cost.said = measure([sys.executable, "-c", look, str(out)]).said
    return cost


def side_by_side(folder: Path, name: str, program: list[str]) -> None:
    """Both in turns; the least of each side counts."""
    mine: list[Cost] = []
    other: list[Cost] = []
    for _ in range(ROUNDS):
        mine.append(ours(folder, name))
        if program:
            other.append(theirs(folder, name, program))
    for who, costs in (("evalwright", mine), ("promptfoo", other)):
        if costs:
            void = "" if all(cost.said.get("successes") == TESTS for cost in costs) else "VOID"
            cpu, peak = min(cost.cpu for cost in costs), min(cost.peak for cost in costs)
            print(f"{name:8} {who:12} {cpu:7.2f} s CPU  {peak:6.0f} MiB  {void}")
    for what in ("cpu", "peak") if other else ():
        share = min(getattr(one, what) for one in mine) / min(getattr(one, what) for one in other)
        print(f"{name:8} {what:12} {share:7.3f} of promptfoo's, goal {GOAL}: {'ok' if share <= GOAL else 'MISSED'}")


def scripts(folder: Path) -> None:
    """The difference that one assertion in JavaScript makes."""
    with_code = min(ours(folder, "scripts").cpu for _ in range(ROUNDS))
    without = min(ours(folder, "without").cpu for _ in range(ROUNDS))
    each = 1000 * (with_code - without) / SCRIPTED
    print(f"inline JavaScript, start of Node included: {each:.2f} ms CPU each, goal {GOAL_MS:g}", end=": ")
    print("ok" if each <= GOAL_MS else "MISSED")


def main() -> None:
    program = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder)
        side_by_side(folder, "echo", program)
        side_by_side(folder, "python", program)
        scripts(folder)


if __name__ == "__main__":
    main()
