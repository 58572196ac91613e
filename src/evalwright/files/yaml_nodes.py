"""The nodes of a YAML document: a tree whose parts know their lines, the same for three flavours of plain scalars.

`true_false` takes only true and false (three spellings each) for booleans, so that `on`, `off`, `yes` and `no` stay
words; `yaml11` is plain YAML 1.1; `yaml12` is the core schema of YAML 1.2, where dates are words, too, and `010` is
ten.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, ClassVar, Literal, get_args

import yaml

from evalwright.errors import InputError, Problem

__all__ = [
    "CORE",
    "FIRST",
    "MAP",
    "PLAIN",
    "SEQ",
    "STR",
    "TAG",
    "Flavour",
    "Lines",
    "compose",
    "constructor",
    "line_numbers",
    "mistakes_of",
    "nodes_in",
    "problem_of",
    "tag_of",
    "yaml_error",
]

Flavour = Literal["true_false", "yaml11", "yaml12"]

TAG = "tag:yaml.org,2002:"

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

CORE: Mapping[str, tuple[str, list[str]]] = {
    "null": (r"(~|null|Null|NULL|)\Z", [*"~nN", ""]),
    "bool": (r"(true|True|TRUE|false|False|FALSE)\Z", list("tTfF")),
    "int": (r"([-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)\Z", list("-+0123456789")),
    "float": (
        r"([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))\Z",
        list("-+.0123456789"),
    ),
    "merge": (r"<<\Z", ["<"]),
}
"""Tags of the core schema (YAML 1.2.2, section 10.3.2), their patterns and first characters; merging comes from 1.1."""


def constructor(flavour: Flavour) -> Any:
    """A PyYAML loader with nothing to load, for turning nodes into values."""
    return _loader(flavour)(b"")


def tag_of(flavour: Flavour) -> Callable[[str], str]:
    """A function from the text of a plain scalar to its tag."""
    patterns = {
        first: [(tag, pattern.match) for tag, pattern in resolvers]
        for first, resolvers in _loader(flavour).yaml_implicit_resolvers.items()
    }

    def tag(text: str) -> str:
        return next((tag for tag, match in patterns.get(text[:1], ()) if match(text)), TAG + "str")

    return tag


@cache
def _loader(flavour: Flavour) -> Any:
    if flavour == "yaml11":
        return _Loader
    if flavour == "yaml12":
        return _core_loader()

    class Native(_Loader):  # type: ignore[misc]
        yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {
            first: [(tag, pattern) for tag, pattern in resolvers if tag not in (TAG + "bool", TAG + "value")]
            for first, resolvers in _Loader.yaml_implicit_resolvers.items()
        }

    Native.add_implicit_resolver(TAG + "bool", re.compile(r"(true|True|TRUE|false|False|FALSE)\Z"), list("tTfF"))
    return Native


def _core_loader() -> Any:
    class Core(_Loader):  # type: ignore[misc]
        yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}

    for tag, (pattern, first) in CORE.items():
        Core.add_implicit_resolver(TAG + tag, re.compile(pattern), first)
    Core.add_constructor(TAG + "int", _core_int)
    return Core


def _core_int(loader: Any, node: yaml.ScalarNode) -> int:
    text = loader.construct_scalar(node)
    return int(text, 0) if text[:2] in ("0o", "0x") else int(text)


FIRST = frozenset(first for flavour in get_args(Flavour) for first in _loader(flavour).yaml_implicit_resolvers)
"""First characters of plain scalars that some flavour does not read as text (the empty string: an empty scalar)."""


MAP, SEQ, STR = TAG + "map", TAG + "seq", TAG + "str"
PLAIN = "?"
"""Stands for the tag of a plain scalar, which depends on the flavour. Compared by `is`: files may contain it too."""

_MAX_DEPTH = 100
_TOO_DEEP = f"nested deeper than {_MAX_DEPTH} levels"
_MAX_SHOWN = 200
"""Characters of the parser's message that are quoted: some of its messages contain the whole scalar."""

_BaseLoader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)

Lines = tuple[int, "dict[str, Lines | int] | list[Lines | int]"]
"""The line of a mapping or list, and the lines of its contents: a plain number for a scalar."""


class _Composer(_BaseLoader):  # type: ignore[misc]
    """Leaves the meaning of plain scalars open, and limits the depth: the C composer recurses without a limit."""

    _depth = 0

    def resolve(self, kind: type[yaml.Node], value: str, implicit: tuple[bool, bool]) -> str:
        if kind is yaml.ScalarNode:
            return PLAIN if implicit[0] and value[:1] in FIRST else STR
        return MAP if kind is yaml.MappingNode else SEQ

    def descend_resolver(self, parent: yaml.Node | None, index: Any) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH + 1 and parent is not None:
            raise yaml_error(_TOO_DEEP, parent)

    def ascend_resolver(self) -> None:
        self._depth -= 1


def compose(data: bytes) -> yaml.Node | None:
    """The root of the only document in `data`; None if it is empty. Raises yaml.YAMLError."""
    try:
        return yaml.compose(data, Loader=_Composer)
    except yaml.MarkedYAMLError as error:
        # libyaml 0.2.6 has a limit of its own, and meets it before ours where its scanner looks ahead
        if error.problem != "exceeded maximum nesting depth":
            raise
        raise yaml.MarkedYAMLError(problem=_TOO_DEEP, problem_mark=error.problem_mark) from None


def nodes_in(root: yaml.Node) -> set[int]:
    """The identities of a node and of all nodes in it; an alias is the node that it stands for."""
    found: set[int] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if id(node) in found:
            continue
        found.add(id(node))
        if isinstance(node, yaml.MappingNode):
            waiting += [part for pair in node.value for part in pair]
        elif isinstance(node, yaml.SequenceNode):
            waiting += node.value
    return found


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


_ADVICE = {
    "cannot start any token": "; indent with spaces, not tabs, and put texts that begin with %, @ or ` in quotes",
    "mapping values are not allowed": "; put a text with ': ' in quotes, and let keys that belong together begin in "
    "the same column",
    "expected ','": "; close every bracket and quote, and put a text with ': ' or a comma in quotes; an apostrophe in "
    "single quotes is written twice",
    "could not find expected ':'": "; a key ends with a colon and a space",
    "unknown escape character": "; in double quotes a backslash is written twice: use single quotes or /",
    "did not find expected '-' indicator": "; items of one list begin in the same column",
    "did not find expected key": "; let keys that belong together begin in the same column, and put a text with "
    "quotes inside in quotes",
}
"""The most helpful advice for a parser's message, by a part of that message."""


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
    advice = next((advice for word, advice in _ADVICE.items() if word in (error.problem or "")), "")
    return Problem(file, f"not valid YAML: {message}{advice}", mark.line + 1 if mark else None)


def yaml_error(message: str, node: yaml.Node) -> yaml.MarkedYAMLError:
    """The error for a mistake in a node, in the form of the parser's own errors."""
    return yaml.MarkedYAMLError(problem=message, problem_mark=node.start_mark)
