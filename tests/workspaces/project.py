"""A suite on a small project, and the systems that work on it."""

from __future__ import annotations

from pathlib import Path

AGENT = """
import os, time
from pathlib import Path

tries = []

def edit(case, variant):
    path, todo = Path(variant["_workspace_path"]), case["input"]["do"]
    seen = sorted(p.name for p in path.iterdir())
    (path / "calc.py").write_text("changed by " + case["id"] + "\\n")
    if "raise" in todo:
        raise RuntimeError("boom")
    if "hang" in todo:
        (path / "late").write_text("x")
        time.sleep(60)
    if "die" in todo:
        os._exit(3)
    if "kill" in todo:
        os.kill(os.getpid(), 9)
    if "secret" in todo:
        (path / "log").write_text("key " + os.environ["SHOP_API_KEY"])
    if "wipe" in todo:
        import shutil
        shutil.rmtree(path)
    if "flaky" in todo and tries:
        seen += [p.name for p in path.parent.iterdir() if p.name.startswith(tries[0].name)]
    elif "flaky" in todo:
        tries.append(path)
        (path / "from the first try").write_text("x")
        beside = path.with_name(path.name + ".beside")  # where the streams of commands are kept
        beside.mkdir()
        (beside / "log").write_text("x")
        raise RuntimeError("boom")
    return {"final_answer": ",".join(seen)}
"""

SUITE = """
eval: {name: files}
dataset: {type: yaml, path: cases.yaml}
systems:
  - {name: v, adapter: python_function, target: "agent:edit", timeout_seconds: 2%s}
workspace: {type: tempdir_snapshot, copy_from: project, base_path: workspaces}
evaluators:
  - {name: changed, type: git_diff, config: {must_modify_files: [calc.py]}}
  - {name: reads, type: command, config: {cmd: [grep, -q, changed, calc.py]}}
run: {max_concurrency: 2%s}
output: {type: local_files, path: runs}
"""


def make(folder: Path, todos: list[str], system: str = "", run: str = "") -> Path:
    """The suite in a folder, with a case for each thing to do; the path of its file."""
    (folder / "project").mkdir()
    (folder / "project" / "calc.py").write_text("old\n")
    (folder / "project" / "keep.md").write_text("keep\n")
    (folder / "agent.py").write_text(AGENT)
    cases = "".join(f"  - {{id: c{i}, input: {{do: '{todo}'}}}}\n" for i, todo in enumerate(todos))
    (folder / "cases.yaml").write_text("cases:\n" + cases)
    (folder / "eval.yaml").write_text(SUITE % (system, run))
    return folder / "eval.yaml"
