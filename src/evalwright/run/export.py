"""A stored run as the result files of an original program, whichever store it is in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalwright.errors import EvalwrightError, InputError, counted
from evalwright.files.new_folder import complete_folder
from evalwright.model.damage import unreadable_records
from evalwright.model.format import Format
from evalwright.model.plan import Plan
from evalwright.model.summary import RunSummary
from evalwright.registry import blaming, format_of, format_of_run, formats, load
from evalwright.run.locations import Place, folder_beside
from evalwright.run.outcomes import folded_summary
from evalwright.run.stored_run import open_run

__all__ = ["ExportedFolder", "export_run"]


@dataclass(frozen=True)
class ExportedFolder:
    """The folder of the result files."""

    folder: Path
    warnings: list[str]
    """What of the run the files do not say."""
    damage: list[str]
    complete: bool
    """Whether every record could be read."""


def export_run(run: Path | Place, form: str | None, out: Path | None, mask: Callable[[str], str]) -> ExportedFolder:
    """Write the result files of a format, by default the run's own, into a new folder `out`.

    The default for `out` is a folder with the name of the format beside the run's records. `mask` removes secrets from
    texts. Raises InputError for a format without result files, for a run that it cannot express, and if there is
    something at `out` already.
    """
    reader, plan = open_run(run)
    with closing(reader):
        own = format_of_run(plan) if form is None else format_of(form)
        name = _export_of(own)
        folder = out or folder_beside(reader) / own.name
        summary = folded_summary(reader, plan)
        reader.plan = plan  # a folder that evalh wrote holds no plan
        with complete_folder(folder) as draft, blaming("exports", name):
            export = load("exports", name).of_stored(plan, draft)
            with _fitting(reader.location, own):
                export.write(reader, plan, summary, mask)
            warnings = [*_unsaid(export, plan, summary)]
        return ExportedFolder(folder, warnings, reader.damage, not unreadable_records(reader))


@contextmanager
def _fitting(location: str, own: Format) -> Iterator[None]:
    """Raise InputError for records without the parts that runs of the format have: anyone may have changed them."""
    try:
        yield
    except EvalwrightError:
        raise
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        message = f"{type(error).__name__}: {error}".splitlines()[0]
        raise InputError(f"{location}: the records are not those of a run of {own.title} ({message})") from error


def _export_of(own: Format) -> str:
    """The name of a format's export."""
    offered = {suite_format.name: names for suite_format in formats() if (names := _names_in(suite_format))}
    if own.name not in offered:
        raise InputError(
            f"{own.title} has no result files besides the run folder itself; name a format that has, with --format: "
            f"{', '.join(offered)}"
        )
    return offered[own.name]


def _names_in(suite_format: Format) -> str | None:
    return next((name for name in suite_format.exports if hasattr(load("exports", name), "of_stored")), None)


def _unsaid(export: Any, plan: Plan, summary: RunSummary) -> Iterator[str]:
    if plan.shard is not None:
        yield "this is one shard of a run: `evalwright merge` makes the whole run of its shards"
    if summary.cells_missing:
        yield f"unfinished: {counted(summary.cells_missing, 'cell')} of the run not in the files yet"
    if hasattr(export, "losses"):
        yield from export.losses(plan, summary)
