"""The nodes of a YAML document: a tree in which each part knows its line, the same for every flavour."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import yaml

from evalwright.errors import InputError, Problem
from evalwright.files.yaml_flavours import FIRST, TAG

__all__ = ["MAP", "PLAIN", "SEQ", "STR", "Lines", "compose", "line_numbers", "mistakes_of", "problem_of", "yaml_error"]

MAP, SEQ, STR = TAG + "map", TAG + "seq", TAG + "str"
PLAIN = "?"
"""Stands for the tag of a plain scalar, which depends on the flavour. Compared by `is`: files may contain it too."""

_MAX_DEPTH = 100
_MAX_SHOWN = 200
"""Characters of what the parser says that are quoted: some of its messages contain the whole scalar."""

_Loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)

Lines = tuple[int, "dict[str, Lines | int] | list[Lines | int]"]
"""The line of a mapping or list, and the lines of what is in it: a plain number for a scalar."""


class _Composer(_Loader):  # type: ignore[misc]
    """Leaves the meaning of plain scalars open, and limits the depth: the C composer recurses without a limit."""

    _depth = 0

    def resolve(self, kind: type[yaml.Node], value: str, implicit: tuple[bool, bool]) -> str:
        if kind is yaml.ScalarNode:
            return PLAIN if implicit[0] and value[:1] in FIRST else STR
        return MAP if kind is yaml.MappingNode else SEQ

    def descend_resolver(self, parent: yaml.Node | None, index: Any) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH + 1 and parent is not None:
            raise yaml_error(f"nested deeper than {_MAX_DEPTH} levels", parent)

    def ascend_resolver(self) -> None:
        self._depth -= 1


def compose(data: bytes) -> yaml.Node | None:
    """The root of the only document in `data`, None if it is empty. Raises yaml.YAMLError."""
    return yaml.compose(data, Loader=_Composer)


def line_numbers(root: yaml.Node) -> Lines | int:
    """The 1-based lines in a tree; a value in a mapping has the line of its key."""
    return _lines(root, root, {})


def _lines(node: yaml.Node, start: yaml.Node, known: dict[int, Any]) -> Lines | int:
    """The lines of a node that begins with `start`; all aliases of a part share its lines."""
    line = start.start_mark.line + 1
    if isinstance(node, yaml.ScalarNode):
        return line
    inside = known.get(id(node))
    if inside is None and isinstance(node, yaml.MappingNode):
        inside = known[id(node)] = {}
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                inside.setdefault(key.value, _lines(value, key, known))
    elif inside is None:
        inside = known[id(node)] = []
        inside += [_lines(item, item, known) for item in node.value]
    return line, inside


@contextmanager
def mistakes_of(file: str, data: bytes) -> Iterator[None]:
    """Turns errors of the YAML parser into an InputError that names the line."""
    try:
        yield
    except yaml.reader.ReaderError as error:
        line = data.count(b"\n", 0, error.position) + 1
        raise InputError(Problem(file, f"not valid YAML: {error.reason} (line {line})", line)) from error
    except yaml.MarkedYAMLError as error:
        raise InputError(problem_of(error, file)) from error
    except (yaml.YAMLError, RecursionError) as error:
        raise InputError(Problem(file, f"not valid YAML: {error}")) from error


def problem_of(error: yaml.MarkedYAMLError, file: str) -> Problem:
    """What the parser was doing and where it began, and what it met and where."""
    parts = ((error.context, error.context_mark), (error.problem, error.problem_mark))
    shown = ((textwrap.shorten(what, _MAX_SHOWN), mark) for what, mark in parts if what)
    message = ", ".join(f"{what} (line {mark.line + 1})" if mark else what for what, mark in shown)
    mark = error.problem_mark or error.context_mark
    return Problem(file, f"not valid YAML: {message}", mark.line + 1 if mark else None)


def yaml_error(message: str, node: yaml.Node) -> yaml.MarkedYAMLError:
    """The error for something wrong with a node, in the form of the parser's own errors."""
    return yaml.MarkedYAMLError(problem=message, problem_mark=node.start_mark)
