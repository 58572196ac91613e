"""Users' modules, parsed but not executed, to check a suite that is not trusted yet."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["NotExecuted", "UnreadModule", "unread_module"]

_DYNAMIC = {"*", "__getattr__", "exec", "globals", "setattr", "sys", "vars"}
"""A module that uses one of these may have any name."""


class NotExecuted:
    """Stands for something in a module that was not executed: it has any attribute, and can be called."""

    def __init__(self, always_raises: str = "") -> None:
        self.always_raises = always_raises
        """The exception that creating an instance always raises; "" if the code does not show one plainly."""

    def __call__(self, *arguments: Any, **keywords: Any) -> NotExecuted:
        return self

    def __getattr__(self, name: str) -> NotExecuted:
        if name.startswith("__"):  # it lacks the methods that protocols look for
            raise AttributeError(name)
        return self


class UnreadModule(ModuleType):
    """A module known only by the names that its text binds, and by the values that are literals.

    Raises SyntaxError, OSError and ValueError; ModuleNotFoundError for an import that cannot succeed.
    """

    def __init__(self, name: str, file: Path | None, folders: Sequence[str] = ()) -> None:
        super().__init__(name)
        known = None
        if file is not None:
            tree = ast.parse(file.read_bytes(), str(file))
            _must_import(tree.body, [str(file.parent), *folders])
            known = _bound(tree.body)
        self.__dict__.update(known or {})
        self.__dict__["__has_any__"] = known is None

    def __getattr__(self, name: str) -> NotExecuted:
        if self.__dict__.get("__has_any__") and not name.startswith("__"):
            return NotExecuted()
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


def unread_module(name: str, folders: Sequence[str]) -> UnreadModule:
    """The module that an import with these folders in front would find. Raises the same as `UnreadModule`."""
    top, *rest = name.split(".")
    for folder in folders:
        if _is_in(folder, top):
            place = Path(folder, top, *rest)
            file = next(filter(Path.is_file, (place / "__init__.py", place.with_suffix(".py"))), None)
            if file is not None or place.is_dir():
                return UnreadModule(name, file, folders)
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    _must_be_installed(top)
    return UnreadModule(name, None)


def _is_in(folder: str, top: str) -> bool:
    return Path(folder, f"{top}.py").is_file() or Path(folder, top).is_dir()


def _must_be_installed(top: str) -> None:
    if top in sys.modules:  # our stand-in for an original is imported and has no spec
        return
    if importlib.util.find_spec(top) is None:  # for a name without a dot, this executes nothing
        raise ModuleNotFoundError(f"No module named {top!r}", name=top)


def _must_import(body: Iterable[ast.stmt], folders: Sequence[str]) -> None:
    """Raise ModuleNotFoundError for an import outside of any `try` or `if` whose module is nowhere."""
    for node in body:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names = [node.module]
        for top in (name.partition(".")[0] for name in names):
            if not any(_is_in(folder, top) for folder in folders):
                _must_be_installed(top)


def _bound(body: Iterable[ast.stmt]) -> dict[str, Any] | None:
    """The names that a module's text binds at its top level; None if it may bind any."""
    names: dict[str, Any] = {}
    used: set[str] = set()
    for node in _at_top(body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names[node.name] = NotExecuted(_always_raises(node))
        elif isinstance(node, ast.alias):
            names[node.asname or node.name.partition(".")[0]] = NotExecuted()
        elif isinstance(node, ast.Name):
            used.add(node.id)
            if isinstance(node.ctx, ast.Store):
                names[node.id] = NotExecuted()
    names.update(_literals(body))
    return None if _DYNAMIC & (used | names.keys()) else names


def _literals(body: Iterable[ast.stmt]) -> Iterator[tuple[str, Any]]:
    """Names that are assigned a literal."""
    for node in body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant | ast.List | ast.Dict | ast.Tuple):
            yield from ((target.id, []) for target in node.targets if isinstance(target, ast.Name))


def _always_raises(node: ast.stmt) -> str:
    """The exception raised by the first line of a class's `__init__`."""
    for inner in node.body if isinstance(node, ast.ClassDef) else ():
        if isinstance(inner, ast.FunctionDef) and inner.name == "__init__":
            first = inner.body[0]
            return ast.unparse(first.exc) if isinstance(first, ast.Raise) and first.exc is not None else ""
    return ""


def _at_top(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    for node in body:
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield from _at_top(ast.iter_child_nodes(node))
