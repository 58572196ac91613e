"""Imports user code from suites' folders and files; only this module writes `sys.path` and their `sys.modules`.

Both belong to the process, so two runs share them. A file that a suite names is a module under a private name of its
own. A module imported by name is found on the path. The folders of a run stay there, as its code may import late,
until another run needs other ones: then they and their modules are put away until a run needs them again. Two runs at
the same time whose modules of one name are different files cannot be distinguished, so the second run is rejected.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from contextvars import ContextVar
from types import ModuleType
from typing import TYPE_CHECKING

from evalwright.errors import InputError
from evalwright.session.process import end_child, is_owned, returning, users_begin
from evalwright.session.streams import Router

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from pathlib import Path

__all__ = [
    "NotExecutedError",
    "executes_code",
    "file_in",
    "home_of",
    "import_by_name",
    "imported_files",
    "leave",
    "make_importable",
    "module_at",
    "nothing_imported",
    "offered_instead",
    "stand_in_where_missing",
    "users_folders",
]

Check = Callable[[str, Collection[str]], None]
"""Gets the name of an import and the modules loaded for it; raises ImportError if they are not those of the run."""
_check: ContextVar[Check] = ContextVar("evalwright_check", default=lambda name, loaded: None)

_looked_in: ContextVar[list[str] | None] = ContextVar("evalwright_looked_in", default=None)
"""Folders to be made importable, while nothing is imported; None otherwise."""
_PRIVATE = "evalwright_user_"
_STAND_INS = {"eval_harness": "evalwright.formats.shims"}
"""Packages of originals that users' code imports in any kind of suite, and the module with `stand_in`, which returns
the spec of one of their modules. Loaded when an import finds no such package."""

_lock = threading.Lock()
_folders: set[str] = set()
"""All folders that were made importable."""
_added: dict[str, frozenset[str]] = {}
"""Those that are on the path because of us alone, each with the modules that had been loaded before."""
_left: set[str] = set()
"""Those that nothing needs any more."""
_put_away: dict[str, dict[str, ModuleType]] = {}
"""The modules of each folder that was taken off the path, for when it returns."""
_ours: set[str] = set()
"""The modules imported from these folders here. Others belong to the program itself, and stay."""
_executing: dict[Path, threading.RLock] = {}
"""A lock for each file: threads that want it at the same time execute it once, and none sees it half executed."""


@contextmanager
def nothing_imported() -> Iterator[None]:
    """Look for users' code and parse it, but execute none: whatever would be imported is a `NotExecuted`."""
    token = _looked_in.set([])
    try:
        yield
    finally:
        _looked_in.reset(token)


class NotExecutedError(InputError):
    """A suite is a program, and nothing may be executed: what is in it is not known."""


def executes_code() -> bool:
    """Whether users' code is executed at all."""
    return _looked_in.get() is None


def users_folders() -> list[str]:
    """The folders of users' code in which an import looks now, in its order."""
    looked_in = _looked_in.get()
    return [folder for folder in sys.path if folder in _folders] if looked_in is None else [*looked_in]


def imported_files() -> list[str]:
    """The files of users' code that were executed in this process, sorted."""
    modules = [sys.modules.get(name) for name in {*_ours, *(name for name in sys.modules if name.startswith(_PRIVATE))}]
    return sorted({file for module in modules if isinstance(file := getattr(module, "__file__", None), str)})


def make_importable(folders: Sequence[str], own: Collection[str], held: Collection[str], check: Check) -> None:
    """Put folders at the front of the import path, the first one first, without repeating any.

    `own` are the earlier folders of this run, `held` those of other runs still going on; `check` is called after each
    import. Raises InputError if a module in the held ones hides one in these.
    """
    _check.set(check)
    stand_in_where_missing()
    looked_in = _looked_in.get()
    if looked_in is not None:
        looked_in[:] = dict.fromkeys([*folders, *looked_in])
        return
    with _lock:
        _left.difference_update(folders)
        _put_modules_away(_left.difference(held, own))
        for name, there, meant in _hidden_modules(folders, held):
            if home_of(name) in held:
                raise InputError(
                    f"the module {name!r} is {meant} here and {there} in another run of this process: run one after "
                    f"the other, or each in a process of its own (as `evalwright run` does with several suites)"
                )
            _forget(name)
        _folders.update(folders)
        programs = {*map(os.path.abspath, sys.path)} - _added.keys()
        loaded = frozenset(sys.modules)
        for folder in reversed(folders):
            if folder not in programs:
                _added.setdefault(folder, loaded)
            if folder in sys.path:
                sys.path.remove(folder)
            sys.path.insert(0, folder)
        for folder in folders:
            _put_modules_back(folder)


def leave(folders: Collection[str]) -> None:
    """Nothing needs these folders any more: the next run that needs other ones takes them off the import path."""
    with _lock:
        _left.update(folders)


def _put_modules_away(folders: Collection[str]) -> None:
    """Take the folders that only we had put there off the path, with the modules found there."""
    _left.difference_update(folders)
    added = {folder: before for folder in folders if (before := _added.pop(folder, None)) is not None}
    if not added:
        return
    # a large program has thousands of modules, and to ask each for its home at every run would take longer than the run
    earlier = frozenset.intersection(*added.values())
    homes = {name: home_of(name) or "" for name in list(sys.modules) if name not in earlier}
    for name, home in homes.items():
        if home in added and name not in added[home] and not name.startswith(_PRIVATE):
            _put_away.setdefault(home, {})[name] = sys.modules[name]
    for folder in added:
        for name in _put_away.get(folder, ()):
            _forget(name)
        with suppress(ValueError):  # users' code may have removed it
            sys.path.remove(folder)


def _put_modules_back(folder: str) -> None:
    for name, module in _put_away.pop(folder, {}).items():
        package, _, last = name.rpartition(".")
        if name not in sys.modules and (not package or package in sys.modules):
            sys.modules[name] = module
            _ours.add(name)
            if package:
                setattr(sys.modules[package], last, module)


class _StandIns:
    """The last finder that an import tries."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        giver = _STAND_INS.get(name.partition(".")[0])
        spec: ModuleSpec | None = None if giver is None else importlib.import_module(giver).stand_in(name)
        return spec


_last_asked = _StandIns()


def stand_in_where_missing() -> None:
    """Let imports of an original's package that is not installed find our stand-in for it."""
    if _last_asked not in sys.meta_path:
        sys.meta_path.append(_last_asked)


def offered_instead(error: BaseException) -> str:
    """What the stand-in for an original's package offers, if the import failed for lack of a name or module."""
    name = error.name if isinstance(error, ImportError) else None
    giver = _STAND_INS.get((name or "").partition(".")[0])
    names: str = "" if giver is None else importlib.import_module(giver).known_names(error)
    return names


def import_by_name(name: str) -> ModuleType:
    """The module of that name on the import path. Raises whatever importing it raises."""
    if (folders := _looked_in.get()) is not None:
        from evalwright.session.parsed_modules import unread_module

        return unread_module(name, folders)
    with _noting_modules(name):
        return importlib.import_module(name)


def module_at(path: Path) -> ModuleType:
    """The module in a user's file, executed once per process.

    Raises InputError for a file that is not Python, and whatever executing it raises.
    """
    import hashlib  # here, like the other imports inside functions: every command loads this module, `--help` too
    from importlib.util import module_from_spec, spec_from_file_location

    path = path.resolve()
    if (folders := _looked_in.get()) is not None:
        from evalwright.session.parsed_modules import UnreadModule

        return UnreadModule(path.name, path, folders)
    name = f"{_PRIVATE}{hashlib.sha256(str(path).encode()).hexdigest()[:16]}"
    with _executing.setdefault(path, threading.RLock()):
        if name in sys.modules:
            return sys.modules[name]
        spec = spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise InputError(f"{path.name}: expected a .py file")
        module = sys.modules[name] = module_from_spec(spec)
        try:
            with _noting_modules(name):
                spec.loader.exec_module(module)
        except BaseException:  # as Python's own import does: the next import must not find half a module
            del sys.modules[name]
            raise
        return module


@contextmanager
def _noting_modules(name: str) -> Iterator[None]:
    """Everything imported in the block, which imports `name`, is ours, with all that it imports itself.

    Raises ImportError if it got modules that are not the run's.
    """
    users_begin()
    before, process = set(sys.modules), os.getpid()
    try:
        with _process_kept():
            yield
    finally:
        if os.getpid() != process and is_owned():
            end_child(sys.exc_info()[1])
        new = sys.modules.keys() - before
        _ours.update(module for module in new if home_of(module) in _folders)
    try:
        _check.get()(name, new)
    except ImportError:  # the next attempt must not find what was imported now
        for one in new & _ours:
            _forget(one)
        raise


@contextmanager
def _process_kept() -> Iterator[None]:
    """If the process is ours, let users' code in the block change it for none but itself: not the working directory,
    nor the standard streams, nor our open files.

    What it prints goes to stderr: on stdout is what a command was asked for. Sessions do so for each context, but the
    command line itself, which reads suites, is in none that does.
    """
    if not is_owned():
        yield
        return
    from evalwright.session.open_files import descriptors_kept

    # a router has the prints of each context by itself
    prints = sys.stdout if isinstance(sys.stdout, Router) else sys.stderr
    with redirect_stdout(prints), redirect_stderr(sys.stderr), returning(), descriptors_kept():
        yield


def _hidden_modules(folders: Sequence[str], held: Collection[str]) -> Iterator[tuple[str, str, str]]:
    """Modules of other runs that an import would find although a file in `folders` is meant: name, file, that file."""
    for name in list(sys.modules) if held else list(_ours):
        home = home_of(name)  # None for one that has just been forgotten with its package
        if home is None or (name not in _ours and home not in held):
            continue
        before = folders[: folders.index(home)] if home in folders else folders
        if (meant := file_in(before, name)) is not None:
            yield name, getattr(sys.modules[name], "__file__", None) or f"{home}/{name}", meant


def file_in(folders: Sequence[str], name: str) -> str | None:
    """The file of a module in the first of the folders that has one."""
    stems = [f"{folder}/{name.replace('.', '/')}" for folder in folders]
    files = (file for stem in stems for file in (f"{stem}/__init__.py", f"{stem}.py"))
    return next(filter(os.path.isfile, files), None)


def home_of(name: str) -> str | None:
    """The folder on the import path in which a module was found; None for one without a file.

    A package without `__init__.py` may have parts in several folders: then it belongs to none of them.
    """
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    if isinstance(file, str):
        folder, last = os.path.split(file)  # many times faster than Path, and called for each module that is loaded
        levels = name.count(".") + (last == "__init__.py")
        for _ in range(levels):
            folder = os.path.dirname(folder)  # noqa: PTH120
        return folder
    if "." in name:  # nor is its path looked at: it asks for the package around it, which may be gone
        return None
    parts = {os.path.dirname(part) for part in getattr(module, "__path__", ())}  # noqa: PTH120
    return parts.pop() if len(parts) == 1 else None


def _forget(name: str) -> None:
    """Let the next import of a module load it again, with all that is inside it."""
    package, _, last = name.rpartition(".")
    bound = vars(sys.modules[package]) if package in sys.modules else {}
    if name in sys.modules and bound.get(last) is sys.modules[name]:
        del bound[last]  # or `from package import module` would find it there
    for loaded in [module for module in sys.modules if module == name or module.startswith(f"{name}.")]:
        _ours.discard(loaded)
        del sys.modules[loaded]
