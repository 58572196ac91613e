"""Reads YAML safely and within limits, and finds the line of each value by its key path; also writes YAML.

Values are made in a single walk over the nodes, which limits aliases and numbers and reports duplicate keys.
"""

from __future__ import annotations

import re
import textwrap
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import yaml

from evalwright.errors import FirstProblems, InputError, Problem
from evalwright.files.bulk import collector_paused
from evalwright.files.key_paths import Place
from evalwright.files.paths import unreadable
from evalwright.files.yaml_nodes import (
    CORE,
    MAP,
    PLAIN,
    SEQ,
    STR,
    TAG,
    Flavour,
    Lines,
    compose,
    constructor,
    line_numbers,
    mistakes_of,
    nodes_in,
    problem_of,
    tag_of,
    yaml_error,
)

__all__ = ["Document", "dump", "load", "parse", "schema_address", "schema_line", "top_level"]

_MERGE = TAG + "merge"
_NUMBERS = (TAG + "int", TAG + "float")
_MISREAD = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Exceptions that PyYAML lets through if a scalar does not match its tag."""

_MAX_ALIASED = 1_000_000
"""Nodes that exist only through aliases; a few lines of nested aliases can stand for billions."""
_MAX_DIGITS = 1000
"""Characters of a number: the time to read one in base 60 grows with the square of its length."""
_MAX_SHOWN = 200

_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

_looked_at: list[tuple[bytes, yaml.Node | None]] = []
"""The tree of the file whose top level was read last, to detect its format: it is most likely loaded next.

Taken out by its user, so that no two threads get the same tree; compared by content, whichever file that came from.
"""


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
            # Lines are needed only if there is a mistake: keeping them costs more than reading the file again.
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

    @cached_property
    def lent(self) -> frozenset[str]:
        """The top-level keys of whose values aliases elsewhere repeat parts, and the keys with these aliases."""
        root = compose(self._data)
        first: dict[int, str] = {}
        lent: set[str] = set()
        for name, value in root.value if isinstance(root, yaml.MappingNode) else ():
            key = str(name.value)
            for node in nodes_in(value):
                if (other := first.setdefault(node, key)) != key:
                    lent |= {key, other}
        return frozenset(lent)


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
        values = _Values(file, flavour, frees=b"<<" not in data and b"!" not in data)
        value = None if root is None else values.of(root)
    values.problems.refuse()
    return Document(file, value, data)


def _tree(data: bytes, file: str) -> yaml.Node | None:
    with suppress(IndexError):  # checking first whether there is one would race with another thread
        known, root = _looked_at.pop()
        if known == data:
            return root
    with mistakes_of(file, data), collector_paused():
        return compose(data)


def _bytes_of(path: Path) -> bytes:
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        raise InputError(Problem(str(path), unreadable(path, error))) from error
    return _PAIR.sub(_joined_surrogates, data) if path.suffix == ".json" and b"\\u" in data else data


_PAIR = re.compile(rb"(?<!\\)((?:\\\\)*)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")
"""Two escapes that are one character in JSON. In YAML each is a character of its own, which is invalid."""


def _joined_surrogates(pair: re.Match[bytes]) -> bytes:
    return pair[1] + bytes.fromhex((pair[2] + pair[3]).decode()).decode("utf-16-be").encode()


class _Values:
    """Makes the values of one document in one flavour.

    Mappings, lists and strings are made here; other scalars, and whatever is tagged or merged, by PyYAML. `problems`
    has the mistakes after which reading could continue: if there are any, the values must not be used.

    `frees` drops nodes as soon as they have become values, so that both are never held together: the tree alone takes
    four times as much memory. Only merged or tagged values are made from nodes whose parts have been made before.
    """

    def __init__(self, file: str, flavour: Flavour, *, frees: bool) -> None:
        self.problems = FirstProblems(file)
        self._file, self._frees = file, frees
        self._tag_of = tag_of(flavour)
        self._constructor = constructor(flavour)
        self._plain: dict[str, tuple[str, Any]] = {}
        self._made: dict[int, tuple[Any, int]] = {}
        """Collections by their nodes: the value, and the number of its nodes with aliases written out."""
        self._open: set[int] = set()
        self._nodes = self._aliased = 0

    def of(self, node: yaml.Node) -> Any:
        """The value of a node. Raises yaml.MarkedYAMLError if it would take endless time or memory."""
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        if (known := self._made.get(id(node))) is not None:
            return self._again(node, *known)
        if id(node) in self._open:
            raise yaml_error("an alias of a part that contains it", node)
        self._open.add(id(node))
        before = self._nodes
        value = self._mapping(node) if isinstance(node, yaml.MappingNode) else self._list(node)
        self._open.remove(id(node))
        self._made[id(node)] = value, self._nodes - before + 1  # no id is reused: no node is created meanwhile
        if self._frees:
            node.value = ()
        return value

    def _again(self, node: yaml.Node, value: Any, size: int) -> Any:
        self._nodes += size - 1
        self._aliased += size
        if self._aliased > _MAX_ALIASED:
            raise yaml_error(f"aliases stand for more than {_MAX_ALIASED} values", node)
        return value

    def _list(self, node: yaml.Node) -> Any:
        self._nodes += len(node.value)
        items = [item.value if item.tag is STR else self.of(item) for item in node.value]
        return items if node.tag == SEQ else self._constructed_value(node)

    def _mapping(self, node: yaml.MappingNode) -> Any:
        self._nodes += 2 * len(node.value)
        mapping: dict[Any, Any] = {}
        simple = node.tag == MAP
        for key, item in node.value:
            value = item.value if item.tag is STR else self.of(item)
            if key.tag is STR:
                mapping[key.value] = value
            elif isinstance(key, yaml.ScalarNode) and not _merges(key):
                mapping[self._scalar(key)] = value
            else:
                simple = False
                if not isinstance(key, yaml.ScalarNode):
                    self.of(key)
        if len(mapping) < len(node.value):  # merged keys also cause this; only a second look tells
            self._report_duplicates(node)
        return mapping if simple else self._constructed_value(node)

    def _report_duplicates(self, node: yaml.MappingNode) -> None:
        seen: dict[Any, yaml.ScalarNode] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            first = seen.setdefault(self._key(key), key)
            if first is not key:
                named = "" if first.value == key.value else f"as {first.value!r} "
                message = f"duplicate key {key.value!r}, first {named}on line {first.start_mark.line + 1}"
                self.problems.add(Problem(self._file, message, key.start_mark.line + 1))

    def _key(self, node: yaml.ScalarNode) -> Any:
        """What distinguishes a key: its value, so that `1`, `1.0` and `true` are one key, as they are in Python."""
        plain = self._plain.get(node.value)
        return (node.tag, node.value) if plain is None or node.tag != plain[0] else plain[1]

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        if node.tag is not PLAIN:
            return self._constructed_value(node)
        if (known := self._plain.get(node.value)) is not None:
            node.tag, value = known
            return value
        node.tag, problems_before = self._tag_of(node.value), self.problems.count
        value = node.value if node.tag == STR else self._constructed_value(node)
        if self.problems.count == problems_before:  # a scalar with a mistake is read again, to report each place
            self._plain[node.value] = node.tag, value
        return value

    def _constructed_value(self, node: yaml.Node) -> Any:
        """The value that PyYAML makes of a node whose parts have all been checked and have their tags."""
        if node.tag in _NUMBERS and len(node.value) > _MAX_DIGITS:
            raise yaml_error(f"a number of {len(node.value)} characters", node)
        scalar = isinstance(node, yaml.ScalarNode)
        if self.problems.count and not scalar:
            return None
        try:
            return self._constructor.construct_object(node, deep=True)
        except yaml.MarkedYAMLError as error:
            self.problems.add(problem_of(error, self._file))
        except _MISREAD:
            what = repr(textwrap.shorten(node.value, _MAX_SHOWN)) if scalar else "this value"
            message = f"{what} is not a valid {node.tag.rpartition(':')[2]}"
            self.problems.add(problem_of(yaml_error(message, node), self._file))
        return None


def _merges(key: yaml.ScalarNode) -> bool:
    """Whether a key merges another mapping (`<<`), as in every flavour; sets its tag if it does."""
    if key.tag is PLAIN and key.value == "<<":
        key.tag = _MERGE
    return bool(key.tag == _MERGE)


def schema_address(name: str) -> str:
    """Where editors find the JSON Schema of one of our files: in the catalogue that all of them know."""
    return f"https://json.schemastore.org/evalwright-{name}-1.json"


def schema_line(name: str) -> str:
    """The first line of a file, from which editors know its schema; for us it is a comment."""
    return f"# yaml-language-server: $schema={schema_address(name)}\n"


_END = "...\n"
"""What PyYAML writes after a last text that ends with empty lines; more of the document may follow."""


def dump(value: Any) -> str:
    """Plain data as readable YAML that means the same in every flavour; what YAML cannot express becomes U+FFFD.

    Raises InputError for data that is nested too deeply.
    """
    try:
        text: str = yaml.dump(
            _writable(value), Dumper=_dumper(), sort_keys=False, allow_unicode=True, default_flow_style=False, width=110
        )
    except RecursionError:
        raise InputError("nested too deeply to be written as YAML") from None
    return text.removesuffix(_END)


@cache
def _dumper() -> Any:
    """A dumper that quotes strings which some flavour would misread, and writes multi-line strings as blocks."""

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
