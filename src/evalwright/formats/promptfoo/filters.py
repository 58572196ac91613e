"""A configuration's own filters for templates: functions in JavaScript or Python files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jinja2 import Undefined

from evalwright.formats.promptfoo.faults import ScriptError, TemplateError
from evalwright.formats.promptfoo.scripts import call_file
from evalwright.formats.promptfoo.sources import split_function
from evalwright.formats.promptfoo.values import template_text
from evalwright.sandbox.workers import awaited_now

__all__ = ["filter_of"]


def filter_of(folder: str, named: str) -> Callable[..., Any]:
    """The filter in a file, callable from a template: it does not wait for other calls."""
    in_python = split_function(named)[0].endswith(".py")

    def applied(value: Any, *arguments: Any) -> Any:
        missing = isinstance(value, Undefined)
        as_is = missing or value is None or isinstance(value, (str, int, float, list, dict))
        values = [None if missing else value if as_is else template_text(value), *arguments]
        if missing and not arguments and not in_python:
            values = []  # so that JavaScript gets undefined, which JSON does not have
        try:
            return awaited_now(call_file(folder, named, "filter", values))
        except ScriptError as error:
            raise TemplateError(f"{named}: {error}") from None

    return applied
