"""Imports user code from suites' folders and files; only this module writes `sys.path` and their `sys.modules`.

Both belong to the process, so two runs share them. A file that a suite names is a module under a private name of its
own. A module imported by name is found on the path: one that an earlier run imported makes way for a later run's, and
two runs at the same time whose modules of one name are different files cannot be told apart, so the second run is
rejected.

Until the first user code is imported, a process of ours has hardly any garbage and need not search for it.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
    "import_by_name",
    "imported_files",
    "is_unnamed",
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


def make_importable(folders: Sequence[str], held: Collection[str] = ()) -> None:
    """Put folders at the front of the import path, the first one first, without repeating any.

    `held` are the folders of other runs still going on. Raises InputError if a module in them hides one in these.
    """
    stand_in_where_missing()
    looked_in = _looked_in.get()
    if looked_in is not None:
        looked_in[:] = dict.fromkeys([*folders, *looked_in])
        return
    with _lock:
        for name, found, meant in list(_hidden(folders, held)):
            if _folder_of(found) in held:
                raise InputError(
                    f"the module {name!r} is {meant} here and {found} in another run of this process: run one after "
                    f"the other, or each in a process of its own (as `evalwright run` does with several suites)"
                )
            _forget(name)
        _folders.update(folders)
        for folder in reversed(folders):
            if folder in sys.path:
                sys.path.remove(folder)
            sys.path.insert(0, folder)


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
    with _noted():
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
            with _noted():
                spec.loader.exec_module(module)
        except BaseException:  # as Python's own import does: the next import must not find half a module
            del sys.modules[name]
            raise
        return module


@contextmanager
def _noted() -> Iterator[None]:
    """Everything imported in the block is ours, with all that it imports itself."""
    users_begin()
    before = set(sys.modules)
    try:
        yield
    finally:
        _ours.update(new for new in sys.modules.keys() - before if "." not in new and _home_of(new) in _folders)


def _hidden(folders: Sequence[str], held: Collection[str]) -> Iterator[tuple[str, str, str]]:
    """Modules of other runs that an import would find although a file in `folders` is meant: name, file, that file."""
    for name in list(sys.modules) if held else list(_ours):
        home = _home_of(name) if "." not in name else None
        if home is None or (name not in _ours and home not in held):
            continue
        for folder in folders:
            if folder == home:
                break
            meant = next(filter(os.path.isfile, (f"{folder}/{name}/__init__.py", f"{folder}/{name}.py")), None)
            if meant is not None:
                yield name, str(sys.modules[name].__file__), meant
                break


def _home_of(name: str) -> str | None:
    """The folder on the import path in which a module was found; None for one without a file."""
    file = getattr(sys.modules.get(name), "__file__", None)
    return _folder_of(file) if isinstance(file, str) else None


def _folder_of(file: str) -> str:
    folder, name = os.path.split(file)  # many times faster than Path, and called for each module that is loaded
    return os.path.dirname(folder) if name == "__init__.py" else folder  # noqa: PTH120


def _forget(name: str) -> None:
    _ours.discard(name)
    for loaded in [one for one in sys.modules if one == name or one.startswith(f"{name}.")]:
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
