"""Whether pydantic would accept a JSON value for an annotation, as far as the annotation's text tells.

Every answer is True, False, or None if that is unknown.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

__all__ = ["Classes", "fits", "limits_hold"]

Classes = Mapping[str, ast.ClassDef]
"""The classes of a file by name."""
Fits = Callable[[Any], bool | None]

_BOOLEANS = {"0", "1", "off", "on", "f", "t", "false", "true", "n", "y", "no", "yes"}
_COMPARED = {"ge": operator.ge, "gt": operator.gt, "le": operator.le, "lt": operator.lt}
_SAYS_NOTHING = {
    "default", "default_factory", "description", "title", "examples", "json_schema_extra", "repr", "exclude",
}  # fmt: skip


def fits(annotation: ast.expr, value: Any, classes: Classes, model: Callable[[str], Fits]) -> bool | None:
    """`model` returns what decides about a model of the file, and raises LookupError if that is unclear."""

    def inner(one: ast.expr, of: Any) -> bool | None:
        return fits(one, of, classes, model)

    match annotation:
        case ast.Constant(value=None):
            return value is None
        case ast.Constant(value=str(text)):
            try:
                return inner(ast.parse(text, mode="eval").body, value)
            except SyntaxError:
                return None
        case ast.BinOp(left, ast.BitOr(), right):
            return _any([inner(left, value), inner(right, value)])
        case ast.Name(name) if name in classes:
            try:
                return model(name)(value)
            except (LookupError, RecursionError):
                return None
        case ast.Name(name):
            return _fits_plain_type(name, value)
        case ast.Subscript(of, ast.expr() as inside):
            parts = inside.elts if isinstance(inside, ast.Tuple) else [inside]
            return _generic(getattr(of, "attr", getattr(of, "id", "")), parts, value, inner)
    return None


def _generic(
    name: str, parts: list[ast.expr], value: Any, inner: Callable[[ast.expr, Any], bool | None]
) -> bool | None:
    match name:
        case "Optional":
            return value is None or inner(parts[0], value)
        case "Union":
            return _any(inner(part, value) for part in parts)
        case "Literal":
            return _is_one_of(parts, value)
        case "list" | "List":
            return isinstance(value, list) and _all_fit(inner(parts[0], item) for item in value)
        case "dict" | "Dict" if len(parts) == 2:
            if not isinstance(value, dict):
                return False
            return _all_fit(inner(part, item) for pair in value.items() for part, item in zip(parts, pair, strict=True))
    return None


def _is_one_of(parts: list[ast.expr], value: Any) -> bool | None:
    known = [part.value for part in parts if isinstance(part, ast.Constant)]
    if any(type(literal) is type(value) and literal == value for literal in known):
        return True
    return False if len(known) == len(parts) else None


def _fits_plain_type(name: str, value: Any) -> bool | None:
    """By the table of conversions in pydantic's documentation, for JSON values in Python."""
    number = isinstance(value, (int, float))
    match name:
        case "Any" | "object":
            return True
        case "str":
            return isinstance(value, str)
        case "list":
            return isinstance(value, list)
        case "dict":
            return isinstance(value, dict)
        case "int" if number:
            return bool(value == value // 1)
        case "float" if number:
            return True
        case "int" | "float":
            return isinstance(value, str) and _number_in(value) is not None
        case "bool" if number:
            return value in (0, 1)
        case "bool":
            return isinstance(value, str) and value.lower() in _BOOLEANS
    return None


def _number_in(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def limits_hold(words: Mapping[str | None, ast.expr], value: Any) -> bool | None:
    """Whether a value of the right type satisfies the keywords of its `Field(...)`."""
    sure, number = True, _number_in(value) if isinstance(value, str) else value
    for word, given in words.items():
        limit = _number(given)
        if word in _SAYS_NOTHING:
            continue
        if word in _COMPARED and limit is not None and isinstance(number, (int, float)):
            if not _COMPARED[word](number, limit):
                return False
        elif word in ("min_length", "max_length") and limit is not None and isinstance(value, (str, list, dict)):
            if len(value) < limit if word == "min_length" else len(value) > limit:
                return False
        else:
            sure = False
    return True if sure else None


def _number(node: ast.expr) -> float | None:
    try:
        literal = ast.literal_eval(node)
    except (ValueError, TypeError):
        return None
    return literal if isinstance(literal, (int, float)) else None


def _any(answers: Iterable[bool | None]) -> bool | None:
    known = list(answers)
    return True if True in known else None if None in known else False


def _all_fit(answers: Iterable[bool | None]) -> bool | None:
    known = list(answers)
    return False if False in known else None if None in known else True
