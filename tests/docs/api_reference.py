"""The page docs/api.md, from the docstrings of `evalwright`. `python tests/docs/api_reference.py` writes it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from pydantic import BaseModel

import evalwright

PAGE = Path(__file__).parents[2] / "docs" / "api.md"
HEAD = """\
# Python API

Every name that `import evalwright` offers, generated from its docstrings. [Python](python.md) explains how to use them.
"""
_SECTION = re.compile(r"^(Args|Returns|Raises|Yields|Example|Examples|Attributes):$")
_LISTED = ("Args", "Raises", "Attributes")
_ITEM = re.compile(r"^ {4}(\\?[\w*, ]+): (.*)$")


def page() -> str:
    names = sorted((name for name in evalwright.__all__ if not name.startswith("__")), key=str.lower)
    return "\n".join([HEAD, *("\n".join(_entry(name, getattr(evalwright, name), "##")) for name in names)])


def _entry(name: str, value: Any, level: str) -> Iterator[str]:
    yield f"{level} {name.rpartition('.')[2]}"
    yield ""
    if inspect.isclass(value):
        yield from _text(value)
        if fields := _fields(value):
            yield from (f"Fields: {', '.join(f'`{field}`' for field in fields)}", "")
        for member, inner in vars(value).items():
            if not member.startswith("_") and _described(inner):
                yield from _entry(f"{name}.{member}", inner, level + "#")
        return
    function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
    call = name if isinstance(value, property) else f"{name}{_parameters(function)}"
    yield from (f"`{call}`", "", *_text(function))


def _described(value: Any) -> bool:
    function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
    return inspect.isfunction(function) and bool(function.__doc__)


def _fields(kind: type) -> list[str]:
    if issubclass(kind, msgspec.Struct):
        return list(kind.__struct_fields__)
    return list(kind.model_fields) if issubclass(kind, BaseModel) else []


def _parameters(function: Any) -> str:
    """Names and plain defaults: how annotations are printed depends on the version of Python."""
    shown, starred = [], False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            shown.append("*")
        starred = starred or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        plain = isinstance(parameter.default, str | int | float | bool | None)
        default = "" if parameter.default is parameter.empty else f"={parameter.default!r}" if plain else "=…"
        shown.append(f"{star}{parameter.name}{default}")
    return f"({', '.join(shown)})"


def _text(value: Any) -> Iterator[str]:
    """The docstring, its arguments and errors as lists."""
    listed = False
    for line in inspect.cleandoc(value.__doc__ or "").splitlines():
        if section := _SECTION.match(line):
            listed = section[1] in _LISTED
            yield f"{section[1]}:"
            yield ""
        elif listed and (item := _ITEM.match(line)):
            yield f"- `{item[1]}`: {item[2]}"
        elif line.startswith("        "):
            yield f"  {line.strip()}"
        elif line.startswith("    "):
            yield line.strip()
        else:
            yield line
    yield ""


if __name__ == "__main__":
    PAGE.write_text(page())
