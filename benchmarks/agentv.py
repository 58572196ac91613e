"""AgentEvals files: cases that a program judges, and files with many cases.

    python benchmarks/agentv.py

Goals: 500 cases with one Python program each as judge take at most 60 ms of CPU a case beyond what the programs take by
themselves; a YAML file of 10,000 cases is checked within 5 s of CPU, sound or with a mistake in each case, whose lines
are all known. CPU is that of the command with all its children. What PyYAML's C loader takes for the same file with
the collector off, without limits and duplicate keys, is told beside it, with ours as a multiple.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from measuring import Cost, measure

JUDGED, LOADED, STARTS = 500, 10_000, 20
JUDGE = """import json, sys
asked = json.load(sys.stdin)
print(json.dumps({"score": 1.0 if asked["candidate_answer"] == "4" else 0.0, "hits": ["four"], "misses": []}))
"""
CASE = """\
  - id: case-{0}
    expected_outcome: The agent answers question {0}
    input:
      - role: user
        content: What is {0} plus {0}?
    expected_output: "{0}"
    execution:
      evaluators:
        - {{name: sum, type: {1}}}
"""
ALONE = "import gc, yaml; gc.disable(); yaml.load(open({!r}, 'rb'), yaml.CSafeLoader)"
OURS = "from pathlib import Path; from evalwright.files.yaml import load; load(Path({!r}), 'yaml12')"


def suite(folder: Path, cases: int, evaluator: str) -> Path:
    (folder / "targets.yaml").write_text('targets:\n  - {name: default, provider: mock, response: "4"}\n')
    (folder / "judge.py").write_text(JUDGE)
    path = folder / "EVAL.yaml"
    path.write_text("name: many\nevalcases:\n" + "".join(CASE.format(i, evaluator) for i in range(cases)))
    return path


def judged(folder: Path) -> None:
    path = suite(folder, JUDGED, f"code_judge, script: [{sys.executable}, judge.py]")
    cost = _run(["run", str(path), "--out", str(folder / "runs"), "--quiet"], 0)
    asked = json.dumps({"candidate_answer": "4"})
    alone = measure(
        ["sh", "-c", f"for i in $(seq {STARTS}); do echo '{asked}' | {sys.executable} {folder}/judge.py; done"]
    )
    (run,) = (folder / "runs").iterdir()
    lines = (run / "verdicts.jsonl").read_text().splitlines()
    passed = sum(json.loads(line)["status"] == "pass" for line in lines)
    own = alone.cpu / STARTS
    each = cost.cpu / JUDGED - own
    print(
        f"{JUDGED} cases, {passed} passed: {each * 1000:.1f} ms of CPU a case (goal: 60), "
        f"beyond {own * 1000:.1f} of a judge by itself"
    )


def loaded(folder: Path) -> None:
    path = suite(folder, LOADED, "latency, threshold: 60000")
    sound = _run(["validate", str(path)], 0)
    alone = measure([sys.executable, "-c", ALONE.format(str(path))]).cpu
    own = measure([sys.executable, "-c", OURS.format(str(path))]).cpu
    print(
        f"{LOADED:,} sound cases: {sound.cpu:.2f} s of CPU (goal: 5), {sound.cpu / alone:.2f} times the "
        f"{alone:.2f} s of the C loader alone; of it reading YAML {own:.2f} s, {own / alone:.2f} times"
    )
    path = suite(folder, LOADED, "latency, threshold: -1")
    command = [sys.executable, "-m", "evalwright", "validate", str(path), "--json"]
    wrong = measure(command)
    problems = json.loads(subprocess.run(command, capture_output=True, check=False, text=True).stdout)["problems"]
    known = sum(isinstance(problem["line"], int) for problem in problems)
    print(f"{LOADED:,} wrong cases: {wrong.cpu:.2f} s of CPU (goal: 5), {known:,} lines of {len(problems):,} mistakes")


def _run(arguments: list[str], code: int) -> Cost:
    cost = measure([sys.executable, "-m", "evalwright", *arguments])
    if cost.status != code:
        sys.exit(cost.errors)
    return cost


def main() -> None:
    for measured in (judged, loaded):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / ".git").mkdir()
            measured(Path(folder))


if __name__ == "__main__":
    main()
