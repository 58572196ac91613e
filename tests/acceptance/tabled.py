"""Runs of a system that answers as a table says, to be decided."""

from __future__ import annotations

import json
from pathlib import Path

from acceptance.projects import Project, project

__all__ = ["SUITE", "decided", "ran", "tabled"]

AGENT = """
import collections, json, os
TABLE = json.load(open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "table.json")))
SEEN = collections.Counter()
def answer(case, variant):
    seen = SEEN[case["id"]]
    SEEN[case["id"]] += 1
    outcome = TABLE[case["id"]][seen]
    if outcome == "e":
        raise RuntimeError("HTTP 500")
    return {"final_answer": "thanks" if outcome == "1" else "no"}
"""
SUITE = """
eval: {name: shop}
dataset: {type: jsonl, path: cases.jsonl}
systems: [{name: v, adapter: python_function, target: "tabled:answer"}]
evaluators: [{name: polite, type: contains_text, config: {all_of: [thanks]}}]
run: {max_concurrency: 1, trials: TRIALS}
output: {type: local_files, path: runs}
"""


def tabled(folder: Path) -> Project:
    found = project(folder, {})
    (folder / "tabled.py").write_text(AGENT)
    return found


def ran(made: Project, table: str, question: str = "q") -> Path:
    """A run of the outcomes in `table`: `11x20 10x5` are 25 cases of two trials."""
    outcomes = [row for entry in table.split() for row in [entry.partition("x")[0]] * int(entry.partition("x")[2])]
    named = {f"c{i:03}": row for i, row in enumerate(outcomes)}
    cases = [
        {"id": c, "input": {"q": f"{question} {c}"}, "metadata": {"lang": "es" if i % 3 == 0 else "en", "shop": "1"}}
        for i, c in enumerate(named)
    ]
    (made.folder / "cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases))
    (made.folder / "table.json").write_text(json.dumps(named))
    (made.folder / "eval.yaml").write_text(SUITE.replace("TRIALS", str(len(outcomes[0]))))
    return made.run()


def decided(made: Project, a: Path, b: Path, *flags: str) -> tuple[int, dict[str, object]]:
    ended = made.evalwright("decide", a, b, "--json", *flags)
    return ended.code, json.loads(ended.out)
