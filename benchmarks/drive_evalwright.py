"""evalwright as one of several programs that a comparing benchmark drives: `drive_evalwright.py WORK -n N ...`.

The comparer brings its own data and clock in a module `_common` (with `gen`, `main`, `Phase`); the environment
variable BENCH_COMMON names its folder. Without a comparer, use `bench.py`.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), *filter(None, [os.environ.get("BENCH_COMMON")])]

import works  # noqa: E402

from evalwright import __version__  # noqa: E402

try:
    from _common import gen, main  # type: ignore[import-not-found]
except ImportError:
    sys.exit("set BENCH_COMMON to the folder of the comparing benchmark's _common.py")

CASE_CHECKS: list[dict[str, Any]] = [
    {
        "name": "exact",
        "type": "exact_match",
        "config": {"field": "output.final_answer", "expected_from": "answer"},
    },
    {"name": "contains", "type": "contains_text"},
    {"name": "regex", "type": "contains_text", "config": {"all_of": ["order-"]}},
]
TRACE_CHECKS: list[dict[str, Any]] = [
    {"name": "tool", "type": "tool_called", "config": {"tool_name": gen.MUST_TOOL}},
    {"name": "contains", "type": "contains_text", "config": {"all_of": [gen.NEEDLE]}},
    {"name": "not_contains", "type": "contains_text", "config": {"none_of": [gen.FORBIDDEN]}},
    {"name": "latency", "type": "latency_under", "config": {"max_ms": gen.MAX_MS}},
    {
        "name": "max_calls",
        "type": "schema_match",
        "config": {"field": "tool_calls", "schema": {"maxItems": gen.MAX_CALLS}},
    },
]


def _suite(o: Any, form: str = "evalh", **settings: Any) -> Path:
    return works.write_suite(o.scratch, gen.ensure(form, o.n, o.root), CASE_CHECKS, **settings)


def w1(o: Any) -> dict[str, Any]:
    count, phase = works.load_cases(_suite(o))
    return {"phase": phase, "loaded": count}


def w1_yaml(o: Any) -> dict[str, Any]:
    count, phase = works.load_cases(_suite(o, "evalh_yaml"))
    return {"phase": phase, "loaded": count}


def _run(o: Any, run: Callable[[Path], tuple[Path, works.Clock]] = works.run_cases, **settings: Any) -> dict[str, Any]:
    shutil.rmtree(o.scratch / "runs", ignore_errors=True)
    run_dir, phase = run(_suite(o, **settings))
    size = sum(file.stat().st_size for file in run_dir.rglob("*") if file.is_file())
    return {
        "phase": phase,
        "passes": works.passes(run_dir),
        "truth": gen.truth_cases(o.n),
        "bytes_written": size,
        "run_dir": str(run_dir),
    }


def w2(o: Any) -> dict[str, Any]:
    return _run(o)


def w3(o: Any) -> dict[str, Any]:
    out = _run(o, concurrency=o.concurrency, seconds=0.2)
    ideal = o.n * 0.2 / o.concurrency
    return {**out, "ideal_s": ideal, "efficiency": round(ideal / out["phase"].wall, 3)}


def w4(o: Any) -> dict[str, Any]:
    run_dir = works.stored_run(o.scratch / "stored", TRACE_CHECKS, gen.ensure("evalh_traces", o.n, o.root))
    phase = works.re_evaluate(run_dir)
    return {"phase": phase, "passes": works.passes(run_dir), "truth": gen.truth_traces(o.n)}


def w5_run(o: Any) -> dict[str, Any]:
    o.n = 1
    return _run(o, works.run_command, concurrency=4)


def w6(o: Any) -> dict[str, Any]:
    """Compare two runs, made once with evalwright itself outside of the clock."""
    kept = o.root / f"evalwright-w6-{o.n}"
    for side, answer in (("a", "echo"), ("b", "worse")):
        if not (kept / side / "summary.yaml").exists():
            out = _run(o, answer=answer)
            shutil.copytree(out["run_dir"], kept / side, dirs_exist_ok=True)
    _, phase = works.compare_runs(kept / "a", kept / "b")
    return {"phase": phase}


if __name__ == "__main__":
    main(
        {"W1": w1, "W1yaml": w1_yaml, "W2": w2, "W3": w3, "W4": w4, "W5run": w5_run, "W6": w6},
        f"evalwright {__version__}",  # reading it from the package's metadata would take a tenth of a small run
    )
