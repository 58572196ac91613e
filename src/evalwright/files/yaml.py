"""YAML as data with places: safe, bounded, and every value's line known by its key path.

Three flavours of plain scalars: `native` takes only true and false (three case forms each) for booleans, so that
`on`, `off`, `yes` and `no` stay words; `yaml11` is plain YAML 1.1; `yaml12` is the core schema of YAML 1.2, where
dates are words too and `010` is ten.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal

import yaml

from evalwright.collector import collector_paused
from evalwright.errors import InputError, Problem
from evalwright.files.places import Place

__all__ = ["Document", "Flavour", "dump", "load", "parse", "top_level"]

Flavour = Literal["native", "yaml11", "yaml12"]

_MAX_DEPTH = 100
_MAX_ALIASED = 1_000_000
"""Nodes that are there only through aliases; a few lines of nested aliases stand for billions."""
_MAX_DIGITS = 1000
"""Characters of a number: time to read one in base 60 grows with their square."""

_MAX_TOLD = 200
_MOST_PROBLEMS = 100

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Plain: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
"""Takes every scalar for text, which is all that finding places needs."""
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_TAG = "tag:yaml.org,2002:"
_NUMBERS = (_TAG + "int", _TAG + "float")
_MISREAD = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What PyYAML lets through when a scalar is none of what its tag says."""


@cache
def _loader(flavour: Flavour) -> Any:
    if flavour == "yaml11":
        return _Loader
    if flavour == "yaml12":
        return _core_loader()

    class Native(_Loader):  # type: ignore[misc]
        yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {
            first: [(tag, pattern) for tag, pattern in resolvers if tag not in (_TAG + "bool", _TAG + "value")]
            for first, resolvers in _Loader.yaml_implicit_resolvers.items()
        }

    Native.add_implicit_resolver(_TAG + "bool", re.compile(r"(true|True|TRUE|false|False|FALSE)\Z"), list("tTfF"))
    return Native


_CORE = {
    "null": (r"(~|null|Null|NULL|)\Z", [*"~nN", ""]),
    "bool": (r"(true|True|TRUE|false|False|FALSE)\Z", list("tTfF")),
    "int": (r"([-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)\Z", list("-+0123456789")),
    "float": (
        r"([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))\Z",
        list("-+.0123456789"),
    ),
    "merge": (r"<<\Z", ["<"]),
}
"""Tags of the core schema (YAML 1.2.2, section 10.3.2), their patterns and first characters; merging is of 1.1."""


def _core_loader() -> Any:
    class Core(_Loader):  # type: ignore[misc]
        yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}

    for tag, (pattern, first) in _CORE.items():
        Core.add_implicit_resolver(_TAG + tag, re.compile(pattern), first)
    Core.add_constructor(_TAG + "int", _core_int)
    return Core


def _core_int(loader: Any, node: yaml.ScalarNode) -> int:
    text = loader.construct_scalar(node)
    return int(text, 0) if text[:2] in ("0o", "0x") else int(text)


class Document:
    """A YAML document: its value, and where each part of it stands."""

    def __init__(self, file: str, value: Any, data: bytes = b"") -> None:
        self.file = file
        self.value = value
        self._data = data
        self._root: yaml.Node | None = None

    def line(self, place: Place) -> int | None:
        """The 1-based line of the value at a key path, or of the deepest part of the path that is there."""
        if self._root is None:
            # Only a mistake asks for a line: keeping every node for it would cost more than reading again.
            with collector_paused():
                self._root = yaml.compose(self._data, Loader=_Plain)
        node, line = self._root, None
        for step in place:
            child = None if node is None else _child(node, step)
            if child is None:
                break
            node, line = child
        if line is None and self._root is not None:
            return self._root.start_mark.line + 1
        return line


def _child(node: yaml.Node, step: str | int) -> tuple[yaml.Node, int] | None:
    """A part of a node and its line: that of the key, as the value of a block mapping starts one line below it."""
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step], node.value[step].start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value == str(step):
                return value, key.start_mark.line + 1
    return None


def load(path: Path, flavour: Flavour = "native") -> Document:
    """The YAML document in a file. Raises InputError with file and line."""
    return parse(_bytes_of(path), str(path), flavour)


def top_level(path: Path) -> dict[str, Any] | None:
    """The keys of the mapping in a file, to scalars as text and to lists and mappings without what is in them.

    Takes a quarter of the time of `load`. Empty for a document that is no mapping, None for an empty one. Raises
    InputError like `load`, but not for what only the values show.
    """
    data = _bytes_of(path)
    with _mistakes_of(str(path), data):
        return _top_level(_Loader(data))


def _top_level(loader: Any) -> dict[str, Any] | None:
    found: dict[str, Any] = {}
    depth, key = 0, None
    try:
        while (event := loader.get_event()) is not None:
            if depth == 1 and isinstance(event, yaml.NodeEvent):
                value = _of_event(event)
                if key is None:
                    key = value if isinstance(value, str) else ""
                else:
                    found[key], key = value, None
            elif depth == 0 and isinstance(event, yaml.NodeEvent) and not isinstance(event, yaml.MappingStartEvent):
                return None if isinstance(event, yaml.ScalarEvent) and not event.value else {}
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
    finally:
        loader.dispose()
    return found or None


def _of_event(event: yaml.Event) -> Any:
    if isinstance(event, yaml.ScalarEvent):
        return event.value
    return [] if isinstance(event, yaml.SequenceStartEvent) else {}


def parse(data: bytes, file: str, flavour: Flavour) -> Document:
    """The YAML document in some bytes; `file` is its name in messages. Raises InputError."""
    with _mistakes_of(file, data), collector_paused():
        _refuse_depth(data)
        root = yaml.compose(data, Loader=_loader(flavour))
        problems = _Sound(file).problems(root)
        if not problems:
            return Document(file, _value(root, flavour), data)
    raise InputError(problems)


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(Problem(str(path), f"cannot be read: {reason}")) from error


@contextmanager
def _mistakes_of(file: str, data: bytes) -> Iterator[None]:
    """What is no YAML becomes an InputError that names the line."""
    try:
        yield
    except yaml.reader.ReaderError as error:
        line = data.count(b"\n", 0, error.position) + 1
        raise InputError(Problem(file, f"not valid YAML: {error.reason} (line {line})", line)) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise InputError(Problem(file, f"not valid YAML: {_told(error)}", mark.line + 1 if mark else None)) from error
    except (yaml.YAMLError, RecursionError) as error:
        raise InputError(Problem(file, f"not valid YAML: {error}")) from error


def _told(error: yaml.MarkedYAMLError) -> str:
    """What the parser was doing and where it began, and what it met and where."""
    parts = ((error.context, error.context_mark), (error.problem, error.problem_mark))
    told = ((textwrap.shorten(what, _MAX_TOLD), mark) for what, mark in parts if what)
    return ", ".join(f"{what} (line {mark.line + 1})" if mark else what for what, mark in told)


def _refused(message: str, node: yaml.Node | yaml.Event) -> yaml.MarkedYAMLError:
    mark: Any = node.start_mark
    return yaml.MarkedYAMLError(problem=message, problem_mark=mark)


def _refuse_depth(data: bytes) -> None:
    """Looks at the events first: the C composer recurses without a bound and would end the process."""
    depth, loader = 0, _Loader(data)
    try:
        while (event := loader.get_event()) is not None:
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > _MAX_DEPTH:
                    raise _refused(f"nested deeper than {_MAX_DEPTH} levels", event)
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
    finally:
        loader.dispose()


class _Sound:
    """Looks at every node once for duplicate keys, endless numbers, and aliases without bounds."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._problems: list[Problem] = []
        self._sizes: dict[int, int] = {}
        self._visited = 0

    def problems(self, root: yaml.Node | None) -> list[Problem]:
        if root is not None:
            self._size(root)
        return self._problems

    def _size(self, node: yaml.Node) -> int:
        """How many nodes there are from here on when aliases are written out."""
        known = self._sizes.get(id(node))
        if known == 0:
            raise _refused("an alias of the part that it stands in", node)
        if known is not None:
            return known
        self._visited += 1
        if isinstance(node, yaml.ScalarNode):
            if len(node.value) > _MAX_DIGITS and node.tag in _NUMBERS:
                raise _refused(f"a number of {len(node.value)} characters", node)
            return 1
        self._sizes[id(node)], total = 0, 1
        if isinstance(node, yaml.MappingNode):
            self._refuse_duplicates(node)
            for key, value in node.value:
                total += self._size(key) + self._size(value)
        else:
            for item in node.value:
                total += self._size(item)
        if total - self._visited > _MAX_ALIASED:
            raise _refused(f"aliases stand for more than {_MAX_ALIASED} values", node)
        self._sizes[id(node)] = total
        return total

    def _refuse_duplicates(self, node: yaml.MappingNode) -> None:
        if len(node.value) < 2:
            return
        seen: dict[tuple[str, str], int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            name, line = (key.tag, key.value), key.start_mark.line + 1
            if name in seen and len(self._problems) < _MOST_PROBLEMS:
                message = f"duplicate key {key.value!r}, first on line {seen[name]}"
                self._problems.append(Problem(self._file, message, line))
            seen.setdefault(name, line)


def _value(root: yaml.Node | None, flavour: Flavour) -> Any:
    if root is None:
        return None
    loader = _loader(flavour)(b"")
    try:
        return loader.construct_document(root)
    except _MISREAD as error:
        node = next(_misread(root, flavour), root)
        kind = node.tag.rpartition(":")[2]
        raise _refused(f"{textwrap.shorten(str(node.value), _MAX_TOLD)!r} is no {kind}", node) from error
    finally:
        loader.dispose()


def _misread(node: yaml.Node, flavour: Flavour) -> Iterator[yaml.Node]:
    """Scalars that are none of what they look like, such as a thirteenth month."""
    if isinstance(node, yaml.ScalarNode):
        loader = _loader(flavour)(b"")
        try:
            loader.construct_object(node, deep=True)
        except _MISREAD:
            yield node
        finally:
            loader.dispose()
        return
    for item in node.value:
        for child in item if isinstance(node, yaml.MappingNode) else (item,):
            yield from _misread(child, flavour)


def dump(value: Any) -> str:
    """Plain data as YAML for people, the same in every flavour; what YAML cannot hold is replaced by U+FFFD.

    Raises InputError for what is nested too deeply.
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
    """Quotes texts that any flavour would take for something else, and writes those of several lines as blocks."""

    class Dumper(_Dumper):  # type: ignore[misc]
        def ignore_aliases(self, data: Any) -> bool:
            return True

    for tag, (pattern, first) in _CORE.items():
        Dumper.add_implicit_resolver(_TAG + tag, re.compile(pattern), first)

    def text(dumper: Any, value: str) -> yaml.Node:
        node: yaml.Node = dumper.represent_scalar(_TAG + "str", value, style="|" if "\n" in value else None)
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
