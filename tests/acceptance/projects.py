"""Small projects as a user would write them, and the command run on them in a process of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import warm

AGENT = """
import os, time

def run(case, variant):
    wanted = case["input"][variant["name"]] if variant["name"] in case["input"] else case["input"]["do"]
    if wanted == "raise" and not os.path.exists("mended"):
        raise RuntimeError("the system is down")
    if wanted == "slow":
        time.sleep(30)
    return {"final_answer": wanted, "metrics": {"cost_usd": 0.01, "token_input": 10, "token_output": 5}}
"""

EVAL = """
eval: {name: shop}
dataset: {type: jsonl, path: cases.jsonl}
systems:
  - {name: v, adapter: python_function, target: "agent:run"}
evaluators:
  - {name: polite, type: contains_text, config: {all_of: [thanks]}}
output: {type: local_files, path: runs}
"""

TWO_SYSTEMS = EVAL.replace(
    'target: "agent:run"}\n',
    'target: "agent:run"}\n  - {name: w, adapter: python_function, target: "agent:run"}\n',
).replace("output:", "run: {baseline_variant: v}\noutput:")


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def last_line(self) -> str:
        return self.out.rstrip("\n").rpartition("\n")[2]


@dataclass(frozen=True)
class Project:
    folder: Path

    def evalwright(self, *arguments: str | Path, **environment: str) -> Ended:
        words = ["-m", "evalwright", *map(str, arguments)]
        done = warm.run(words, cwd=self.folder, env={**_environment(), **environment})
        return Ended(done.returncode, done.stdout, done.stderr)

    def run(self, *arguments: str, name: str = "eval.yaml") -> Path:
        """Run the suite; the run folder that the last line names."""
        return self.folder / self.evalwright("run", name, "--quiet", *arguments).last_line


def interrupted(folder: Path, *arguments: str, begun: Callable[[], bool]) -> Ended:
    """What becomes of a command after Ctrl-C, and Ctrl-C again, once it has begun."""
    command = [sys.executable, "-m", "evalwright", *arguments]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline and not begun():
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            time.sleep(0.5)  # two signals that nobody has seen yet are one
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    return Ended(process.returncode, out, err)


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "EVALWRIGHT_DEBUG")}
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1"}


def project(folder: Path, do: dict[str, str | dict[str, str]], text: str = EVAL) -> Project:
    """A suite with one case for each id, whose system does what is said there: an answer, `raise` or `slow`."""
    folder.mkdir(parents=True, exist_ok=True)
    inputs = {case: {"do": word} if isinstance(word, str) else word for case, word in do.items()}
    lines = [json.dumps({"id": case, "input": given, "tags": [case[0]]}) for case, given in inputs.items()]
    (folder / "cases.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "eval.yaml").write_text(text)
    (folder / "agent.py").write_text(AGENT)
    return Project(folder)


def rows(run: Path, name: str) -> list[dict[str, Any]]:
    """The records in a file of a run folder."""
    return [json.loads(line) for line in (run / name).read_text().splitlines()]


def run_of(made: Project, name: str) -> Path:
    return next((made.folder / name).iterdir())


def outputs(path: Path) -> dict[str, str]:
    """Outputs of a step as the runner reads them."""
    found = re.findall(r"^(\w+)<<(\S+)\n(.*?)\n\2\n", path.read_text(), re.MULTILINE | re.DOTALL)
    return {name: value for name, _, value in found}
