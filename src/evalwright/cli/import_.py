"""`evalwright import`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalwright import registry
from evalwright.cli.usage import Command, PathParam
from evalwright.errors import InputError, Problem, counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalwright.importers.pricing import ListPricing
    from evalwright.model.import_result import ImportResult

__all__ = ["command"]


@click.command("import", cls=Command)
@click.argument("files", nargs=-1, required=True, type=PathParam(), metavar="FILE...")
@click.option(
    "--format",
    "format_",
    metavar="NAME",
    help="Input format of the files (default: detected from their content).",
)
@click.option("--out", type=PathParam(), metavar="DIR", help="Folder for the suite (default: FILE-suite).")
@click.option(
    "--map",
    "pairs",
    multiple=True,
    metavar="NAME=PATH",
    help="Where to find a part in each record (repeatable).",
)
@click.option("--mapping", type=PathParam(), metavar="FILE", help="The same mapping as a YAML file.")
@click.option("--price", is_flag=True, help="Compute costs that were not recorded from tokens and list prices.")
def command(
    files: tuple[Path, ...],
    format_: str | None,
    out: Path | None,
    pairs: tuple[str, ...],
    mapping: Path | None,
    price: bool,
) -> int:
    """Write a suite that replays and judges recorded conversations, exported spans or results of other tools.

    FILEs are transcripts of agents, logs and results, or folders of them, all of one format, which is detected from
    their content; `evalwright list importers` names the formats. Parts of records that can be mapped: id, trial,
    messages, reply, actions, reward, started_at, finished_at, records, metadata.NAME and extra.NAME.
    """
    import shlex

    from evalwright.cli.screen import print_out, warn
    from evalwright.importers.detection import flaw_in
    from evalwright.importers.file_heads import head_of
    from evalwright.importers.mapping import pairs_to_mapping, read_mapping
    from evalwright.importers.sources import expanded, stem
    from evalwright.reports.text import harmless

    stated = {**(read_mapping(mapping) if mapping else {}), **pairs_to_mapping(pairs)}
    expanded_files, searched = expanded(files)
    name, kept = _format_of(expanded_files, format_, searched)
    if format_ is None and name == "openai-messages" and not stated:
        # the same messages, but to be judged by the expectations beside them, which an import would leave out
        _refuse_suites(
            [file for file in kept if head_of(file).any(lambda record: isinstance(record.get("expected"), dict))]
        )
    if format_ is None:
        print_out([f"format: {name} (detected)"])
    if left := [file for file in expanded_files if file not in {*kept}]:
        print_out([f"{counted(len(left), 'file')} of other formats in the folder left out"])
        warn(flaw for file in left if file.stat().st_size and (flaw := flaw_in(file)) is not None)
    more = {"pricing": _list_prices(name)} if price else {}
    result = _import(name, kept, out or Path(f"{stem(files[0])}-suite"), stated, more)
    trials = f", at most {counted(result.trials, 'trial')} each" if result.trials > 1 else ""
    print_out([f"{counted(result.cases, 'case')}, {counted(result.traces, 'recording')}{trials}"])
    print_out(harmless(note) for note in result.notes)
    print_out(f"wrote {harmless(str(path))}" for path in result.files)
    suite = next((path for path in result.files if path.suffix in (".yaml", ".yml")), result.files[0])
    first = "" if result.traces else f"name your system in {harmless(str(suite))}, then "
    print_out(["", f"Next: {first}evalwright run {harmless(shlex.quote(str(suite)))}"])
    return 0


def _format_of(files: Sequence[Path], chosen: str | None, searched: bool) -> tuple[str, list[Path]]:
    """The format, and the files in it: all of them, unless a folder was searched for them."""
    from evalwright.importers.detection import check, detected, flaw_in, no_format_fits
    from evalwright.importers.file_heads import head_of

    heads = {file: head_of(file) for file in files}
    if chosen is not None:
        registry.load("importers", chosen)
        if not searched:
            for file, head in heads.items():
                check(file, chosen, head)
            return chosen, [*files]
    names = {file: detected(head) for file, head in heads.items()}
    several = {name for name in names.values() if name is not None}
    name = chosen or (next(iter(several)) if len(several) == 1 else None)
    if name is None and not several:
        if flaws := [flaw for file in files if (flaw := flaw_in(file)) is not None]:
            raise InputError(flaws)
        _refuse_suites(files)
        raise no_format_fits(files[0], heads[files[0]])
    if name is None:
        problems = [
            Problem(str(file), f"looks like {suite_format}")
            for file, suite_format in names.items()
            if suite_format is not None
        ]
        raise InputError(
            problems, "the files are of several formats; pass --format NAME, or import them one after the other:"
        )
    kept = [file for file in files if names[file] == name]
    if not searched and len(kept) < len(files):
        raise InputError([Problem(str(file), f"is not in the format {name}") for file in files if names[file] != name])
    return name, kept or [*files]


def _refuse_suites(files: Sequence[Path]) -> None:
    """Raises InputError if a file is a suite: it holds no recording, and can be run instead."""
    import shlex

    from evalwright.formats.loading import fitting
    from evalwright.formats.shared.foreign import foreign_format
    from evalwright.importers.file_heads import head_of
    from evalwright.importers.record_values import dictionaries

    problems = []
    for file in files:
        head = head_of(file).mapping
        is_skills = any("prompt" in dictionary for dictionary in dictionaries(head.get("evals")))
        of = next((suite_format.name for suite_format in fitting(file, head)), None) or foreign_format(file, head)
        if of or is_skills:
            run = f"evalwright run {shlex.quote(str(file))}"
            problems.append(Problem(str(file), f"is a suite ({of or 'Agent Skills evals'}), not a recording: {run}"))
    if problems:
        raise InputError(problems)


def _list_prices(name: str) -> ListPricing:
    """The list prices, for a format whose costs can be computed from them. Raises InputError for others."""
    from inspect import signature

    from evalwright.importers.pricing import ListPricing
    from evalwright.llm.prices import built_in_price, day_of_prices, dollars

    importer = registry.load("importers", name)
    if "pricing" not in signature(importer.import_files).parameters:
        raise InputError(f"--price: the format {name} has no token counts of one model to compute costs from")

    def price_of(model: str, read: int, written: int, cached: int, cache_write: int) -> float | None:
        price = built_in_price(model)
        return None if price is None else dollars(price, read, written, cached, cache_write)

    return ListPricing(price_of, f"list prices of {day_of_prices()}")


def _import(
    name: str, files: Sequence[Path], out: Path, stated: Mapping[str, str], more: Mapping[str, Any]
) -> ImportResult:
    importer = registry.load("importers", name)
    with registry.blaming("importers", name):
        result: ImportResult = importer.import_files(files, out, stated, **more)
    return result
