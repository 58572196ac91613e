"""What the plain scalars of YAML mean: three flavours.

`true_false` takes only true and false (three case forms each) for booleans, so that `on`, `off`, `yes` and `no` stay
words; `yaml11` is plain YAML 1.1; `yaml12` is the core schema of YAML 1.2, where dates are words too and `010` is ten.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, ClassVar, Literal, get_args

import yaml

__all__ = ["CORE", "FIRST", "TAG", "Flavour", "constructor", "tag_of"]

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
"""Tags of the core schema (YAML 1.2.2, section 10.3.2), their patterns and first characters; merging is of 1.1."""


def constructor(flavour: Flavour) -> Any:
    """A PyYAML loader with nothing to load, for making values of nodes."""
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
"""First characters of the plain scalars that are not text in some flavour (the empty string: an empty scalar)."""
