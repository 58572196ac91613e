"""Runs to look at, and a browser without windows that looks at them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from evalwright.cli.viewed_runs import runs_at
from evalwright.formats.loading import load_suite
from evalwright.llm.choices import ModelChoices
from evalwright.model.plan import EvaluatorSpec, Shard
from evalwright.run.options import RunOptions
from evalwright.run.start import run_suite
from evalwright.viewer.access import Access
from evalwright.viewer.app import viewer
from evalwright.viewer.shelf import RunSource
from run.suites import suite

AGENT = """
import json
import time
from evalwright.pixie import observe

turns = {}

@observe()
def look_up(number):
    return {"needle": f"needle-{number}"}

def judge(request):
    passed = "order 3" not in request.messages[0].content
    if "Rubric" in request.messages[0].content + request.messages[-1].content:
        return json.dumps({"score": 4 if passed else 2, "rubric_reason": "because of the rubric"})
    found = {"text": "x", "passed": passed, "reason": "because of the reply"}
    return json.dumps({"score": 1.0, "assertions": [found]})

def answer(case, variant):
    number = case["input"]["number"]
    if number == 4:
        raise ValueError(f"no order {number}")
    time.sleep(0.002)  # a mean latency of 0 ms would not be shown
    found = look_up(number)
    turns[number] = turns.get(number, -1) + 1
    hasty = variant["name"] == "hasty" and LOST == 1 and number == 0
    lost = number == LOST or hasty or (number == 5 and turns[number] == 1)
    text = "<b>The order</b> is " + ("lost." if lost else "ready.")
    return {
        "final_answer": text,
        "messages": [
            {"role": "user", "content": case["input"]["user_message"]},
            {"role": "assistant", "tool_call": {"id": "t1", "name": "find", "arguments": {"n": number}}},
            {"role": "tool", "name": "find", "content": found},
            {"role": "assistant", "content": text},
        ],
        "metrics": {"token_input": 100 + number, "token_output": 20, "cost_usd": 0.001 * (number + 1)},
    }
"""
ATTACK = '"><script>window.__xss=1</script>'


def made_run(
    folder: Path,
    name: str = "shop",
    trials: int = 2,
    lost: int = 2,
    variants: Sequence[str] = ("agent",),
    judge: Any = None,
    tagged: bool = True,
    count: int = 6,
    shard: Shard | None = None,
) -> Path:
    """`count` cases and an attack: `lost` fails, 4 is an error, 5 is flaky, 3 is failed by the judge, 6 attacks the
    page; the variant `hasty` loses 0 as well where 1 is lost."""
    cases = [
        {
            "id": f"case-{number}",
            "input": {"number": number, "user_message": f"Where is order {number}?"},
            "tags": [f"t{number % 2}"],
            "metadata": {"suburb": f"s{number}"},
        }
        for number in range(count)
    ]
    attack = {"id": f"attack {ATTACK}", "tags": [ATTACK], "metadata": {ATTACK: ATTACK}}
    cases.append({**attack, "input": {"number": 6, "user_message": f"{ATTACK} \u202egnp.exe"}})
    if not tagged:
        for case in cases:
            del case["tags"], case["metadata"]
    (folder / "cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases))
    # of another size for another `lost`: byte code of the same second is taken for current by time and size
    (folder / "viewed_agent.py").write_text(f"LOST = {lost}\n{AGENT}" + "\n" * lost)
    judge = judge or {"model": "python:viewed_agent:judge", "nl_assertions": ["is polite"]}
    written = {
        "eval": {"name": name},
        "dataset": {"type": "jsonl", "path": "cases.jsonl"},
        "systems": [{"name": name, "adapter": "python_function", "target": "viewed_agent:answer"} for name in variants],
        "evaluators": [
            {"name": "says", "type": "contains_text", "config": {"all_of": ["ready"]}},
            {"name": "polite", "type": "llm_judge", "config": judge},
        ],
        "run": {"trials": trials, "max_concurrency": 1},
        "output": {"type": "local_files", "path": "runs"},
    }
    (folder / "eval.yaml").write_text(json.dumps(written))
    sys.modules.pop("viewed_agent", None)
    read = load_suite(folder / "eval.yaml")
    read.out = folder / "runs"
    try:
        return run_suite(read, RunOptions(models=ModelChoices(no_cache=True), shard=shard)).run_dir
    finally:
        sys.modules.pop("viewed_agent", None)


def scored_run(folder: Path, runs: int = 1) -> Path:
    """A suite of Letta that has only scores: case 0 has 1, case 1 has 0."""
    (folder / "data.csv").write_text("input,ground_truth\nCapital of France?,Paris\nCapital of Spain?,Madrid\n")
    (folder / "agent.py").write_text("def answer(message, ctx):\n    return 'It is Paris.'\n")
    written = {
        "name": "capitals",
        "dataset": "data.csv",
        "num_runs": runs,
        "target": {"kind": "python", "callable": "agent.py:answer"},
        "graders": {"same": {"kind": "tool", "function": "contains"}},
        "gate": {"kind": "simple", "metric_key": "same", "aggregation": "avg_score", "op": "gte", "value": 0.5},
    }
    (folder / "suite.yaml").write_text(json.dumps(written))
    read = load_suite(folder / "suite.yaml")
    read.out = folder / "runs"
    return run_suite(read).run_dir


def cut_short(run: Path) -> None:
    """Make it a run that this process is writing: the last case has no record yet."""
    for name in ("traces", "results", "verdicts"):
        lines = (run / f"{name}.jsonl").read_bytes().splitlines(keepends=True)
        (run / f"{name}.jsonl").write_bytes(b"".join(line for line in lines if b"attack" not in line))
    (run / "summary.yaml").unlink()
    (run / ".lock").write_text(f"{os.getpid()} {os.uname().nodename}\n")


@contextmanager
def site(runs: Path, token: str | None = None, **options: Any) -> Iterator[TestClient]:
    with site_of(lambda: runs_at([runs]), token, **options) as client:
        yield client


@contextmanager
def site_of(
    sources: Callable[[], Iterable[RunSource]], token: str | None = None, **options: Any
) -> Iterator[TestClient]:
    app = viewer(sources, Access(token, ("127.0.0.1:7766",), 7766), **options)
    yield TestClient(app, base_url="http://127.0.0.1:7766", follow_redirects=False)


def with_messages(run: Path, cell: str, number: int, ending: str = "") -> None:
    """Give the trace of a case that many messages, and as many tool calls that no message tells."""
    lines = []
    for line in (run / "traces.jsonl").read_text().splitlines():
        trace = json.loads(line)
        if trace["case_id"] == cell:
            trace["messages"] = [{"role": "user", "content": f"said-{n:05d}{ending}"} for n in range(number)]
            trace["tool_calls"] = [{"name": "find", "arguments": {"n": f"asked-{n:05d}"}} for n in range(number)]
        lines.append(json.dumps(trace))
    (run / "traces.jsonl").write_text("".join(f"{line}\n" for line in lines))


def with_outputs(run: Path, cell: str, output: Callable[[int], dict[str, Any]]) -> None:
    """Give each trial of a case another output."""
    lines = []
    for line in (run / "traces.jsonl").read_text().splitlines():
        trace = json.loads(line)
        if trace["case_id"] == cell:
            trace["output"] = output(trace["trial"])
        lines.append(json.dumps(trace))
    (run / "traces.jsonl").write_text("".join(f"{line}\n" for line in lines))


def with_long_names(folder: Path) -> tuple[Path, str, list[str]]:
    """A run of one cell with a very long id that seven evaluators failed; the id, and the names of the evaluators."""
    names = [f"check {number} of seven" for number in (3, 1, 7, 5, 2, 6, 4)]
    checks = [EvaluatorSpec(name, "contains_text", {"all_of": [f"never {name[6]}"]}) for name in names]
    asked = suite(folder, ["word " * 30], evaluators=checks)
    asked.cases[0].id = "a" * 3000 + "\u202e" + "z" * 3000
    return run_suite(asked).run_dir, asked.cases[0].id, names
