"""Derived metrics: arithmetic over the sums of a column, with functions like those of mathjs."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from evalwright.errors import did_you_mean
from evalwright.files.key_paths import as_written

__all__ = ["mistake_in", "value_of"]

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.Mod: operator.mod, ast.Pow: operator.pow,
}  # fmt: skip


def _rounded(value: float, digits: float = 0) -> float:
    """Rounded to this many digits, halves away from 0."""
    scale = 10.0 ** int(digits)
    return math.copysign(math.floor(abs(value) * scale + 0.5) / scale, value)


def _mean(*values: float) -> float:
    return math.fsum(values) / len(values)


def _median(*values: float) -> float:
    middle, ordered = len(values) // 2, sorted(values)
    return ordered[middle] if len(values) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs, "cbrt": math.cbrt, "ceil": math.ceil, "cube": lambda x: x**3, "exp": math.exp, "fix": math.trunc,
    "floor": math.floor, "log": math.log, "log10": math.log10, "log2": math.log2, "max": max,
    "mean": _mean, "median": _median, "min": min, "mod": operator.mod, "pow": math.pow, "round": _rounded,
    "sign": lambda x: (x > 0) - (x < 0), "sqrt": math.sqrt,
    "square": lambda x: x * x, "sum": lambda *values: math.fsum(values),
}  # fmt: skip
_LONGEST = 1000
_HIGHEST_POWER = 100


def mistake_in(expression: str) -> str | None:
    """Why an expression cannot be computed, whatever its names stand for; None if it can."""
    try:
        tree = _parsed_expression(expression)
    except SyntaxError as error:
        return f"expected an expression of sums, found {as_written(expression)}: {error.msg}"
    known = (
        ast.Expression,
        ast.BinOp,
        ast.UnaryOp,
        ast.USub,
        ast.UAdd,
        ast.Constant,
        ast.Name,
        ast.Load,
        ast.Call,
    )
    for node in ast.walk(tree):
        if not isinstance(node, (*known, *_BINARY)):
            return f"expected an expression of sums, found {as_written(expression)}"
        if isinstance(node, ast.Call) and (not isinstance(node.func, ast.Name) or node.func.id not in _FUNCTIONS):
            name = ast.unparse(node.func)
            return f"no function {name!r} in {expression!r:.80}{did_you_mean(name, _FUNCTIONS)}"
    return None


def value_of(expression: str, names: Mapping[str, float]) -> float | None:
    """The value; None if a name is unknown, or if it divides by 0."""
    try:
        return float(_value(_parsed_expression(expression).body, names))
    except (SyntaxError, LookupError, ArithmeticError, TypeError, ValueError):
        return None


def _parsed_expression(expression: str) -> ast.Expression:
    if len(expression) > _LONGEST:
        raise SyntaxError("too long")
    if "\0" in expression:  # Python 3.11.3 and older raise ValueError for it
        raise SyntaxError("it contains a null character")
    return ast.parse(expression.strip().replace("^", "**"), mode="eval")


def _value(node: ast.expr, names: Mapping[str, float]) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return node.value
    if isinstance(node, ast.Name):
        return names[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        value = _value(node.operand, names)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        left, right = _value(node.left, names), _value(node.right, names)
        if isinstance(node.op, ast.Pow) and abs(right) > _HIGHEST_POWER:
            raise ValueError
        return _BINARY[type(node.op)](left, right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id not in names:
        return _FUNCTIONS[node.func.id](*(_value(arg, names) for arg in node.args))
    raise ValueError
