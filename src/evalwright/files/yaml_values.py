"""Values of YAML nodes, made in one walk that limits aliases and numbers and reports duplicate keys."""

from __future__ import annotations

import textwrap
from typing import Any

import yaml

from evalwright.errors import Problem
from evalwright.files.yaml_nodes import MAP, PLAIN, SEQ, STR, TAG, Flavour, constructor, problem_of, tag_of, yaml_error

__all__ = ["Values"]

_MERGE = TAG + "merge"
_NUMBERS = (TAG + "int", TAG + "float")
_MISREAD = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Exceptions that PyYAML lets through when a scalar is not what its tag says."""

_MAX_ALIASED = 1_000_000
"""Nodes that exist only through aliases; a few lines of nested aliases can stand for billions."""
_MAX_DIGITS = 1000
"""Characters of a number: the time to read one in base 60 grows with their square."""
_MAX_SHOWN = 200
_MOST_PROBLEMS = 100
"""Duplicate keys that are listed: no reader wants more of them."""


class Values:
    """Makes the values of one document in one flavour.

    Mappings, lists and texts are made here; other scalars, and whatever is tagged or merged, by PyYAML. `problems` has
    the mistakes after which reading could go on: if there are any, the values must not be used.
    """

    def __init__(self, file: str, flavour: Flavour) -> None:
        self.problems: list[Problem] = []
        self._file = file
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
        made = self._mapping(node) if isinstance(node, yaml.MappingNode) else self._list(node)
        self._open.remove(id(node))
        self._made[id(node)] = made, self._nodes - before + 1
        return made

    def _again(self, node: yaml.Node, made: Any, size: int) -> Any:
        self._nodes += size - 1
        self._aliased += size
        if self._aliased > _MAX_ALIASED:
            raise yaml_error(f"aliases stand for more than {_MAX_ALIASED} values", node)
        return made

    def _list(self, node: yaml.Node) -> Any:
        self._nodes += len(node.value)
        made = [item.value if item.tag is STR else self.of(item) for item in node.value]
        return made if node.tag == SEQ else self._constructed(node)

    def _mapping(self, node: yaml.MappingNode) -> Any:
        self._nodes += 2 * len(node.value)
        made: dict[Any, Any] = {}
        simple = node.tag == MAP
        for key, item in node.value:
            value = item.value if item.tag is STR else self.of(item)
            if key.tag is STR:
                made[key.value] = value
            elif isinstance(key, yaml.ScalarNode) and not _merges(key):
                made[self._scalar(key)] = value
            else:
                simple = False
                if not isinstance(key, yaml.ScalarNode):
                    self.of(key)
        if len(made) < len(node.value):  # also so with merged keys; only a second look tells
            self._report_duplicates(node)
        return made if simple else self._constructed(node)

    def _report_duplicates(self, node: yaml.MappingNode) -> None:
        seen: dict[tuple[str, str], int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            name, line = (key.tag, key.value), key.start_mark.line + 1
            if name in seen:
                self._report(Problem(self._file, f"duplicate key {key.value!r}, first on line {seen[name]}", line))
            seen.setdefault(name, line)

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        if node.tag is not PLAIN:
            return self._constructed(node)
        if (known := self._plain.get(node.value)) is not None:
            node.tag, value = known
            return value
        node.tag, problems_before = self._tag_of(node.value), len(self.problems)
        value = node.value if node.tag == STR else self._constructed(node)
        if len(self.problems) == problems_before:  # a scalar with a mistake is read again, to report each place
            self._plain[node.value] = node.tag, value
        return value

    def _constructed(self, node: yaml.Node) -> Any:
        """What PyYAML makes of a node whose parts have all been checked and have their tags."""
        if node.tag in _NUMBERS and len(node.value) > _MAX_DIGITS:
            raise yaml_error(f"a number of {len(node.value)} characters", node)
        scalar = isinstance(node, yaml.ScalarNode)
        if self.problems and not scalar:
            return None
        try:
            return self._constructor.construct_object(node, deep=True)
        except yaml.MarkedYAMLError as error:
            self._report(problem_of(error, self._file))
        except _MISREAD:
            found = repr(textwrap.shorten(node.value, _MAX_SHOWN)) if scalar else "this value"
            message = f"{found} is not a valid {node.tag.rpartition(':')[2]}"
            self._report(problem_of(yaml_error(message, node), self._file))
        return None

    def _report(self, problem: Problem) -> None:
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(problem)


def _merges(key: yaml.ScalarNode) -> bool:
    """Whether a key merges another mapping (`<<`), which it does in every flavour; sets its tag if it does."""
    if key.tag is PLAIN and key.value == "<<":
        key.tag = _MERGE
    return bool(key.tag == _MERGE)
