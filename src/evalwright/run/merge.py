"""Merging the shards of a run: they are checked against each other and their manifests, then copied cell by cell."""

from __future__ import annotations

import hashlib
import os
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import NamedTuple, cast

import msgspec

from evalwright.errors import AllMistakes, InputError, Problem, counted
from evalwright.files.durable import PRIVATE, replace_file
from evalwright.files.masker import Masker
from evalwright.files.paths import safe_id, seen_from_here
from evalwright.files.temporary import TemporaryFolder
from evalwright.model.cell_index import StaleIndex, index_of
from evalwright.model.plan import Plan, Plugin, Shard
from evalwright.model.protocols import RunReader
from evalwright.run.cells import Grid
from evalwright.run.doubts import as_of_one_machine
from evalwright.run.history import history_of
from evalwright.run.locations import RUNS, Place, find_run, folder_beside
from evalwright.run.outcomes import Outcome, conclude
from evalwright.run.shards import first_difference, stored_config
from evalwright.scoring.fold import fold
from evalwright.session import owns_process
from evalwright.session.open_files import room_for
from evalwright.stores.index.reading import RunIndex
from evalwright.stores.local_files import LocalFiles
from evalwright.stores.local_files.reader import ARTIFACTS, CASES
from evalwright.stores.local_files.writer import LocalWriter
from evalwright.stores.lock import turn_to_create
from evalwright.stores.manifest import Manifest, check_files, manifest_of, write_manifest
from evalwright.stores.merge.cells import renaming
from evalwright.stores.merge.copies import case_blocks, copy_artifacts, spool, write_lines
from evalwright.stores.merge.indexed_shard import IndexedShard
from evalwright.stores.merge.labels import labels_beside, lacks, write_labels
from evalwright.stores.merge.scanned_shard import ScannedShard
from evalwright.stores.merge.writing import MergedShard, write_merged

__all__ = ["merge"]

_DOCUMENTS = ("config.yaml", "config_hash.txt")
_OTHER_LABELS = (
    "the merged run that is already there lacks some labels of its shards; they were not copied, as its own labels may "
    "be newer: merge into another --out to include them"
)


class _Part(NamedTuple):
    """One stored shard."""

    address: Path
    reader: RunReader
    plan: Plan
    shard: Shard
    folder: Path | None
    """None for a run in a database."""
    manifest: Manifest | None
    whole: bool
    """Whether no cell of it is left."""

    def config(self) -> bytes:
        """The configuration of its suite, without secrets; empty for a run in a database."""
        return b"" if self.folder is None else stored_config(self.folder)

    @property
    def digest(self) -> str:
        """What identifies its content, so that copies are recognised."""
        if self.manifest is not None:
            return self.manifest.digest
        kinds = (self.reader.traces, self.reader.results, self.reader.verdicts)
        return _sha256(bytes(record) for records in kinds for record in records(msgspec.Raw))


def merge(runs: Sequence[Path | Place], out: Path | None = None, *, partial: bool = False) -> Outcome:
    """Merge the shards of a run into a new run folder in `out` (default: `runs`); the existing one if it is already
    there.

    With `partial`, the cells of shards that are missing or unfinished are missing in the run, too. Raises InputError
    for shards that are not of one run, or not all there, or changed since they were finished; nothing is written then.
    """
    with ExitStack() as stack:
        shards = _shard_parts(runs, stack)
        _must_be_one_run(shards)
        parts = _once(shards)
        if not partial:
            _must_be_whole(parts)
        _must_be_unchanged(parts)
        plan = _merged_plan(parts)
        earlier = as_of_one_machine([part.reader.summary() for part in parts], plan)
        store = LocalFiles(out or RUNS, Masker.of({}, os.environ))
        complete = len(parts) == parts[0].shard.of and all(part.whole for part in parts)
        digests = {str(part.shard.index): part.digest for part in parts} if complete else {}
        run_id = safe_id(plan.run_id)
        stack.enter_context(turn_to_create(store.folder, f"merge-{run_id}", store.folder / run_id))
        labels = labels_beside(folder_beside(part.reader) for part in parts)
        notes = [f"{len(parts):,} of {counted(parts[0].shard.of, 'shard')} merged"]
        writer = _earlier_merge(store, plan, digests)
        if writer is None:
            try:
                writer = _assembled_run(store, plan, parts, digests, labels, stack, look_up=True)
            except StaleIndex:
                writer = _assembled_run(store, plan, parts, digests, labels, stack, look_up=False)
        elif lacks(writer.folder, labels):
            notes.append(_OTHER_LABELS)
    with closing(writer):
        assert writer.plan is not None
        place = Place(store, writer.plan.run_id, writer.folder)
        return conclude(place, writer, writer.plan, fold(writer, writer.plan), False, *notes, earlier=earlier)


def _shard_parts(runs: Iterable[Path | Place], stack: ExitStack) -> list[_Part]:
    """The shards in their order. Raises InputError for all runs that are none."""
    parts, mistakes = list[_Part](), AllMistakes()
    for run in runs:
        with mistakes:
            parts.append(_part(run, stack))
    mistakes.refuse()
    return sorted(parts, key=lambda part: (part.shard.index, str(part.address)))


def _part(run: Path | Place, stack: ExitStack) -> _Part:
    place = find_run(run)
    reader = stack.enter_context(closing(place.store.read(place.run_id)))
    plan = reader.plan
    if plan is None or plan.shard is None:
        raise InputError(f"{place} is not a shard: expected runs that `evalwright run --shard k/n` made")
    folder = Path(reader.location) if isinstance(place.store, LocalFiles) else None
    manifest = None if folder is None else manifest_of(folder)
    whole = manifest is not None if folder is not None else _has_all_verdicts(reader, plan)
    return _Part(place.address, reader, plan, plan.shard, folder, manifest, whole)


def _has_all_verdicts(reader: RunReader, plan: Plan) -> bool:
    """Whether every cell of a shard in a database has its verdict; what a transaction wrote needs no manifest."""
    history = history_of(reader, Grid(plan))
    return history.finished_cells == len(history.traced)


def _once(parts: Sequence[_Part]) -> list[_Part]:
    """Each shard once: copies are recognised by their manifests. Raises InputError for different ones, and for no
    run."""
    parts_by_number: dict[int, _Part] = {}
    for part in parts:
        other = parts_by_number.setdefault(part.shard.index, part)
        if other is part:
            continue
        if other.reader.location == part.reader.location:
            raise InputError(f"{part.address} is named twice")
        if other.manifest is None or part.manifest is None or other.digest != part.digest:
            raise InputError(f"{other.address} and {part.address} are both {part.shard}, and differ: name one of them")
    if not parts_by_number:
        raise InputError("expected the runs of shards, found none")
    return list(parts_by_number.values())


def _must_be_one_run(parts: Sequence[_Part]) -> None:
    problems = [
        Problem(str(part.address), f"is not of the same run as {parts[0].address}: {difference}")
        for part in parts[1:]
        if (difference := first_difference(parts[0].plan, part.plan, (parts[0].config, part.config)))
    ]
    if problems:
        raise InputError(problems)


def _must_be_whole(parts: Sequence[_Part]) -> None:
    """Raise InputError with the commands that finish what is missing."""
    plan, of = parts[0].plan, parts[0].shard.of
    there = {part.shard.index for part in parts}
    suite = shlex.quote(str(seen_from_here(Path(plan.config_path))))
    leased = " --lease LEDGER" if parts[0].shard.leased else ""
    problems = [
        Problem(str(part.address), f"is not finished: evalwright resume {shlex.quote(str(part.address))}{leased}")
        for part in parts
        if not part.whole
    ]
    problems += [
        Problem(f"shard {k} of {of}", f"is not there: evalwright run {suite} --shard {k}/{of} --out DIR{leased}")
        for k in range(1, of + 1)
        if k not in there
    ]
    if problems:
        raise InputError(problems, f"not all {of} shards are finished; --partial merges those that are there")


def _must_be_unchanged(parts: Sequence[_Part]) -> None:
    problems: list[Problem] = []
    for part in parts:
        if part.folder is not None and part.manifest is not None:
            problems += check_files(part.folder, part.manifest)
        elif _sha256(case_blocks(part.reader)) != part.shard.cases_sha256:
            problems.append(Problem(str(part.address), f"{CASES} is not the shard's: its SHA-256 differs"))
    if problems:
        raise InputError(problems)


def _must_be_as_before(parts: Sequence[_Part]) -> None:
    """Raise InputError for shards that were finished and to which records were appended while they were copied."""
    changed = [part for part in parts if part.manifest and part.folder and manifest_of(part.folder) != part.manifest]
    if changed:
        message = "was changed while it was merged: once it is finished again, merge again"
        raise InputError([Problem(str(part.address), message) for part in changed])


def _sha256(lines: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line)
    return digest.hexdigest()


def _merged_plan(parts: Sequence[_Part]) -> Plan:
    """The plan of the earliest shard, as the whole run's: independent of the order in which shards are named."""
    earliest = min(parts, key=lambda part: part.plan.started_at)  # of several, the first: they are in their order
    plan = earliest.plan
    warnings = dict.fromkeys(line for part in parts for line in part.plan.warnings)
    return msgspec.structs.replace(
        plan,
        run_id=_id_of_all(plan.run_id, f"-shard-{earliest.shard.index}"),
        shard=None,
        store=Plugin("local_files"),  # without its path: merged elsewhere, the run has the same bytes
        warnings=[*warnings, *_other_files(parts)],
        # what another user's shard executes, calls or writes must not become the user's own by merging
        seal="ours" if all(part.plan.seal for part in parts) else "",
        exports=plan.exports if all(part.plan.seal for part in parts) else [],
    )


def _id_of_all(run_id: str, suffix: str) -> str:
    """The id of a shard without its suffix, and without what follows that; the suite's name may have it, too."""
    before, marker, _ = run_id.rpartition(suffix)
    return before if marker else run_id


def _other_files(parts: Sequence[_Part]) -> Iterator[str]:
    """Files, such as the systems' code, that were not the same in all shards."""
    used = {part.shard.index: _by_place(part.plan) for part in parts}
    for name in sorted({name for files in used.values() for name in files}):
        versions = Counter(files.get(name, "") for files in used.values())
        if len(versions) > 1:
            usual = versions.most_common(1)[0][0]
            others = [str(index) for index, files in used.items() if files.get(name, "") != usual]
            yield f"{name} was a different file in shard {', '.join(others[:10])}"


def _by_place(plan: Plan) -> dict[str, str]:
    """The hashes of a run's files by path relative to its suite, whose folder may differ between machines."""
    folder = os.path.dirname(plan.config_path)  # noqa: PTH120
    placed = {}
    for path, digest in plan.files.items():
        both_absolute = os.path.isabs(path) and os.path.isabs(folder)  # noqa: PTH117
        is_near = both_absolute and os.path.commonpath([path, folder]) != os.sep
        placed[os.path.relpath(path, folder) if is_near else path] = digest
    return placed


def _earlier_merge(store: LocalFiles, plan: Plan, digests: dict[str, str]) -> LocalWriter | None:
    """The run that was made from the very same shards before: merging twice changes nothing."""
    for run_id in store.run_ids() if digests else ():
        if run_id == plan.run_id or run_id.startswith(f"{plan.run_id}-"):
            manifest = manifest_of(store.folder / run_id)
            if manifest is not None and manifest.shards == digests:
                return store.open(run_id)
    return None


def _assembled_run(
    store: LocalFiles,
    plan: Plan,
    parts: Sequence[_Part],
    digests: dict[str, str],
    labels: Mapping[str, bytes],
    stack: ExitStack,
    *,
    look_up: bool,
) -> LocalWriter:
    shards: list[MergedShard] = []

    def fill(draft: Path) -> None:
        shards.extend(_shards(parts, plan, stack, look_up=look_up))
        write_merged(shards, draft, plan)
        write_lines(draft / CASES, case_blocks(parts[0].reader))
        # Shards with other keys for the same services have other hashes: report the plan's.
        described = [part.folder for part in parts if part.folder and part.plan.config_hash == plan.config_hash]
        for name in _DOCUMENTS:
            if source := next((folder / name for folder in described if (folder / name).is_file()), None):
                replace_file(draft / name, source.read_bytes(), PRIVATE)
        if problems := [
            artifact for part in parts for artifact in copy_artifacts(part.reader.artifacts, draft / ARTIFACTS)
        ]:
            raise InputError(problems)
        write_labels(labels, draft)
        _must_be_as_before(parts)
        if digests:
            statuses: Counter[str] = Counter()
            for shard in shards:
                statuses.update(shard.statuses)
            write_manifest(draft, statuses, digests)

    names = [name for part in parts for name in part.reader.unresolved]
    writer = store.assemble(plan, fill, {name: f"${{{name}}}" for name in names})
    writer.damage += [note for shard in shards for note in shard.damage]
    return writer


def _shards(parts: Sequence[_Part], plan: Plan, stack: ExitStack, *, look_up: bool) -> Iterator[MergedShard]:
    """Where the records of each shard are: by its index, if it has one and enough files may be open."""
    evaluators, at_once = [spec.name for spec in plan.evaluators], _open_at_once(len(parts))
    for nth, part in enumerate(parts):
        rename = renaming(part.plan.run_id, plan.run_id)
        if look_up and part.folder is not None and nth < at_once and (index := index_of(part.reader)) is not None:
            yield IndexedShard(stack.enter_context(closing(cast(RunIndex, index))), rename, evaluators)
        else:
            yield ScannedShard(_folder(part, stack), Grid(part.plan), rename, evaluators, keep_open=nth < at_once)


def _open_at_once(shards: int) -> int:
    """Shards of which six files each may be open, half of them the index's; if the process is ours, its limit may be
    raised."""
    return room_for(shards, 6, may_raise=owns_process())


def _folder(part: _Part, stack: ExitStack) -> Path:
    """The folder with a shard's records; those in a database are written to one for the duration of the merge."""
    if part.folder is not None:
        return part.folder
    temporary = stack.enter_context(closing(TemporaryFolder()))
    spool(part.reader, temporary.path)
    return temporary.path
