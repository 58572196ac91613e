"""What marking an application costs it: `wrap` outside and inside a run, `observe`, and the import of the package.

    python benchmarks/capturing.py

Goals: `wrap` under 2 microseconds outside a run and under 10 inside one, `import evalwright.pixie` under 120 ms beyond
Python's own start. Medians of CPU time; the import in processes of its own. Beside each: how many times what the same
machine takes for a call of an empty function, and for Python's own start.
"""

from __future__ import annotations

import statistics
import sys
import time
import timeit
from collections.abc import Callable

from measuring import measure

from evalwright.capture.listeners import listening
from evalwright.capture.observations import observe
from evalwright.capture.wrap import clear_eval_input, clear_eval_output, init_eval_output, set_eval_input, wrap

CALLS, ROUNDS, STARTS = 20_000, 7, 9
VALUE = {"id": 7, "items": ["a", "b"], "total": 12.5}


def microseconds(call: Callable[[], object]) -> float:
    return statistics.median(timeit.repeat(call, timer=time.process_time, number=CALLS, repeat=ROUNDS)) / CALLS * 1e6


def wraps() -> dict[str, float]:
    def given() -> object:
        return wrap(VALUE, purpose="input", name="x")

    def shown() -> object:
        return wrap(VALUE, purpose="output", name="x")

    found = {"wrap input, outside": microseconds(given), "wrap output, outside": microseconds(shown)}
    set_eval_input({"x": VALUE})
    init_eval_output()
    found |= {"wrap input, inside": microseconds(given), "wrap output, inside": microseconds(shown)}
    clear_eval_input()
    clear_eval_output()
    return found


def observed() -> dict[str, float]:
    @observe()
    def step(number: int) -> int:
        return number

    outside = microseconds(lambda: step(1))
    with listening():
        return {"observe, outside": outside, "observe, inside": microseconds(lambda: step(1))}


def nothing() -> None:
    pass


def milliseconds(statement: str) -> float:
    return statistics.median(measure([sys.executable, "-c", statement]).cpu for _ in range(STARTS)) * 1000


def main() -> int:
    goals = {"outside": 2.0, "inside": 10.0}
    missed = 0
    empty = microseconds(nothing)
    print(f"{'a call of nothing':24} {empty:7.3f} us")
    for name, found in (wraps() | observed()).items():
        goal = goals[name.rpartition(" ")[2]] if name.startswith("wrap") else None
        missed += goal is not None and found >= goal
        print(f"{name:24} {found:7.2f} us {found / empty:6.0f} x" + (f"   goal < {goal:g} us" if goal else ""))
    start = milliseconds("pass")
    imported = milliseconds("import evalwright.pixie") - start
    missed += imported >= 120
    print(f"{'start of Python':24} {start:7.1f} ms")
    print(f"{'import evalwright.pixie':24} {imported:7.1f} ms {imported / start:6.1f} x   goal < 120 ms")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
