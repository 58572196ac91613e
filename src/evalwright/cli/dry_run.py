"""`evalwright run --dry-run`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from evalwright.cli.screen import print_out, warn
from evalwright.errors import counted, money
from evalwright.run.forecast import Forecast, forecast
from evalwright.run.selection import all_warnings, lines_of_warnings
from evalwright.session.imports import nothing_imported

if TYPE_CHECKING:
    from evalwright.model.suite import Suite
    from evalwright.run.options import RunOptions

__all__ = ["print_forecast"]


def print_forecast(load: Callable[[], Suite], options: RunOptions, *, as_json: bool) -> int:
    """Print how many calls a run of the suite would make, and about what they would cost. Returns the exit code."""
    # Estimating the cost must not execute the code of a suite that is not trusted yet.
    with nothing_imported():
        suite = load()
        expected = forecast(suite, options)
        warnings = lines_of_warnings(all_warnings(suite))
        warn(warnings)
    code = 3 if expected.unread else 0
    if as_json:
        unread = [str(problem) for problem in expected.unread]
        document = {"forecast": {**expected._asdict(), "unread": unread, "warnings": warnings}, "exit_code": code}
        print_out([msgspec.json.encode(document).decode()])
        return code
    called = expected.cells - expected.recorded
    parts = [counted(called, "system call")] if called or not expected.recorded else []
    parts += [counted(expected.recorded, "recorded answer")] if expected.recorded else []
    print_out([f"Dry run: {', '.join([*parts, counted(expected.judge_calls, 'judge call')])}{_money(expected)}"])
    if expected.unpriced:
        message = f"No price is known for {', '.join(expected.unpriced)}, whose cost is not included"
        print_out([f"{message}: add it to the price table of the suite"])
    if expected.unnamed_calls:
        calls = counted(expected.unnamed_calls, "judge call")
        print_out([f"The suite names no model for {calls}, whose cost is not included"])
    if expected.unread:
        print_out(["Cases that cannot be read, and would be errors:", *map(str, expected.unread)])
    return code


def _money(expected: Forecast) -> str:
    parts = {"systems": expected.system_cost_usd, "judges": expected.judge_cost_usd}
    costs = {name: cost for name, cost in parts.items() if cost}
    message = ", ".join(f"{money(cost)} for {name}" for name, cost in costs.items())
    if len(costs) == 2:
        return f", about {money(sum(costs.values()))} ({message})"
    return f", about {message}" if message else ""
