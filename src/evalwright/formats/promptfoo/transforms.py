"""Transforms: code that turns an output into another one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from evalwright.formats.promptfoo.faults import ScriptError
from evalwright.formats.promptfoo.javascript_code import simple_path
from evalwright.formats.promptfoo.scripts import call_file, run_javascript
from evalwright.formats.promptfoo.sources import in_file, split_function

__all__ = ["body_returning", "requested", "response_of", "transformed", "transformed_vars"]

_FUNCTION = re.compile(r"(?:async\s+)?(?:(?:\(.*?\)|[\w$]+)\s*=>|function\b)")
_RETURN = re.compile(r"\breturn\b")


async def transformed(code: Any, output: Any, context: Mapping[str, Any], folder: str) -> Any:
    """The output returned by a transform. Raises ScriptError, also if it returns nothing."""
    if in_file(code):
        evaluated_code = await call_file(folder, code, "get_transform", [output, context])
    else:
        evaluated_code = await _evaluated_code(str(code), {"output": output, "context": context}, folder)
    if evaluated_code is None:
        raise ScriptError(f"the transform {_shown_code(code)} returned nothing")
    return evaluated_code


async def transformed_vars(code: Any, values: Mapping[str, Any], context: Mapping[str, Any], folder: str) -> Any:
    """The variables returned by `transformVars`. Raises ScriptError."""
    if in_file(code):
        evaluated_code = await call_file(folder, code, "get_transform", [values, context])
    else:
        evaluated_code = await _evaluated_code(str(code), {"vars": dict(values), "context": context}, folder)
    if not isinstance(evaluated_code, dict):
        raise ScriptError(f"transformVars {_shown_code(code)} gave {type(evaluated_code).__name__}, expected a mapping")
    return evaluated_code


async def response_of(code: Any, document: Any, text: str, context: Mapping[str, Any], folder: str) -> Any:
    """The output in the response of an HTTP service. Raises ScriptError."""
    if in_file(code):
        return await call_file(folder, code, "get_response", [document, text, context])
    names = {"json": document, "text": text, "context": context}
    is_simple, value = simple_path(str(code), names)
    return value if is_simple else await run_javascript(folder, body_returning(str(code), names), names)


async def requested(code: str, names: Mapping[str, Any], folder: str) -> Any:
    """What code makes of the prompt of a request to an HTTP service; it may also be the body of a function. Raises
    ScriptError."""
    is_body = _RETURN.search(code) and not _FUNCTION.match(code.strip())
    return await run_javascript(folder, code if is_body else body_returning(code, names), names)


def body_returning(code: str, names: Mapping[str, Any]) -> str:
    """The body of a function that returns the value of an expression, or what a function makes of all `names`."""
    code = code.strip().rstrip(";")
    return f"return ({code})({', '.join(names)})" if _FUNCTION.match(code) else f"return ({code})"


async def _evaluated_code(code: str, names: Mapping[str, Any], folder: str) -> Any:
    """The value of an expression on one line, or what the body of a function on several lines returns."""
    if "\n" in code:
        return await run_javascript(folder, code, names)
    is_simple, value = simple_path(code, names)
    return value if is_simple else await run_javascript(folder, f"return {code}", names)


def _shown_code(code: Any) -> str:
    return repr(split_function(code)[0] if in_file(code) else str(code).strip().partition("\n")[0])
