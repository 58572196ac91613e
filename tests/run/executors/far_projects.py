"""Projects whose systems are called on the machines of a cluster."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import yaml

from run.executors.machines import Machines

AGENT = """
import asyncio, os, time
from evalwright.plugins import Answer, Doubt

def _note(case):
    with open(os.environ["LEDGER"], "ab", 0) as ledger:
        ledger.write(f"{case['id']} {os.getpid()}\\n".encode())

def answer(case, variant):
    _note(case)
    time.sleep(float(os.environ.get("NAP", "0")))
    return {"final_answer": "done " + case["id"]}

async def waiting(case, variant):
    await asyncio.sleep(0.01)
    print("heard", case["id"])
    assert os.environ["API_KEY"] in ("none", "sesame-canary-77")
    return {"final_answer": "done at " + os.getcwd()}

def leaving(case, variant):
    if case["id"] == "c0":
        os._exit(3)
    return {"final_answer": "done"}

def changing(case, variant):
    path = variant["_workspace_path"]
    with open(os.path.join(path, "new.txt"), "w") as file:
        file.write("from " + case["id"])
    return {"final_answer": "done"}

def ending(case, variant):
    time.sleep(0.05)
    if case["id"] == "c3":
        os.kill(os.getpid(), 9)
    return {"final_answer": "done"}

def doubting(case, variant):
    _note(case)
    time.sleep(0.05)
    lost = os.environ["LEDGER"] + ".lost"
    if (case["id"], variant["name"]) == ("c9", "doubting") and not os.path.exists(lost):
        open(lost, "x").close()
        os.kill(os.getpid(), 9)
    doubts = [Doubt("no date was found", if_all=True)]
    if case["id"] != "c1":
        doubts.append(Doubt("no name was found", if_all=True))
    if case["id"] in ("c0", "c7"):
        doubts.append(Doubt("a line is missing", "line 7"))
    return Answer.of("done", doubts=doubts)

def judge(request):
    name = request.messages[-1].content.rpartition("done ")[2].split()[0]
    _note({"id": name})
    time.sleep(0.05)
    return '{"assertions": [{"passed": true, "reason": "' + os.environ["API_KEY"] + '"}]}'

async def blocking(case, variant):
    if case["id"] == "c1":
        time.sleep(600)
    return {"final_answer": "done"}
"""


class Project:
    """A suite in a folder of its own, run by the command line."""

    def __init__(self, folder: Path, machines: Machines) -> None:
        self.folder, self.ledger = folder, folder / "ledger"
        self.environment = {**machines.environment, "COLUMNS": "120"}
        (folder / "agent.py").write_text(AGENT)

    def suite(self, cases: int, systems: list[dict[str, object]], **more: object) -> None:
        lines = [json.dumps({"id": f"c{n}", "input": {"user_message": "hello"}}) for n in range(cases)]
        (self.folder / "cases.jsonl").write_text("\n".join(lines) + "\n")
        env = {"env_vars": {"LEDGER": str(self.ledger), "NAP": "0.05", "API_KEY": "${API_KEY:-none}"}}
        run = {"max_concurrency": 8, "executor": {"type": "ray", "runtime_env": env}, **more.pop("run", {})}  # type: ignore[dict-item]
        suite = {
            "eval": {"name": "far"},
            "dataset": {"type": "jsonl", "path": "cases.jsonl"},
            "systems": systems,
            "evaluators": [{"name": "says", "type": "contains_text", "config": {"all_of": ["done"]}}],
            "run": run,
            "output": [{"type": "local_files", "path": "runs"}],
        }
        (self.folder / "eval.yaml").write_text(yaml.safe_dump({**suite, **more}))

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "evalwright", *words],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str) -> tuple[int, str]:
        with self.start(*words) as process:
            out, err = process.communicate(timeout=300)
        return process.returncode, out + err

    def calls(self) -> list[tuple[str, int]]:
        lines = self.ledger.read_text().splitlines() if self.ledger.exists() else []
        return [(line.split()[0], int(line.split()[1])) for line in lines]

    def after_calls(self, number: int, process: subprocess.Popen[str]) -> list[tuple[str, int]]:
        """The calls, once there are so many."""
        until = time.monotonic() + 240
        while len(calls := self.calls()) < number:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < until
            time.sleep(0.02)
        return calls

    @property
    def run_folder(self) -> Path:
        [folder] = [path for path in (self.folder / "runs").iterdir() if path.is_dir()]
        return folder

    def records(self, name: str) -> list[dict[str, object]]:
        return [json.loads(line) for line in (self.run_folder / name).read_text().splitlines()]

    def verdicts(self) -> dict[str, str]:
        return {
            f"{record['case_id']} {record['variant_name']}": str(record["status"])
            for record in self.records("verdicts.jsonl")
        }


def function(name: str, **more: object) -> dict[str, object]:
    return {"name": name, "adapter": "python_function", "target": f"agent:{name}", **more}


def all_pass(cases: int, *systems: str) -> dict[str, str]:
    return {f"c{n} {system}": "pass" for n in range(cases) for system in systems}
