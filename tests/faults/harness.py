"""Make a project, run the installed command on it as a real process, kill it, and count what is on disk."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import yaml

import warm
from evalwright.model.protocols import RunReader
from evalwright.run.locations import run_places
from evalwright.run.stored_run import open_run

COMMAND = [sys.executable, "-m", "evalwright"]
PROJECT = Path(__file__).parent / "project"
EVALUATORS = [
    {"name": "fine", "type": "contains_text", "config": {"all_of": ["fine"]}},
    {"name": "polite", "type": "contains_text", "config": {"none_of": ["nonsense"]}},
    {"name": "quick", "type": "latency_under", "config": {"max_ms": 60000}},
]


@dataclass
class Project:
    """A suite in a folder of its own, and its runs."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def runs(self) -> Path:
        return self.folder / "runs"

    @property
    def ledger(self) -> Counter[str]:
        """How often each case was really given to the target."""
        path = self.folder / "ledger"
        return Counter(path.read_text().split("\n")[:-1] if path.exists() else [])

    def environ(self) -> dict[str, str]:
        return {**os.environ, "CALL_LEDGER": str(self.folder / "ledger"), **self.environment}

    @contextmanager
    def at_hand(self) -> Iterator[None]:
        """The variables of the project in this process too."""
        before = {name: os.environ.get(name) for name in self.environment}
        os.environ.update(self.environment)
        yield
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*COMMAND, *arguments],
            cwd=self.folder,
            env=self.environ(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def command(self, *arguments: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        return warm.run(["-m", "evalwright", *arguments], cwd=self.folder, env=self.environ(), timeout=timeout)

    def run(self) -> Path | None:
        """The newest run, as commands take it, in whatever store it is."""
        file = self.folder / "runs.sqlite"
        if file.exists():
            places = run_places(file)
            return places[-1] if places else None
        return self.run_dir()

    def run_dir(self) -> Path | None:
        found = sorted(path for path in self.runs.glob("[0-9]*") if path.is_dir())
        return found[-1] if found else None

    def go_on(self) -> list[str]:
        """The command that a user gives after a crash."""
        run = self.run()
        return ["resume", str(run), "--quiet", "--suite", "eval.yaml"] if run else ["run", "eval.yaml", "--quiet"]


LOCAL_FILES = {"type": "local_files", "path": "runs"}
SQLITE = {"type": "sqlite", "path": "runs.sqlite"}
POSTGRES = {"type": "postgres", "dsn": "${RUNS_DSN}"}


def make_project(
    folder: Path,
    modes: list[str],
    target: str = "hostile:slow",
    *,
    concurrency: int = 4,
    output: dict[str, str] = LOCAL_FILES,
    **system: object,
) -> Project:
    """A suite with one case for each mode, named by its position and mode."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(PROJECT / "hostile.py", folder)
    with (folder / "cases.jsonl").open("w") as file:
        for i, mode in enumerate(modes):
            file.write(json.dumps({"id": f"{i:05d}-{mode}", "input": {"mode": mode}}) + "\n")
    suite = {
        "eval": {"name": "faults"},
        "dataset": {"type": "jsonl", "path": "cases.jsonl"},
        "systems": [{"name": "main", "adapter": "python_function", "target": target, **system}],
        "evaluators": EVALUATORS,
        "run": {"max_concurrency": concurrency},
        "output": [output],
    }
    environment = {}
    if output is POSTGRES:
        from postgres_server import fresh_schema, server_dsn

        # The second one because a run folder does not say where its database is.
        environment |= dict.fromkeys(("RUNS_DSN", "EVALWRIGHT_POSTGRES_DSN"), server_dsn())
        suite["output"] = [{**output, "schema": fresh_schema()}]
    (folder / "eval.yaml").write_text(yaml.safe_dump(suite, sort_keys=False))
    return Project(folder, environment)


def kill_at_random(project: Project, kills: int, first: float, last: float, draw: random.Random) -> int:
    """Start the run and kill it, again and again; how often a kill hit a living process."""
    hits = 0
    for _ in range(kills):
        process = project.start(*project.go_on())
        try:
            process.communicate(timeout=draw.uniform(first, last))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            hits += 1
        else:
            if process.returncode == 0:
                break
    return hits


def lines(path: Path) -> list[dict[str, object]]:
    """The records of a file; a line that is none fails the caller."""
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line]


def check_complete(project: Project, cells: int) -> dict[str, int]:
    """Demand every cell exactly once among the records, whole ones only, and a summary equal to a recount."""
    run = project.run()
    assert run is not None, "there is no run"
    with project.at_hand():
        reader, _ = open_run(run)
    with closing(reader):
        counts = _count_records(reader, cells)
        summary = msgspec.to_builtins(reader.summary())
        statuses = Counter(str(verdict["status"]) for verdict in reader.verdicts(dict))
        assert reader.damage == []
    [variant] = summary["variants"]
    assert {k: v for k, v in variant["cells"].items() if v} == dict(statuses)
    assert summary["cells_total"] == cells
    assert summary["cells_missing"] == 0
    rollups = {r["evaluator"]: r["by_variant"]["main"]["n"] for r in summary["by_evaluator"]}
    assert rollups == {e["name"]: cells for e in EVALUATORS}
    return counts


def _count_records(reader: RunReader, cells: int) -> dict[str, int]:
    counts = {}
    for name, records, fields in (
        ("traces", reader.traces(dict), ("case_id", "variant_name", "trial")),
        ("results", reader.results(dict), ("case_id", "variant_name", "trial", "evaluator")),
        ("verdicts", reader.verdicts(dict), ("case_id", "variant_name", "trial")),
    ):
        keys = Counter(tuple(record[f] for f in fields) for record in records)
        expected = cells * (len(EVALUATORS) if "evaluator" in fields else 1)
        doubled = [key for key, times in keys.items() if times > 1]
        assert not doubled, f"{name} has {len(doubled)} records twice, such as {doubled[0]}"
        assert len(keys) == expected, f"{name} has {len(keys)} of {expected} records"
        counts[name] = len(keys)
    return counts
