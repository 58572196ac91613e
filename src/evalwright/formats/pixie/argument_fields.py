"""The arguments that a Runnable takes, read from its file without executing it.

What cannot be read that way (a model of another module, aliases, a base class that is not in the file) is not checked.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["ArgumentField", "mismatches", "model_fields"]

_TAKES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int, float, str),
    "float": (int, float, str),
    "list": (list,),
    "dict": (dict,),
}
"""The JSON types from which pydantic makes a type, where that is plain."""


class ArgumentField(NamedTuple):
    """One field of a model."""

    name: str
    kind: str
    """The name of its type, "" for any that is not plain."""
    required: bool


def model_fields(file: Path, name: str) -> list[ArgumentField] | None:
    """The fields of the model that annotates `args` of the class's `run`; None where they are unclear."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    run = next((node for node in classes[name].body if _is_run(node)), None) if name in classes else None
    if not isinstance(run, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return None
    annotation = next((one.annotation for one in run.args.args if one.arg == "args"), None)
    model = annotation.value if isinstance(annotation, ast.Constant) else getattr(annotation, "id", None)
    try:
        return list(_fields(classes, str(model)))
    except LookupError:
        return None


def _is_run(node: ast.stmt) -> bool:
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == "run"


def _fields(classes: Mapping[str, ast.ClassDef], name: str) -> Iterator[ArgumentField]:
    """Raises LookupError where a base class is not known, or names are others than the fields'."""
    found = classes[name]
    bases = [getattr(base, "attr", getattr(base, "id", "")) for base in found.bases]
    if not bases:
        raise LookupError(name)
    for base in bases:
        if base != "BaseModel":
            yield from _fields(classes, base)
    for node in found.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            kind = node.annotation.id if isinstance(node.annotation, ast.Name) else ""
            yield ArgumentField(node.target.id, kind, _is_required(node.value))
        elif isinstance(node, ast.Assign):  # model_config may allow other names
            raise LookupError(name)


def _is_required(value: ast.expr | None) -> bool:
    if value is None:
        return True
    if not (isinstance(value, ast.Call) and getattr(value.func, "id", getattr(value.func, "attr", "")) == "Field"):
        return False
    words = {word.arg for word in value.keywords}
    if words & {"alias", "validation_alias"}:
        raise LookupError("alias")
    first = value.args[0] if value.args else None
    given = first is not None and not (isinstance(first, ast.Constant) and first.value is ...)
    return not given and not words & {"default", "default_factory"}


def mismatches(arguments: Mapping[str, Any], fields: list[ArgumentField]) -> Iterator[tuple[str, str]]:
    """The names of arguments that the model would reject, with the reason."""
    for field in fields:
        if field.name not in arguments:
            if field.required:
                yield field.name, f"the Runnable's model requires {field.name!r}, found none"
            continue
        value = arguments[field.name]
        takes = _TAKES.get(field.kind)
        if takes is not None and (not isinstance(value, takes) or not _could_be(value, field.kind)):
            yield field.name, f"the Runnable's model expects {field.kind}, found {str(value)[:60]!r}"


def _could_be(value: Any, kind: str) -> bool:
    """Whether a text is a number, where one is wanted."""
    if not isinstance(value, str) or kind not in ("int", "float"):
        return True
    try:
        float(value)
    except ValueError:
        return False
    return True
