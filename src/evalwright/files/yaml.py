"""Reads YAML safely and within bounds, and finds the line of each value by its key path; writes it too."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from evalwright.errors import InputError, Problem
from evalwright.files.bulk import collector_paused
from evalwright.files.key_paths import Place
from evalwright.files.paths import near_file
from evalwright.files.yaml_nodes import CORE, TAG, Flavour, Lines, compose, line_numbers, mistakes_of
from evalwright.files.yaml_values import Values

__all__ = ["Document", "dump", "load", "parse", "top_level"]

_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

_looked_at: list[tuple[bytes, yaml.Node | None]] = []
"""The tree of the file whose top level was read last, to detect its format: it is most likely loaded next.

Taken out by who uses it, so that no two threads get the same tree; compared by content, whichever file it is of."""


class Document:
    """A YAML document: its value, and the line of each part of it."""

    def __init__(self, file: str, value: Any, data: bytes = b"") -> None:
        self.file = file
        self.value = value
        self._data = data
        self._lines: Lines | int | None = None

    def line(self, place: Place) -> int | None:
        """The 1-based line of the value at a key path, or of the deepest part of the path that exists."""
        if self._lines is None:
            # Lines are asked for only when there is a mistake: keeping them costs more than reading the file again.
            with collector_paused():
                root = compose(self._data)
                self._lines = None if root is None else line_numbers(root)
        part = self._lines
        for step in place:
            inside = part[1] if isinstance(part, tuple) else None
            if isinstance(inside, dict) and str(step) in inside:
                part = inside[str(step)]
            elif isinstance(inside, list) and isinstance(step, int) and step < len(inside):
                part = inside[step]
            else:
                break
        return part[0] if isinstance(part, tuple) else part


def load(path: Path, flavour: Flavour = "true_false") -> Document:
    """The YAML document in a file. Raises InputError with file and line."""
    return parse(_bytes_of(path), str(path), flavour)


def top_level(path: Path) -> dict[str, Any] | None:
    """The keys of the mapping in a file: scalars as text, lists and mappings without their contents.

    Empty if the document is not a mapping, None if it is empty. Raises InputError like `load`, except for mistakes that
    only show when values are made.
    """
    data = _bytes_of(path)
    root = _tree(data, str(path))
    _looked_at[:] = [(data, root)]
    if root is None or (not root.value and not isinstance(root, yaml.SequenceNode)):
        return None
    if not isinstance(root, yaml.MappingNode):
        return {}
    empty: dict[type[yaml.Node], Any] = {yaml.SequenceNode: [], yaml.MappingNode: {}}
    return {
        key.value if isinstance(key, yaml.ScalarNode) else "": empty.get(type(value), value.value)
        for key, value in root.value
    }


def parse(data: bytes, file: str, flavour: Flavour) -> Document:
    """The YAML document in some bytes; `file` is its name in messages. Raises InputError."""
    root = _tree(data, file)
    with mistakes_of(file, data), collector_paused():
        values = Values(file, flavour)
        value = None if root is None else values.of(root)
    if values.problems:
        raise InputError(values.problems)
    return Document(file, value, data)


def _tree(data: bytes, file: str) -> yaml.Node | None:
    with suppress(IndexError):  # asking first whether there is one would race with another thread
        known, root = _looked_at.pop()
        if known == data:
            return root
    with mistakes_of(file, data), collector_paused():
        return compose(data)


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        near = near_file(path) if isinstance(error, FileNotFoundError) else ""
        raise InputError(Problem(str(path), f"cannot be read: {reason}{near}")) from error


def dump(value: Any) -> str:
    """Plain data as readable YAML that means the same in every flavour; what YAML cannot hold becomes U+FFFD.

    Raises InputError for data that is nested too deeply.
    """
    try:
        text: str = yaml.dump(
            _writable(value), Dumper=_dumper(), sort_keys=False, allow_unicode=True, default_flow_style=False, width=110
        )
    except RecursionError:
        raise InputError("nested too deeply to be written as YAML") from None
    return text


@cache
def _dumper() -> Any:
    """A dumper that quotes texts which any flavour would misread, and writes multi-line texts as blocks."""

    class Dumper(_Dumper):  # type: ignore[misc]
        def ignore_aliases(self, data: Any) -> bool:
            return True

    for tag, (pattern, first) in CORE.items():
        Dumper.add_implicit_resolver(TAG + tag, re.compile(pattern), first)

    def text(dumper: Any, value: str) -> yaml.Node:
        node: yaml.Node = dumper.represent_scalar(TAG + "str", value, style="|" if "\n" in value else None)
        return node

    Dumper.add_representer(str, text)
    return Dumper


def _writable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_writable(key): _writable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_writable(item) for item in value]
    return value
