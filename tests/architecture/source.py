"""The package's source as the tests of its structure read it: modules, their rooms, their imports."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import evalwright

SOURCE = Path(evalwright.__file__).parent
USERS_FILES = ("demo/suite", "cli/starter")
"""Files that `demo` and `init` write for users: no modules of ours."""


class Import(NamedTuple):
    module: str
    line: int


def modules() -> Iterator[tuple[Path, str]]:
    """Every module with its dotted name."""
    for path in sorted(SOURCE.rglob("*.py")):
        place = path.relative_to(SOURCE)
        if not place.as_posix().startswith(USERS_FILES):
            parts = ("evalwright", *place.with_suffix("").parts)
            yield path, ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> Iterator[Import]:
    """What a module imports of ours, inside functions and for type checkers too, each with its line."""
    known = _names()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                if (found := inner if inner in known else str(node.module)).startswith("evalwright"):
                    yield Import(found, node.lineno)
        elif isinstance(node, ast.Import):
            yield from (Import(a.name, node.lineno) for a in node.names if a.name.startswith("evalwright"))


def room(module: str) -> str:
    """The room of a module: a folder below `evalwright`, and in `formats` the folder or module below that."""
    parts = module.split(".")[1:]
    return ".".join(parts[: 2 if parts[:1] == ["formats"] else 1])


_known: frozenset[str] | None = None


def _names() -> frozenset[str]:
    global _known
    if _known is None:
        _known = frozenset(name for _, name in modules())
    return _known
