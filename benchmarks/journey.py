"""How many of our files a run goes through: what a reader must open to follow it.

    python benchmarks/journey.py                 the figures of all journeys
    python benchmarks/journey.py native --files  and the files of one, those of every cell marked with *

A journey is `evalwright run` on a suite of three cases, called in a process of its own as the command line calls it.
A file counts when a function of it was called: a module that is only imported, and the body of a class, do not count.

in all    Files (and functions) called between the start of the command and its exit code, imports included.
per cell  Files called for every cell: those with a function called between the moment at which one cell is counted
          (`RunState.count`) and that at which the next one is. So taking the cell, calling the system, the trace, the
          results, the verdict and the count itself belong to a cell, and so does what happens to the cell before
          after its count. Cells run one after the other here, and what is not called for every cell is left out.

The monotonic clock advances by a microsecond at each look: a run does more where time has passed, such as a sync of its
files, and the figures must not depend on how busy the machine is.

Functions are those written as such (`def`, `lambda`); comprehensions are part of the function they stand in.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import io
import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

__all__ = ["JOURNEYS", "measure"]

CASES = 3
GOALS = {"native": (60, 20)}
"""Files in all and per cell, at most."""


def measure(journey: str) -> dict[str, list[str]]:
    """A journey in a process of its own: `functions` and `cell_functions`, each as `file:qualified name`.

    `modules` are those of ours that it had loaded in the end.
    """
    command = [sys.executable, str(Path(__file__).resolve()), "--child", journey]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"the journey {journey} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    document: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])
    return document


def files(functions: list[str]) -> list[str]:
    """The files in which functions lie, sorted."""
    return sorted({place.partition(":")[0] for place in functions})


# ------------------------------------------------------------ journeys


def native(folder: Path) -> Path:
    """A native suite: a Python function and one check that calls no model."""
    return _native(folder, {"name": "capital", "type": "contains_text", "config": {"all_of": ["city"]}})


def judge(folder: Path) -> Path:
    """The same with one judge, which asks a server on this machine that always gives the same reply."""
    os.environ |= {"OPENAI_BASE_URL": f"http://127.0.0.1:{_serve()}/v1", "OPENAI_API_KEY": "none"}
    config = {"model": "gpt-test", "rubric": "The answer names a city.", "pass_threshold": 0.5}
    return _native(folder, {"name": "judge", "type": "llm_judge", "config": config})


def letta(folder: Path) -> Path:
    """A suite of Letta Evals with a Python function as its agent and one check that calls no model."""
    (folder / "agent.py").write_text('def answer(message, ctx):\n    return f"the city of {message}"\n')
    samples = [{"id": i, "input": f"country {i}", "ground_truth": "city"} for i in range(CASES)]
    (folder / "data.jsonl").write_text("".join(json.dumps(sample) + "\n" for sample in samples))
    suite = folder / "suite.yaml"
    suite.write_text(
        "name: journey\ndataset: data.jsonl\n"
        "target: {kind: letta_agent, agent_id: a, backend: agent.py:answer}\n"
        "graders: {right: {kind: tool, function: contains}}\n"
        "gate: {kind: simple, metric_key: right, op: gte, value: 1}\n"
    )
    return suite


def _native(folder: Path, evaluator: dict[str, Any]) -> Path:
    (folder / "agent.py").write_text(
        'async def answer(case, variant):\n    return {"final_answer": f"the city of {case[\'id\']}"}\n'
    )
    cases = [{"id": f"c{i}", "input": {"user_message": f"country {i}"}} for i in range(CASES)]
    (folder / "cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases))
    document = {
        "eval": {"name": "journey"},
        "dataset": {"type": "jsonl", "path": "cases.jsonl"},
        "systems": [{"name": "main", "adapter": "python_function", "target": "agent:answer"}],
        "evaluators": [evaluator],
        "output": [{"type": "local_files", "path": "runs"}],
    }
    suite = folder / "eval.yaml"
    suite.write_text(json.dumps(document))
    return suite


JOURNEYS: dict[str, Callable[[Path], Path]] = {"native": native, "letta": letta, "judge": judge}

_REPLY = {
    "id": "1",
    "object": "chat.completion",
    "created": 0,
    "model": "gpt-test",
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "message": {
                "role": "assistant",
                "content": '{"score": 1, "reason": "yes", "passed": true}',
            },
        }
    ],
    "usage": {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20},
}


class _Script(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps(_REPLY).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def _serve() -> int:
    """The port of a server in threads of this process."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Script)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


# ------------------------------------------------------------ measuring


class _Seen:
    """Functions of ours that were called, in all and since the last cell was counted."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._places: dict[CodeType, str] = {}
        self.functions: set[str] = set()
        self.cells: list[set[str]] = []
        self._now: set[str] = set()

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        if event != "call":
            return
        code = frame.f_code
        place = self._places.get(code)
        if place is None:
            place = self._places[code] = self._place(code)
        if not place:
            return
        self.functions.add(place)
        self._now.add(place)
        if code.co_qualname == "RunState.count":
            self.cells.append(self._now)
            self._now = set()

    def _place(self, code: CodeType) -> str:
        # Python 3.14 has a function for the annotations of each class.
        written = code.co_name == "<lambda>" or (code.co_name != "__annotate__" and not code.co_name.startswith("<"))
        if not written or not code.co_flags & inspect.CO_OPTIMIZED or not code.co_filename.startswith(self._source):
            return ""
        return f"{code.co_filename.removeprefix(self._source)}:{code.co_qualname}"


@contextlib.contextmanager
def _seen(source: str) -> Iterator[_Seen]:
    seen = _Seen(source)
    threading.setprofile(seen)
    sys.setprofile(seen)
    try:
        yield seen
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def child(journey: str) -> None:
    """Run a journey here and print what was seen as the last line."""
    from importlib.util import find_spec

    spec = find_spec("evalwright")
    assert spec is not None
    assert spec.origin is not None
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["HOME"] = os.environ["XDG_CACHE_HOME"] = folder  # no reply kept from an earlier journey
        suite = JOURNEYS[journey](Path(folder))
        ended, out = 0, io.StringIO()
        time.monotonic = itertools.count(step=1e-6).__next__
        with _seen(str(Path(spec.origin).parent) + os.sep) as seen, contextlib.redirect_stdout(out):
            from evalwright.cli import main

            try:
                main(["run", str(suite), "--concurrency", "1"])
            except SystemExit as ending:
                ended = int(ending.code or 0)
    if ended or len(seen.cells) != CASES:
        sys.exit(f"exit code {ended}, {len(seen.cells)} cells\n{out.getvalue()}")
    every = set.intersection(*seen.cells[1:])
    loaded = sorted(name for name in sys.modules if name.startswith("evalwright"))
    print(json.dumps({"functions": sorted(seen.functions), "cell_functions": sorted(every), "modules": loaded}))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("journeys", nargs="*", metavar="JOURNEY", help=f"{', '.join(JOURNEYS)}; all without one")
    parser.add_argument("--files", action="store_true", help="also list the files")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(args.child)
        return 0
    print(f"{'journey':8} {'in all':>24} {'per cell':>24}  goal (files)")
    for journey in args.journeys or JOURNEYS:
        found = measure(journey)
        counts = [(len(files(found[key])), len(found[key])) for key in ("functions", "cell_functions")]
        texts = [f"{of_files} files, {functions} functions" for of_files, functions in counts]
        goal = GOALS.get(journey)
        met = goal is None or all(count[0] <= most for count, most in zip(counts, goal, strict=True))
        print(f"{journey:8} {texts[0]:>24} {texts[1]:>24}  {f'<= {goal[0]}, <= {goal[1]}' if goal else ''}", end="")
        print("" if met else "  MISSED")
        if args.files:
            cell = set(files(found["cell_functions"]))
            print("\n".join(f"  {'*' if file in cell else ' '} {file}" for file in files(found["functions"])))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
