"""Functions that the decorators in a suite's files register: other graders of the suite can name them without the file.

The files are read, not executed: a suite is also checked without running its code.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from evalwright.files.boundary import OutsideError
from evalwright.formats.shared.named_files import NamedFiles

__all__ = ["registered"]


def registered(graders: Mapping[str, Any], files: NamedFiles, role: str) -> dict[str, str]:
    """`file.py:function` for each function with the decorator `role` in the files that graders name, by the name that
    the decorator gives it, else its own."""
    named = dict.fromkeys(_files_of(graders))
    return {name: place for path in named for name, place in _in(path, files, role)}


def _files_of(graders: Mapping[str, Any]) -> Iterator[str]:
    for raw in graders.values():
        for key in ("function", "extractor") if isinstance(raw, Mapping) else ():
            path, colon, _ = str(raw.get(key)).rpartition(":")
            if colon:
                yield path


def _in(path: str, files: NamedFiles, role: str) -> Iterator[tuple[str, str]]:
    """Names, each with the place of its function."""
    try:
        file = files.boundary.check(files.folder / path)
        tree = ast.parse(files.boundary.read(file))
    except (OutsideError, OSError, SyntaxError, ValueError):  # reported where a grader names the file
        return
    for part in tree.body:
        if not isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        for mark in part.decorator_list:
            call = mark if isinstance(mark, ast.Call) else None
            if ast.unparse(mark if call is None else call.func).rpartition(".")[2] == role:
                names = (
                    [keyword.value for keyword in call.keywords if keyword.arg == "name"] if call is not None else []
                )
                name = names[0].value if names and isinstance(names[0], ast.Constant) else None
                yield str(name or part.name), f"{file}:{part.name}"
