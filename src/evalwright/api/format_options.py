"""Options of a suite's format that a program passes, held to what the command line accepts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalwright.api.problems import refused
from evalwright.errors import InputError, Problem
from evalwright.files.numbers import is_number
from evalwright.formats.loading import OPTIONS_OF_ALL
from evalwright.model.format import Format, Option

__all__ = ["checked_options"]

_EXPECTED = {"text": "text", "path": "a path", "flag": "True or False", "int": "a whole number", "float": "a number"}


def checked_options(suite_format: Format, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as the format takes them: a single value of a repeatable one may stand for a list of it.

    Unknown options are kept: the format refuses them. Raises InputError that lists every mistake.
    """
    known = {option.keyword: option for option in suite_format.options}
    checked: dict[str, Any] = {}
    problems: list[Problem] = []
    for name, value in options.items():
        option = known.get(name)
        is_set = value is not None and value is not False
        if option is None and name in OPTIONS_OF_ALL and is_set:  # on the command line, an option of the run
            message = f"suites of the format {suite_format.name} do not have it; `evaluate` takes systems and trials"
            problems.append(refused(name, message))
        elif option is None or value is None:
            checked[name] = value
        else:
            checked[name] = _checked_value(option, value, problems)
    if problems:
        raise InputError(problems)
    return checked


def _checked_value(option: Option, value: Any, problems: list[Problem]) -> Any:
    values = list(value) if option.multiple and isinstance(value, (list, tuple)) else [value]
    wrong = [one for one in values if not _accepts(option, one)]
    problems += (refused(option.keyword, f"expected {_expected(option)}, found {one!r}") for one in wrong)
    if not wrong and option.type == "path":
        values = [Path(one) for one in values]
    return tuple(values) if option.multiple else values[0]


def _accepts(option: Option, value: Any) -> bool:
    if option.type == "choice":
        return value in option.choices
    if option.type in ("int", "float"):
        low, high = option.minimum, option.maximum
        return (
            is_number(value)
            and (option.type == "float" or isinstance(value, int))
            and (low is None or value >= low)
            and (high is None or value <= high)
            and value == value  # not NaN, which is beyond no bound
        )
    kinds: dict[str, Any] = {"text": str, "flag": bool, "path": (str, os.PathLike)}
    return isinstance(value, kinds[option.type])


def _expected(option: Option) -> str:
    if option.type == "choice":
        return f"one of {', '.join(option.choices)}"
    low, high = option.minimum, option.maximum
    bounds = ""
    if low is not None and high is not None:
        bounds = f" from {low:g} to {high:g}"
    elif low is not None:
        bounds = f" of at least {low:g}"
    elif high is not None:
        bounds = f" of at most {high:g}"
    return _EXPECTED[option.type] + bounds
