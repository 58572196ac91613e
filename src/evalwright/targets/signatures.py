"""How a user's function is called for a cell, by the names and the number of its parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from inspect import Parameter
from typing import Any

import msgspec

from evalwright.errors import InputError, Problem
from evalwright.model.snapshot import Case

__all__ = ["Arguments", "Fields", "arguments_for"]

Arguments = Callable[[Case, dict[str, Any], int], tuple[tuple[Any, ...], dict[str, Any]]]
"""From a case, a variant as plain data and a trial to the arguments of a call."""

_NAMED = ("case", "variant", "trial")


class Fields(dict[str, Any]):
    """A mapping whose keys can be read as attributes too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"there is no {name!r} (there are: {', '.join(self)})") from None


def arguments_for(function: Any) -> Arguments:
    """One parameter gets the input; two get the case and the variant; `case`, `variant`, `trial` get what they say.

    Parameters with a default are left alone unless they have one of these names. Raises InputError for a function
    that asks for something else.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some builtins have no signature
        return _input_to(None, [])
    if _takes_case_and_variant(parameters):
        return lambda case, variant, _trial: ((_case(case), Fields(variant)), {})
    named = [p.name for p in parameters if p.name in _NAMED and p.kind is not Parameter.POSITIONAL_ONLY]
    others = [p for p in _required(parameters) if p.name not in named]
    if not others and not named:  # def answer(text="..."): the input all the same
        others = [p for p in parameters if p.kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)][:1]
    if len(others) > 1 or not (others or named):
        listed = ", ".join(str(p) for p in parameters)
        expected = "expected a function of one parameter (the input), or of two (case, variant)"
        raise InputError(Problem("", f"{expected}, found ({listed})", key="target"))
    keyword = others[0].name if others and others[0].kind is Parameter.KEYWORD_ONLY else None
    return _input_to(keyword, named, alone=not others)


def _required(parameters: Sequence[Parameter]) -> list[Parameter]:
    variadic = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    return [p for p in parameters if p.default is Parameter.empty and p.kind not in variadic]


def _takes_case_and_variant(parameters: Sequence[Parameter]) -> bool:
    """`(case, variant)` whatever the two are called, and `*args`, as targets of evalh are called."""
    kinds = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    names = [p.name for p in parameters if p.kind in kinds and (p.default is Parameter.empty or p.name in _NAMED)]
    if not names:
        return any(p.kind is Parameter.VAR_POSITIONAL for p in parameters)
    if len(names) != 2 or len(_required(parameters)) > 2:
        return False
    return names[0] not in ("variant", "trial") and names[1] not in ("case", "trial")


def _input_to(keyword: str | None, named: Sequence[str], *, alone: bool = False) -> Arguments:
    def arguments(case: Case, variant: dict[str, Any], trial: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        keywords: dict[str, Any] = {}
        for name in named:
            keywords[name] = _case(case) if name == "case" else Fields(variant) if name == "variant" else trial
        if alone:
            return (), keywords
        given = msgspec.to_builtins(case.input)
        if keyword is None:
            return (given,), keywords
        return (), {**keywords, keyword: given}

    return arguments


def _case(case: Case) -> Fields:
    data = Fields(case.argument())
    data["expected"] = Fields(data["expected"])
    return data
