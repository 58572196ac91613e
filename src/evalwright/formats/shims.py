"""Modules that users' code imports and that a format replaces: the only place that puts them into `sys.modules`.

`serve` may be called often; a module that is already served stays as it is. An installed package is left alone, unless
`Format.replaces` says that the format's own modules take precedence.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Collection, Mapping
from functools import cache
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from evalwright.model.format import Format, Ref
from evalwright.registry import formats, our_formats, resolve

__all__ = ["known_names", "serve", "served_modules", "stand_in"]


class _StandIn(ModuleType):
    """A module whose names are loaded on first use."""

    stands_in = True

    def __init__(self, name: str, names: Mapping[str, Ref]) -> None:
        super().__init__(name, "Served by evalwright: the package itself is not installed.")
        self.__path__: list[str] = []
        self.__all__ = sorted(names)
        self._names = names

    def __getattr__(self, name: str) -> Any:
        ref = self.__dict__.get("_names", {}).get(name)
        if ref is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value = resolve(ref)
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.__all__]


class _Loader(Loader):
    """Gives our module to an import that found no package."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = _StandIn(spec.name, _tables().get(spec.name, {}))
        del module.__path__  # the import system says where its submodules are: nowhere
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Does nothing: names are loaded on first use."""


def stand_in(name: str) -> ModuleSpec | None:
    """Our module of this name, from one of our formats, for an import that finds no other."""
    tables = _tables()
    if name in tables or any(known.startswith(f"{name}.") for known in tables):
        return ModuleSpec(name, _Loader(), origin="evalwright", is_package=True)
    return None


@cache
def _tables() -> dict[str, Mapping[str, Ref]]:
    return {
        name: table
        for our_format in our_formats()
        for name, table in our_format.shims.items()
        if not isinstance(table, str)
    }


def serve(one: Format) -> None:
    """Let imports of the modules in `one.shims` get ours."""
    names = [name for name in one.shims if _may_be_served(name, one)]
    for name in names:
        table = one.shims[name]
        if isinstance(table, str):
            sys.modules[name] = importlib.import_module(table)
        elif not isinstance(sys.modules.get(name), _StandIn):
            sys.modules[name] = _StandIn(name, table)
    for name in names:
        above, _, last = name.rpartition(".")
        package = _package(above) if above else None
        if package is not None and last not in _own_names(package):
            setattr(package, last, sys.modules[name])


def _own_names(package: ModuleType) -> Collection[str]:
    """A module's own names: a function keeps its name even if a submodule has the same one."""
    return package._names if isinstance(package, _StandIn) else vars(package)


def served_modules() -> list[str]:
    """The formats whose modules are served in this process."""
    return [
        suite_format.name
        for suite_format in formats()
        if any(_is_served(name, table) for name, table in suite_format.shims.items())
    ]


def known_names(error: ImportError) -> str:
    """A note on an import that failed because we replace a package and lack the name; "" for other errors."""
    package = (error.name or "").partition(".")[0]
    if not isinstance(sys.modules.get(package), _StandIn):
        return ""
    module = sys.modules.get(error.name or "")
    modules = sorted(
        name for our_format in our_formats() for name in our_format.shims if name.partition(".")[0] == package
    )
    known = module.__all__ if isinstance(module, _StandIn) else modules
    return f" (evalwright stands in for {package}, which is not installed here, and has: {', '.join(known)})"


def _may_be_served(name: str, suite_format: Format) -> bool:
    replaced = any(name == own or name.startswith(f"{own}.") for own in suite_format.replaces)
    return replaced or not _is_installed(name.partition(".")[0])


def _is_installed(package: str) -> bool:
    if package in sys.modules:  # `find_spec` would fail for our module, which has no spec
        return not isinstance(sys.modules[package], _StandIn)
    return importlib.util.find_spec(package) is not None


def _is_served(name: str, table: str | Mapping[str, Ref]) -> bool:
    module = sys.modules.get(name)
    return module is not None and (isinstance(module, _StandIn) or module is sys.modules.get(str(table)))


def _package(name: str) -> ModuleType:
    """The package above a served module: the installed one, or an empty one."""
    if name not in sys.modules:
        sys.modules[name] = importlib.import_module(name) if _is_installed(name) else _StandIn(name, {})
    return sys.modules[name]
