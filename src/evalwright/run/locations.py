"""Where runs are: the store that a suite names, and the one that a path on the command line points to.

A run in a folder or a SQLite file is found by its path. One elsewhere leaves a note in the folder `runs`, with
secrets as `${NAME}`: `runs/<run id>/store.json`, whose folder then stands for the run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from evalwright.errors import EvalwrightError, InputError, Problem
from evalwright.files.credentials import is_credential
from evalwright.files.durable import PRIVATE, replace_file
from evalwright.files.masker import Masker
from evalwright.files.paths import safe_id
from evalwright.files.placeholders import expand
from evalwright.model.plan import Plan, Plugin
from evalwright.model.protocols import RunReader, Store
from evalwright.model.trace import is_newer
from evalwright.registry import load
from evalwright.stores.documents import newer_version
from evalwright.stores.drafts import draft_in, free_places, publish
from evalwright.stores.local_files import LocalFiles
from evalwright.stores.postgres import DSN_VARIABLE

if TYPE_CHECKING:
    from evalwright.model.suite import Suite

__all__ = [
    "NOTE",
    "RUNS",
    "Place",
    "address_of",
    "find_run",
    "folder_beside",
    "is_on_a_server",
    "is_written",
    "label_sheet",
    "labels_file",
    "run_places",
    "store_of",
]

NOTE = "store.json"
_POSTGRES = "postgres:"
RUNS = Path("runs")
"""Where runs are kept, and what stores elsewhere leave on disk, if nothing names another folder."""
_NAMES = ("schema",)
"""Keys of stores that name something inside them."""
_FROM_ENVIRONMENT = {"postgres": DSN_VARIABLE}
"""Stores whose address may come from the environment."""


@dataclass(frozen=True, slots=True)
class Place:
    """A stored run: its store, and the path that commands take for it."""

    store: Store
    run_id: str
    address: Path

    def __str__(self) -> str:
        return str(self.address)


class _Note(msgspec.Struct):
    run_id: str
    store: Plugin
    config_path: str
    dialect: str
    schema_version: str = "1.0"


def store_of(suite: Suite, out: Path | None, masker: Masker) -> Store:
    """The store of a new run: a folder if the user names one, else the suite's. Raises InputError."""
    if out is not None or suite.store.type == "local_files":
        return LocalFiles(out or suite.out or RUNS, masker)
    return _built(suite.store, masker, _runs_folder(suite.store))


def _runs_folder(store: Plugin) -> Path:
    """The folder for what a store without a folder of its own leaves on disk."""
    return Path(str(store.config.get("path") or "runs")).absolute()


def _built(plugin: Plugin, masker: Masker | None, runs: Path) -> Store:
    store: Store = load("stores", plugin.type)(plugin.config, masker, runs)
    return store


def address_of(run: RunReader, plan: Plan, masker: Masker) -> Path:
    """The path that leads to a run; if it has none, a note of it is left on disk. Raises StorageError."""
    location = Path(run.location)
    if location.is_absolute():
        return location
    note = msgspec.to_builtins(_Note(plan.run_id, plan.store, plan.config_path, plan.dialect))
    note["store"]["config"] = dict(_without_literals(masker.placeholders(plan.store.config)))
    runs = _runs_folder(plan.store)
    with draft_in(runs) as (draft, lock):
        replace_file(draft / NOTE, msgspec.json.format(msgspec.json.encode(note), indent=2) + b"\n", PRIVATE)
        # With a number if a folder of that name belongs to another store's run.
        folder = next(place for place in free_places(runs, safe_id(plan.run_id)) if publish(draft, place))
    lock.release()
    return folder


def folder_beside(reader: RunReader) -> Path:
    """Where the files of a run are that are not records: its folder or, if it has none, its artifacts' folder."""
    return reader.artifacts.parent if reader.artifacts.name == "artifacts" else reader.artifacts


def labels_file(reader: RunReader) -> Path:
    """Where the human labels of a run are, if it has any."""
    return folder_beside(reader) / "labels.jsonl"


def label_sheet(reader: RunReader) -> Path:
    """Where the viewer writes the labels that it is given."""
    return folder_beside(reader) / "labels.csv"


def _without_literals(config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What may be written down: credentials only if they are placeholders."""
    for key, value in config.items():
        if not is_credential(key, value) or "${" in str(value):
            yield key, value


def _must_be_database(file: Path) -> None:
    """Raise InputError for a file that contains no runs, such as a suite."""
    try:
        with file.open("rb") as opened:
            start = opened.read(16)
    except OSError:
        return  # the store reports what is wrong
    if not start.startswith(b"SQLite format 3"):  # SQLite would make an empty file a database
        message = (
            "is neither a run folder nor a SQLite file with runs; `evalwright run SUITE` prints its run folder, and "
            "`evalwright import FILE` makes a suite of results of another tool"
        )
        raise InputError(Problem(str(file), message))


def find_run(
    path: Path | Place,
    secrets: Mapping[str, str] = {},
    *,
    named: Plugin | None = None,
    trusted: bool = False,
) -> Place:
    """The run at a path: a run folder, the id of one below `runs`, `FILE.sqlite/RUN_ID`, `FILE.sqlite` for its newest
    run, a folder with a note of a run elsewhere, or `postgres:SCHEMA/RUN_ID`; a Place is one already. Raises
    InputError.

    `secrets` of its suite are masked in what is written, besides those of the environment. A run folder may come from
    anyone: for a run elsewhere, its note gives the id and the kind of store, and the address comes from the user, in
    the environment or as `named`, the store of the user's suite; from the note only if that is `trusted`. `named` is
    also where `postgres:SCHEMA` is: a process that was killed before it wrote its note has left a run only there.
    """
    if isinstance(path, Place):
        return path
    path = _below_runs(path)
    masker = Masker.of(secrets, os.environ)
    if is_on_a_server(path):
        return _in_postgres(str(path), named, masker)
    if os.path.isfile(path / NOTE):
        return _noted_place(path.resolve(), secrets, named, trusted)
    file = next((place for place in (path, *path.parents) if os.path.isfile(place)), None)
    if file is not None:
        _must_be_database(file)
        from evalwright.stores.sqlite import Sqlite

        store, run_id = Sqlite.at(path, masker)
        return Place(store, run_id, store.path / run_id)
    try:
        folder, run_id = LocalFiles.at(path, masker)
    except (OSError, ValueError, RuntimeError) as error:  # a name too long or with a NUL, or links in a circle
        raise InputError(f"not the path of a run: {error}") from error
    return Place(folder, run_id, folder.folder / run_id)


def is_written(place: Place) -> bool:
    """Whether a process is writing the run: one that is retried or re-evaluated has a summary that says it is complete.

    A store of a plug-in may not know.
    """
    is_written: Callable[[str], bool] | None = getattr(place.store, "is_written", None)
    return is_written is not None and is_written(place.run_id)


def is_on_a_server(address: Path | str) -> bool:
    """Whether an address is that of runs in PostgreSQL: `postgres:SCHEMA`, `postgres:SCHEMA/RUN_ID`."""
    return str(address).startswith(_POSTGRES)


def _below_runs(path: Path) -> Path:
    """A bare run id means a run below `runs/`, the default folder; anything of that name here takes precedence."""
    below = RUNS / path
    if path.name == str(path) and not os.path.lexists(path) and os.path.lexists(below):
        return below
    return path


def _in_postgres(text: str, named: Plugin | None, masker: Masker) -> Place:
    if named is not None and named.type != "postgres":
        raise InputError(f"{text}: the suite keeps its runs in a store of type {named.type!r}")
    schema, _, run_id = text.removeprefix(_POSTGRES).partition("/")
    plugin = Plugin("postgres", {**(named.config if named else {}), **({"schema": schema} if schema else {})})
    store = _built(plugin, masker, _runs_folder(plugin))
    if not run_id:
        ids = store.run_ids()
        if not ids:
            raise InputError(f"{text} contains no run")
        run_id = ids[-1]
    return Place(store, run_id, Path(store.read(run_id).location))


def _noted_place(folder: Path, secrets: Mapping[str, str], named: Plugin | None, trusted: bool) -> Place:
    file = folder / NOTE
    try:
        note = msgspec.json.decode(file.read_bytes(), type=_Note)
        if is_newer(note.schema_version):
            raise newer_version(str(file), note.schema_version)
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(Problem(str(file), f"is not a note of a run: {error}")) from error
    if safe_id(note.run_id) != note.run_id:  # it becomes the name of a folder
        raise InputError(Problem(str(file), f"is not a note of a run: {note.run_id!r} is not the id of one"))
    kind = note.store.type
    if named is not None and named.type != kind:
        raise InputError(Problem(str(file), f"the run is in a store of type {kind!r}, the suite names {named.type!r}"))
    if named is not None:
        config = {**_names_in(note), **named.config}
    elif trusted:
        config = _trusted_config(folder, note)
    elif kind in _FROM_ENVIRONMENT and os.environ.get(_FROM_ENVIRONMENT[kind]):
        config = _names_in(note)
    else:
        set_it = f"set {_FROM_ENVIRONMENT[kind]}, " if kind in _FROM_ENVIRONMENT else ""
        raise InputError(
            f"{folder}: the run is in a store of type {kind!r}, whose address is not taken from a run folder: "
            f"name your suite with --suite FILE, {set_it}or pass --trust-run to use what {NOTE} says"
        )
    hidden = {key: str(value) for key, value in config.items() if is_credential(key, value)}
    store = _built(Plugin(kind, config), Masker.of({**hidden, **secrets}, os.environ), folder.parent)
    return Place(store, note.run_id, folder)


def _names_in(note: _Note) -> dict[str, Any]:
    """What a note may say about a store: names inside it, but no address."""
    return {key: value for key, value in note.store.config.items() if key in _NAMES and isinstance(value, str)}


def _trusted_config(folder: Path, note: _Note) -> dict[str, Any]:
    """The whole configuration in a note, with its secrets from the environment or its suite."""
    unresolved: dict[str, str] = {}
    config: dict[str, Any] = expand(note.store.config, os.environ, unresolved)
    authored = _authored_store(note)
    for key, value in authored.items():
        if key not in config or unresolved:
            config[key] = value
    if unresolved and not authored:
        names = ", ".join(sorted(unresolved))
        raise InputError(f"{folder}: set the environment variable {names}, or keep {note.config_path} as it was")
    return config


def _authored_store(note: _Note) -> dict[str, Any]:
    """The store's configuration in the suite as it is now, if it still names the same kind of store."""
    from evalwright.formats.loading import load_suite

    with suppress(EvalwrightError, OSError):
        store = load_suite(Path(note.config_path), note.dialect, to_run=False).store
        if store.type == note.store.type:
            return store.config
    return {}


def run_places(path: Path, **store: Any) -> list[Path]:
    """The paths of all runs in a folder, a SQLite file or `postgres:SCHEMA`, oldest first; noted ones last.

    `store` is passed to `find_run`. Raises InputError, and StorageError for a folder that cannot be listed.
    """
    if is_on_a_server(path):
        return [path / run_id for run_id in find_run(path, **store).store.run_ids()]
    if os.path.isfile(path):
        from evalwright.stores.sqlite import Sqlite

        # With "./", as a name that begins with "/" would lead to any folder: a file may come from anyone.
        return [path / f"./{run_id}" for run_id in Sqlite(path).run_ids()]
    in_folders = [path / run_id for run_id in LocalFiles(path).run_ids()]
    return [*in_folders, *sorted(note.parent for note in path.glob(f"[!.]*/{NOTE}"))]  # a draft has a hidden name
