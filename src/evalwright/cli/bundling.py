"""Write the pages of runs as files."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from evalwright.errors import InputError, counted

__all__ = ["MOST_CELLS", "write_pages"]

MOST_CELLS = 20_000


def write_pages(
    places: Sequence[Path], out: Path, only: str, earlier: Path | None, limit: int, *, with_labels: bool = False
) -> int:
    """Write a bundle of the runs at these places. Raises InputError, also if more than `limit` cells would have
    pages."""
    from evalwright.cli.screen import print_err, print_out
    from evalwright.cli.viewed_runs import runs_at, usual_places
    from evalwright.files.durable import storage_error
    from evalwright.viewer.bundle import Bundle
    from evalwright.viewer.bundle_files import write_bundle
    from evalwright.viewer.pages.compare import same_variants
    from evalwright.viewer.pairing import PairedRuns
    from evalwright.viewer.shelf import OpenRun

    if only == "changed" and earlier is None:
        raise InputError("--only changed needs --compare RUN_A")
    chosen = list(places) or usual_places()
    runs = [OpenRun(source, source.stamp()) for source in runs_at(chosen)]
    if not runs:
        raise InputError("there is no run to write pages for")
    compared = []
    if earlier is not None:
        others = list(runs_at([*chosen, earlier]))[len(runs) :]
        before = [OpenRun(source, source.stamp()) for source in others]
        if len(before) != 1 or len(runs) != 1:
            raise InputError("--compare needs one RUN and one other, earlier run")
        compared = [(sides, PairedRuns(*sides)) for sides in same_variants(before[0], runs[0])]
        if not compared:
            raise InputError("the two runs have no variant in common")
    bundle = Bundle(runs, only, compared, with_labels=with_labels)
    bundle.check(limit)
    if only == "all":
        message = (
            "pages hold prompts, answers and replies as they are stored; --only not-passed leaves passed cells out"
        )
        print(f"note: {message}", file=sys.stderr)
    try:
        write_bundle(bundle.files(), out)
    except OSError as error:
        raise storage_error("write", out, error) from error
    print_out([str(out)])
    print(f"{counted(len(runs), 'run')} written; open {out / 'index.html'}", file=sys.stderr)
    print_err(f"cannot be read: {note}" for note in bundle.unread)
    return 3 if bundle.unread else 0
