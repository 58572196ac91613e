"""Waiting until the shards of a run, which other machines write, are finished and have arrived completely."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from glob import glob
from pathlib import Path

from evalwright.errors import InputError
from evalwright.model.plan import Shard
from evalwright.run.locations import is_on_a_server
from evalwright.stores.local_files import LocalFiles, is_run
from evalwright.stores.manifest import manifest_of, marked_files

__all__ = ["finished_shards"]

_LOOK = 2.0
"""Seconds between two checks: a folder on a network disk is read each time."""
_MOST_NAMED = 10


def finished_shards(
    places: Sequence[str],
    of: int | None = None,
    *,
    report: Callable[[str], object] = lambda text: None,
    pause: Callable[[], object] = lambda: time.sleep(_LOOK),
) -> list[Path]:
    """The folders of all shards below these folders and globs, once each of them is there and finished.

    `of` is their number; without it, the first shard tells. What is still missing is reported when that changes. Raises
    InputError for shards of another number, and for what is not a folder.
    """
    for place in places:
        if is_on_a_server(place) or Path(place).is_file():
            raise InputError(
                f"{place} is not a folder: --watch waits for run folders; merge runs of a database without it"
            )
    message = ""
    while True:
        shards = dict(_finished_shards(places))
        known = {shard.of for shard in shards.values()}
        if of is not None and known - {of}:
            path, shard = next((path, shard) for path, shard in shards.items() if shard.of != of)
            raise InputError(f"--of {of}: {path} is {shard}")
        if missing := _missing({shard.index for shard in shards.values()}, of or max(known, default=None), places):
            if missing != message:
                report(missing)
            message = missing
            pause()
            continue
        return sorted(shards)


def _missing(there: set[int], of: int | None, places: Sequence[str]) -> str:
    """What is still missing, in words; empty if nothing is."""
    if of is None:
        return f"waiting for the first finished shard in {', '.join(places)}"
    left = [str(index) for index in range(1, of + 1) if index not in there]
    more = f" and {len(left) - _MOST_NAMED:,} more" if len(left) > _MOST_NAMED else ""
    return (
        f"waiting for {'shards' if left[1:] else 'shard'} {', '.join(left[:_MOST_NAMED])}{more} of {of}" if left else ""
    )


def _finished_shards(places: Iterable[str]) -> Iterator[tuple[Path, Shard]]:
    for path in {path.absolute(): None for place in places for path in _folders(place)}:
        # A folder that is being copied may be incomplete.
        with suppress(InputError, OSError), closing(LocalFiles(path.parent).read(path.name)) as reader:
            if _is_whole(path) and reader.plan is not None and reader.plan.shard is not None:
                yield path, reader.plan.shard


def _folders(place: str) -> Iterator[Path]:
    """The run folders at a place, or one or two levels below it, as `--out DIR` and `--out DIR/$TASK` make them."""
    for path in [Path(place)] if Path(place).exists() else map(Path, sorted(glob(place))):  # noqa: PTH207
        for folder in (path, *sorted(path.glob("*")), *sorted(path.glob("*/*"))):
            if folder.is_dir() and is_run(folder):
                yield folder


def _is_whole(folder: Path) -> bool:
    """Whether a shard has its manifest, and each file that it names has the size it says; merging checks the hashes."""
    manifest = manifest_of(folder)
    if manifest is None or manifest.shards:
        return False
    there = set(marked_files(folder))
    return all(name in there and (folder / name).stat().st_size == mark.bytes for name, mark in manifest.files.items())
