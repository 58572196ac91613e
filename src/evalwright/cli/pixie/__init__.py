"""`evalwright pixie`: run, make and check datasets of instrumented applications."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from evalwright.cli.options import format_option
from evalwright.cli.pixie.tools import TOOLS, refused
from evalwright.cli.usage import PathParam
from evalwright.errors import InputError, Problem
from evalwright.formats.pixie import FORMAT
from evalwright.model.format import ALLOW_OUTSIDE

__all__ = ["command"]

_NO_FILES = "No dataset files found."


@click.group(FORMAT.name, short_help="Run, create and check datasets of instrumented applications.")
def command() -> None:
    """Datasets of instrumented applications, as pixie-qa's own command handles them."""


for _tool in TOOLS:
    command.add_command(_tool)


def _files(path: Path | None) -> list[Path]:
    from evalwright.formats.pixie.suite import datasets_in
    from evalwright.formats.pixie.surface.config import get_config

    place = path if path is not None else Path(get_config().dataset_dir)
    if place.is_file():
        return [place]
    return datasets_in(place) if place.is_dir() else []


@command.command("test", short_help="Run one dataset, or all in a folder.")
@click.argument("path", type=PathParam(), required=False)
@click.option("-v", "--verbose", is_flag=True, help="Show why evaluators did not pass.")
@click.option("--trust-pickled-types", is_flag=True, help="Restore objects of the project's own classes.")
@click.option("--no-open", is_flag=True, help="Do not open the scorecard in a browser.")
@format_option(ALLOW_OUTSIDE)
def test(
    path: Path | None, verbose: bool, trust_pickled_types: bool, no_open: bool, allow_outside: tuple[Path, ...]
) -> int:
    """Run the dataset at PATH, or every one below it; default: the configured dataset folder."""
    from evalwright.cli.pixie.runs import run_files
    from evalwright.cli.screen import print_err, print_out
    from evalwright.files.paths import near_file
    from evalwright.formats.pixie.surface.config import get_config
    from evalwright.reports.text import is_terminal

    files = _files(path)
    if not files:
        print_out([_NO_FILES])
        place = path if path is not None else Path(get_config().dataset_dir)
        print_err([f"{place}  {'contains no dataset' if place.exists() else f'does not exist{near_file(place)}'}"])
        return 1
    shown = is_terminal(sys.stdout) and not no_open
    words = [FORMAT.name, "test", *([str(path)] if path else []), *(["-v"] if verbose else [])]
    command = " ".join([*words, *(["--no-open"] if no_open else [])])
    options = {"trust_pickled_types": trust_pickled_types, "allow_outside": allow_outside}
    return run_files(files, verbose=verbose, command=command, shown=shown, options=options)


@command.group("dataset", short_help="Create, list, fill and check datasets.")
def dataset() -> None:
    """Datasets in the configured folder."""


@dataset.command("create", short_help="Create an empty dataset.")
@click.argument("name")
def create(name: str) -> int:
    """Create an empty dataset called NAME."""
    from evalwright.cli.screen import print_out
    from evalwright.formats.pixie.surface.dataset_store import DatasetStore

    try:
        DatasetStore().create(name)
    except (FileExistsError, ValueError) as error:
        return refused(error)
    print_out([f"Created dataset {name!r}."])
    return 0


@dataset.command("list", short_help="List the datasets.")
def list_datasets() -> int:
    """List the datasets of the configured folder; files that cannot be read are left out."""
    from evalwright.cli.screen import print_out
    from evalwright.formats.pixie.surface.dataset_store import DatasetStore
    from evalwright.reports.text import harmless

    rows = DatasetStore().list_details()
    if not rows:
        print_out(["No datasets found."])
        return 0
    cells = [["Name", "Rows", "Created", "Updated"]]
    for row in rows:
        times = [f"{row[key]:%Y-%m-%d %H:%M:%S}" for key in ("created_at", "updated_at")]
        cells.append([harmless(row["name"]), str(row["row_count"]), *times])
    widths = [max(len(line[i]) for line in cells) for i in range(4)]
    cells.insert(1, ["-" * width for width in widths])
    print_out(["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) for line in cells])
    return 0


@dataset.command("save", short_help="Add a span of the newest trace to a dataset.")
@click.argument("name")
@click.option("--select", type=click.Choice(["root", "last_llm_call", "by_name"]), default="root", help="Span to take.")
@click.option("--span-name", metavar="N", help="With by_name: take the latest span of this name.")
@click.option("--expected-output", is_flag=True, help="Read the expected output, as JSON, from standard input.")
@click.option("--notes", metavar="T", help="Text for eval_metadata.notes.")
def save(name: str, select: str, span_name: str | None, expected_output: bool, notes: str | None) -> int:
    """Append a span of the newest recorded trace to the dataset NAME."""
    from evalwright.cli.screen import print_out
    from evalwright.formats.pixie.surface.dataset_store import DatasetStore
    from evalwright.formats.pixie.surface.trace_store import newest_item

    try:
        item = newest_item(select, span_name)
        changes: dict[str, Any] = {}
        if expected_output:
            changes["expectation"] = _from_stdin()
        if notes is not None:
            changes["eval_metadata"] = {**(item.eval_metadata or {}), "notes": notes}
        saved = DatasetStore().append(name, item.model_copy(update=changes))
    except (FileNotFoundError, ValueError) as error:
        return refused(error)
    print_out([f"Saved to dataset {saved.name!r}: now {len(saved.items)} item(s)."])
    return 0


def _from_stdin() -> Any:
    text = sys.stdin.read()
    if not text.strip():
        raise ValueError("--expected-output needs JSON on the standard input, found nothing")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"standard input contains broken JSON: {error}") from error


@dataset.command("validate", short_help="Check datasets without running anything.")
@click.argument("path", type=PathParam(), required=False)
@format_option(ALLOW_OUTSIDE)
def validate(path: Path | None, allow_outside: tuple[Path, ...]) -> int:
    """Check the dataset at PATH, or every one below it; default: the configured dataset folder."""
    from evalwright.cli.screen import print_out, warn
    from evalwright.formats.pixie.datasets import read_dataset
    from evalwright.session.imports import nothing_imported

    files = _files(path)
    if not files:
        print_out([_NO_FILES])
        return 1
    errors = wrong = unsure = 0
    for file in files:
        try:
            with nothing_imported():
                document = read_dataset(file, allowed=allow_outside)
            if document.unfit:
                raise InputError(document.unfit)
        except InputError as error:
            print_out(["", f"{file}:", *(f"  - {_line(problem)}" for problem in error.problems)])
            errors, wrong = errors + len(error.problems), wrong + 1
        else:
            print_out([f"{file}: {'no error found' if document.unsure else 'OK'}"])
            unsure += document.unsure
            warn([*document.warnings, *document.objects])
    sound = (
        f"No errors were found, but not all was checked (entries concerned: {unsure:,})."
        if unsure
        else "All datasets are valid."
    )
    print_out(["", f"Validation failed: {errors} error(s) in {wrong} dataset file(s)." if wrong else sound])
    return 1 if wrong else 0


def _line(problem: Problem) -> str:
    from evalwright.reports.text import harmless

    return harmless(problem.message)
