"""Imports user code from suites' folders and files; only this module writes `sys.path` and their `sys.modules`.

Both belong to the process, so two runs share them. A file that a suite names is a module under a private name of its
own. A module imported by name is found on the path. The folders of a run stay there, as its code may import late,
until another run needs other ones: then they and their modules are put away until a run needs them again. Two runs at
the same time whose modules of one name are different files cannot be told apart, so the second run is rejected.

Until the first user code is imported, a process of ours has hardly any garbage and need not search for it.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout, suppress
from contextvars import ContextVar
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any

from evalwright.errors import InputError, Problem, did_you_mean

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from pathlib import Path

__all__ = [
    "end_without_search",
    "executes_code",
    "file_in",
    "home_of",
    "import_by_name",
    "imported_files",
    "is_unnamed",
    "leave",
    "make_importable",
    "module_at",
    "named_object",
    "nothing_imported",
    "only_ours",
    "stand_in_where_missing",
    "users_begin",
    "with_objects",
]

_passed: ContextVar[Mapping[str, Any]] = ContextVar("evalwright_objects", default=MappingProxyType({}))

Check = Callable[[str, Collection[str]], None]
"""Told what was imported and which modules were loaded for it; raises ImportError if they are not those of the run."""
_check: ContextVar[Check] = ContextVar("evalwright_check", default=lambda name, loaded: None)

_looked_in: ContextVar[list[str] | None] = ContextVar("evalwright_looked_in", default=None)
"""Folders to be made importable, while nothing is imported; None otherwise."""
_PRIVATE = "evalwright_user_"
_STAND_INS = {"eval_harness": "evalwright.formats.shims"}
"""Packages of originals that users' code imports in any kind of suite, and the module with `stand_in`, which returns
the spec of one of their modules. Loaded when an import finds no such package."""

_WHILE_OURS = 50_000
"""Objects made before the next garbage collection, as long as no user code has been imported."""
_usual: tuple[int, int, int] | None = None
"""The usual collection thresholds, kept until user code is imported; None afterwards."""

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


def only_ours() -> None:
    """Spare this process, which is ours and has imported no user code yet, most garbage collections.

    The objects made at first are modules and a suite, which stay: searching them takes a tenth of a small run.
    """
    global _usual
    _usual = gc.get_threshold()
    gc.set_threshold(_WHILE_OURS)


def users_begin() -> None:
    """From now on collect garbage as users' code expects, but never search the objects that exist already."""
    global _usual
    if _usual is not None:
        gc.freeze()
        gc.set_threshold(*_usual)
        _usual = None


def end_without_search() -> None:
    """Spare the interpreter the final garbage collection of this process, which is ours: a fifth of a small run.

    If users' code was imported, the objects it left are still searched: their finalisers may have something to do.
    """
    from evalwright.session.user_code import others

    files = [getattr(module, "__file__", None) for name, module in [*sys.modules.items()] if name != "__main__"]
    if all(file is None or file.startswith(others()) for file in files):
        gc.freeze()


@contextmanager
def nothing_imported() -> Iterator[None]:
    """Look for users' code and parse it, but execute none: whatever would be imported is a `NotExecuted`."""
    token = _looked_in.set([])
    try:
        yield
    finally:
        _looked_in.reset(token)


def executes_code() -> bool:
    """Whether users' code is executed at all."""
    return _looked_in.get() is None


def imported_files() -> list[str]:
    """The files of users' code that were executed in this process, sorted."""
    modules = [sys.modules.get(name) for name in {*_ours, *(one for one in sys.modules if one.startswith(_PRIVATE))}]
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
        for name, found, meant in _hidden(folders, held):
            if home_of(name) in held:
                raise InputError(
                    f"the module {name!r} is {meant} here and {found} in another run of this process: run one after "
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
    homes = {name: home_of(name) or "" for name in list(sys.modules)} if added else {}
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
        found: ModuleSpec | None = None if giver is None else importlib.import_module(giver).stand_in(name)
        return found


_last_asked = _StandIns()


def stand_in_where_missing() -> None:
    """Let imports of an original's package that is not installed find our stand-in for it."""
    if _last_asked not in sys.meta_path:
        sys.meta_path.append(_last_asked)


def import_by_name(name: str) -> ModuleType:
    """The module of that name on the import path. Raises whatever importing it raises."""
    if (folders := _looked_in.get()) is not None:
        from evalwright.session.unread import unread_module

        return unread_module(name, folders)
    with _noted(name):
        return importlib.import_module(name)


def module_at(path: Path) -> ModuleType:
    """The module in a user's file, executed once per process.

    Raises InputError for a file that is not Python, and whatever executing it raises.
    """
    import hashlib  # here, like the other imports inside functions: every command loads this module, `--help` too
    from importlib.util import module_from_spec, spec_from_file_location

    path = path.resolve()
    if (folders := _looked_in.get()) is not None:
        from evalwright.session.unread import UnreadModule

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
            with _noted(name):
                spec.loader.exec_module(module)
        except BaseException:  # as Python's own import does: the next import must not find half a module
            del sys.modules[name]
            raise
        return module


@contextmanager
def _noted(name: str) -> Iterator[None]:
    """Everything imported in the block, which imports `name`, is ours, with all that it imports itself.

    Raises ImportError if it got modules that are not the run's.
    """
    users_begin()
    before = set(sys.modules)
    try:
        with _prints_apart():
            yield
    finally:
        new = sys.modules.keys() - before
        _ours.update(one for one in new if home_of(one) in _folders)
    try:
        _check.get()(name, new)
    except ImportError:  # the next attempt must not find what was imported now
        for one in new & _ours:
            _forget(one)
        raise


def _prints_apart() -> AbstractContextManager[object]:
    """Send what is printed in the block to stderr, if the process is ours: on stdout is what a command was asked for.

    Sessions do so for each context, but the command line itself, which reads suites, is in none that does.
    """
    from evalwright.session.process import MaskedStream, Router

    # a session that owns the process masks its stderr; a router has the prints of each context by itself
    apart = isinstance(sys.stderr, MaskedStream) and not isinstance(sys.stdout, Router)
    return redirect_stdout(sys.stderr) if apart else nullcontext()


def _hidden(folders: Sequence[str], held: Collection[str]) -> Iterator[tuple[str, str, str]]:
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
    """Let the next import of a module find it anew, and all that is inside it."""
    package, _, last = name.rpartition(".")
    bound = vars(sys.modules[package]) if package in sys.modules else {}
    if name in sys.modules and bound.get(last) is sys.modules[name]:
        del bound[last]  # or `from package import module` would find it there
    for loaded in [one for one in sys.modules if one == name or one.startswith(f"{name}.")]:
        _ours.discard(loaded)
        del sys.modules[loaded]


@contextmanager
def with_objects(objects: Mapping[str, Any]) -> Iterator[None]:
    """Let `named_object` find these, by place, in everything called inside and in no other run of this process."""
    token = _passed.set(objects)
    try:
        yield
    finally:
        _passed.reset(token)


def _near_place(module: str, name: str, error: BaseException) -> str:
    """How to write the place correctly, or the module or name that may be meant."""
    from pathlib import Path  # here, like the other imports inside functions: only needed for a mistake

    if isinstance(error, ModuleNotFoundError) and error.name is not None and f"{module}.".startswith(f"{error.name}."):
        plain = module.removesuffix(".py").replace("\\", ".").replace("/", ".").strip(".")
        if plain != module:
            return f'; did you mean "{plain}:{name}"?'
        folders = sys.path if (looked_in := _looked_in.get()) is None else looked_in
        own = [Path(folder) for folder in folders if folder in _folders or looked_in]
        beside = {file.stem for folder in own if folder.is_dir() for file in folder.glob("*.py")}
        return did_you_mean(module.partition(".")[0], sorted(beside))
    if isinstance(error, AttributeError):
        if name.endswith(")"):
            return "; leave out the parentheses"
        return did_you_mean(name, [one for one in dir(sys.modules.get(module)) if not one.startswith("_")])
    return ""


def _served_instead(error: BaseException) -> str:
    """What the stand-in for an original's package offers, if the import failed for lack of a name or module."""
    name = error.name if isinstance(error, ImportError) else None
    giver = _STAND_INS.get((name or "").partition(".")[0])
    found: str = "" if giver is None else importlib.import_module(giver).known_names(error)
    return found


def is_unnamed(place: Any) -> bool:
    """Whether a place is that of a function which only the process that it was passed to has."""
    return isinstance(place, str) and "<" in place.partition(":")[2]


def named_object(place: Any, key: str = "target") -> Any:
    """The object at `module.path:name`; whatever importing it raises is the user's mistake, reported in one line.

    An object passed to the run takes precedence over one that can be imported. Raises InputError at `key`.
    """
    if isinstance(place, str) and place in (passed := _passed.get()):
        return passed[place]
    module, colon, name = place.partition(":") if isinstance(place, str) else ("", "", "")
    if not (module and colon and name):
        raise InputError(Problem(file="", key=key, message=f"expected 'module.path:callable', found {place!r}"))
    if is_unnamed(place):
        why = f"{place!r} is a function without a name to import it by: call evaluate(..., resume=True) with it again"
        raise InputError(Problem(file="", key=key, message=why, absent=True))
    import asyncio

    try:
        found: Any = import_by_name(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise
    except BaseException as error:  # a module may call `sys.exit` when it is imported
        from evalwright.session.user_code import user_place

        where = user_place(error)
        why = f"{place!r} cannot be imported: {type(error).__name__}: {error}" + (f" in {where}" if where else "")
        why += _near_place(module, name, error) or _served_instead(error)
        absent = isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}.")
        raise InputError(Problem(file="", key=key, message=why, absent=absent)) from error
    return found
