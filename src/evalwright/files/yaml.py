"""YAML as data with places: safe, bounded, and every value's line known by its key path.

Two flavours of plain scalars: `native` takes only true and false (three case forms each) for booleans, so that
`on`, `off`, `yes` and `no` stay words; `yaml11` is plain YAML 1.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal

import yaml

from evalwright.errors import InputError, Problem

__all__ = ["Document", "Flavour", "dump", "load", "parse"]

Flavour = Literal["native", "yaml11"]

_MAX_DEPTH = 100
_MAX_NODES = 5_000_000
"""Nodes after aliases are expanded; a few lines of nested aliases stand for billions."""

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_BOOL = "tag:yaml.org,2002:bool"


@cache
def _loader(flavour: Flavour) -> Any:
    if flavour == "yaml11":
        return _Loader

    class Native(_Loader):  # type: ignore[misc]
        yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {
            first: [(tag, pattern) for tag, pattern in resolvers if tag != _BOOL]
            for first, resolvers in _Loader.yaml_implicit_resolvers.items()
        }

    Native.add_implicit_resolver(_BOOL, re.compile(r"true|True|TRUE|false|False|FALSE"), list("tTfF"))
    return Native


@dataclass(frozen=True, slots=True)
class Document:
    """A YAML document: its value, and where each part of it stands."""

    file: str
    value: Any
    root: yaml.Node | None

    def line(self, path: tuple[str | int, ...]) -> int | None:
        """The 1-based line of the value at a key path, or of the deepest part of the path that is there."""
        node, found = self.root, self.root
        for step in path:
            node = _child(node, step)
            if node is None:
                break
            found = node
        return None if found is None else found.start_mark.line + 1


def _child(node: yaml.Node | None, step: str | int) -> yaml.Node | None:
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        child: yaml.Node = node.value[step]
        return child
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value == str(step):
                # the line of the key: the value of a block mapping starts one line below it
                return _at(value, key)
    return None


def _at(value: yaml.Node, key: yaml.Node) -> yaml.Node:
    """The value's node, placed where its key is."""
    return type(value)(value.tag, value.value, key.start_mark, value.end_mark)


def load(path: Path, flavour: Flavour = "native") -> Document:
    """The YAML document in a file. Raises InputError with file and line."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(Problem(str(path), f"cannot be read: {error.strerror}")) from error
    return parse(data, str(path), flavour)


def parse(data: bytes, file: str, flavour: Flavour) -> Document:
    """The YAML document in some bytes; `file` is its name in messages. Raises InputError."""
    loader = None
    try:
        loader = _loader(flavour)(data)
        root = loader.get_single_node()
        if root is None:
            return Document(file, None, None)
        problems = list(_unsound(root, file))
        if problems:
            raise InputError(problems)
        return Document(file, loader.construct_document(root), root)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise InputError(Problem(file, f"no YAML: {_told(error)}", mark.line + 1 if mark else None)) from error
    except (yaml.YAMLError, ValueError, RecursionError, OverflowError) as error:
        raise InputError(Problem(file, f"no YAML: {str(error).splitlines()[0]}")) from error
    finally:
        if loader is not None:
            loader.dispose()


def _told(error: yaml.MarkedYAMLError) -> str:
    """What the parser was doing and where it began, and what it met and where."""
    parts = ((error.context, error.context_mark), (error.problem, error.problem_mark))
    return ", ".join(f"{what} (line {mark.line + 1})" if mark else what for what, mark in parts if what)


def _unsound(root: yaml.Node, file: str) -> Iterator[Problem]:
    """Duplicate keys, and nesting or aliases without bounds; looks at every node once."""
    sizes: dict[int, int] = {}
    problems: list[Problem] = []

    def visit(node: yaml.Node, depth: int) -> int:
        known = sizes.get(id(node))
        if known is not None:
            if known == 0:
                raise ValueError("a part that contains itself")
            return known
        if depth > _MAX_DEPTH:
            raise ValueError(f"nested deeper than {_MAX_DEPTH} levels (line {node.start_mark.line + 1})")
        if isinstance(node, yaml.ScalarNode):
            return 1
        sizes[id(node)], total = 0, 1
        if isinstance(node, yaml.MappingNode):
            problems.extend(_duplicates(node, file))
            for key, value in node.value:
                total += visit(key, depth + 1) + visit(value, depth + 1)
        else:
            for item in node.value:
                total += visit(item, depth + 1)
        if total > _MAX_NODES:
            raise ValueError(f"aliases stand for more than {_MAX_NODES} values")
        sizes[id(node)] = total
        return total

    visit(root, 0)
    yield from problems


def _duplicates(node: yaml.MappingNode, file: str) -> Iterator[Problem]:
    if len(node.value) < 2:
        return
    seen: dict[tuple[str, str], int] = {}
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
            continue
        name, line = (key.tag, key.value), key.start_mark.line + 1
        if name in seen:
            yield Problem(file, f"duplicate key {key.value!r}, first on line {seen[name]}", line)
        seen.setdefault(name, line)


def dump(value: Any) -> str:
    """Plain data as YAML for people; what YAML cannot hold is replaced by U+FFFD."""
    text: str = yaml.dump(
        _writable(value), Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False, width=110
    )
    return text


def _writable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_writable(key): _writable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_writable(item) for item in value]
    return value
