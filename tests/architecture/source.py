"""The package's source as the tests of its structure read it: modules, their rooms, their imports."""

import ast
import gc
from functools import cache
from pathlib import Path
from typing import NamedTuple

import evalwright

SOURCE = Path(evalwright.__file__).parent
USERS_FILES = ("demo/suite", "cli/starter")
"""Files that `demo` and `init` write for users: no modules of ours."""


class Import(NamedTuple):
    module: str
    line: int


@cache
def modules() -> list[tuple[Path, str]]:
    """Every module with its dotted name."""
    seen = []
    for path in sorted(SOURCE.rglob("*.py")):
        place = path.relative_to(SOURCE)
        if not place.as_posix().startswith(USERS_FILES):
            parts = ("evalwright", *place.with_suffix("").parts)
            seen.append((path, ".".join(parts[:-1] if parts[-1] == "__init__" else parts)))
    return seen


@cache
def tree(path: Path) -> ast.Module:
    """It stays until the end: to look through a million nodes for garbage takes three times as long as the parser."""
    gc.disable()
    try:
        return ast.parse(path.read_text())
    finally:
        gc.freeze()
        gc.enable()


@cache
def nodes(path: Path) -> list[ast.AST]:
    """All of a module's tree, walked once for all tests: the walk costs more than the parser."""
    return list(ast.walk(tree(path)))


@cache
def imports(path: Path) -> list[Import]:
    """What a module imports of ours, inside functions and for type checkers too, each with its line."""
    known, found = _names(), []
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                name = inner if inner in known else str(node.module)
                found.append(Import(name, node.lineno))
        elif isinstance(node, ast.Import):
            found += [Import(alias.name, node.lineno) for alias in node.names]
    return [one for one in found if one.module.startswith("evalwright")]


def room(module: str) -> str:
    """The room of a module: a folder below `evalwright`, and in `formats` the folder or module below that."""
    parts = module.split(".")[1:]
    return ".".join(parts[: 2 if parts[:1] == ["formats"] else 1])


@cache
def _names() -> frozenset[str]:
    return frozenset(name for _, name in modules())
