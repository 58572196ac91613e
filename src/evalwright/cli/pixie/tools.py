"""Commands of `evalwright pixie` besides `test`: record a run, make an entry of it, analyse results, start a
project."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from evalwright.cli.usage import PathParam
from evalwright.errors import TargetError

__all__ = ["TOOLS", "refused"]

_FOLDERS = ("datasets", "tests", "scripts")
_FILE = PathParam(dir_okay=False)


def refused(error: object) -> int:
    """Print what is wrong and return the exit code."""
    from evalwright.reports.text import harmless

    print(harmless(f"Error: {error}"), file=sys.stderr)
    return 1


@click.command("trace", short_help="Run an application once and record it.")
@click.option("--runnable", required=True, metavar="FILE.py:NAME", help="The application.")
@click.option("--input", "arguments", required=True, type=_FILE, help="File with its arguments, a JSON object.")
@click.option("--output", required=True, type=_FILE, help="File to write the trace to, as JSON Lines.")
def trace(runnable: str, arguments: Path, output: Path) -> int:
    """Run the application once with the arguments of a file; write what it wrapped and its model calls."""
    import asyncio

    from evalwright.cli.screen import print_out
    from evalwright.files.dotenv import nearest_dotenv, read_dotenv
    from evalwright.formats.pixie.trace_files import record
    from evalwright.session import learn, process_environment

    learn(read_dotenv(nearest_dotenv(Path.cwd()), process_environment()))
    try:
        raised = asyncio.run(record(runnable, _object_in(arguments), output))
    except (OSError, ValueError) as error:
        return refused(error)
    if raised is not None:
        rejected = isinstance(raised, TargetError)  # by the model of the arguments
        why = str(raised) if rejected else f"the application raised {type(raised).__name__}: {raised}"
        return refused(f"{why} (until then: {output})")
    print_out([f"Trace written to {output}"])
    return 0


def _object_in(path: Path) -> dict[str, Any]:
    from evalwright.files.key_paths import as_written
    from evalwright.files.paths import unreadable

    try:
        content = json.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise ValueError(f"{path}: {unreadable(path, error)}") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: broken JSON: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path}: expected a JSON object, found {as_written(content, 'an object')}")
    return content


@click.command("format", short_help="Turn a recorded run into a dataset entry.")
@click.option("--input", "recorded", required=True, type=_FILE, help="A file that `trace` wrote.")
@click.option("--output", required=True, type=_FILE, help="File to write the entry to, as JSON.")
def format_trace(recorded: Path, output: Path) -> int:
    """Turn a recorded run into a dataset entry."""
    from evalwright.cli.screen import print_out
    from evalwright.formats.pixie.trace_files import save_entry

    try:
        save_entry(recorded, output)
    except (OSError, ValueError) as error:
        return refused(error)
    print_out([f"Dataset entry written to {output}"])
    return 0


@click.command("analyze", short_help="Have a model analyse the results of a test run.")
@click.argument("run_id", metavar="ID")
def analyze(run_id: str) -> int:
    """Have PIXIE_ANALYZE_MODEL analyse each dataset of test run ID; its replies are stored beside result.json."""
    import asyncio

    from evalwright.cli.screen import print_out
    from evalwright.formats.pixie.analysis import analyze as analyzed
    from evalwright.formats.pixie.analysis import read_results

    try:
        folder, results = read_results(run_id)
    except (OSError, ValueError) as error:
        return refused(error)
    print_out([f"Analyzing {len(results.datasets)} dataset(s) of the test run {run_id}"])
    problems = asyncio.run(analyzed(folder, results))
    for problem in problems:
        refused(problem)
    print_out([f"Analysis saved to {folder}"] if len(problems) < len(results.datasets) else [])
    return 1 if problems else 0


@click.command("init", short_help="Create the folders of a project.")
@click.argument("root", type=PathParam(file_okay=False), required=False)
def init(root: Path | None) -> int:
    """Create the folders for datasets, tests and scripts in ROOT (default: PIXIE_ROOT); nothing is overwritten."""
    from evalwright.cli.screen import print_out
    from evalwright.formats.pixie.surface.config import get_config

    place = root if root is not None else Path(get_config().root)
    for folder in _FOLDERS:
        (place / folder).mkdir(parents=True, exist_ok=True)
    for package in (place, place / "scripts"):
        (package / "__init__.py").touch()
    print_out([f"Initialized {place}"])
    return 0


TOOLS = (trace, format_trace, analyze, init)
