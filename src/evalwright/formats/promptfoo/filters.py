"""A configuration's own filters for templates: functions in JavaScript or Python files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evalwright.formats.promptfoo.faults import ScriptError, TemplateError
from evalwright.formats.promptfoo.scripts import call_file
from evalwright.formats.promptfoo.values import template_text
from evalwright.sandbox.workers import awaited_now

__all__ = ["filter_of"]


def filter_of(folder: str, named: str) -> Callable[..., Any]:
    """The filter in a file, callable from a template: it does not wait for other calls."""

    def applied(value: Any, *arguments: Any) -> Any:
        given = [value if isinstance(value, (str, int, float, list, dict)) else template_text(value), *arguments]
        try:
            return awaited_now(call_file(folder, named, "filter", given))
        except ScriptError as error:
            raise TemplateError(f"{named}: {error}") from None

    return applied
