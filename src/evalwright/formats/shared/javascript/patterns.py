"""JavaScript patterns, searched for by Python, or by Node if Python has no equivalent."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from evalwright.errors import EvaluatorError
from evalwright.formats.shared.javascript.characters import BeyondPython, InvalidPattern, code_units
from evalwright.formats.shared.javascript.regular_expressions import is_plain, rewritten
from evalwright.sandbox.patterns import SEARCH_LIMIT, search

__all__ = ["ScriptPattern", "pattern_of"]

_WAITED = 10 * SEARCH_LIMIT
"""Wall-clock seconds for a search by Node, whose processor time cannot be limited."""
_SEARCH = """
let expression;
try { expression = new RegExp(source, flags); } catch (error) { return { invalid: error.message }; }
return { found: expression.test(text) };
"""


class ScriptPattern:
    """An expression with its flags."""

    def __init__(self, expression: str, flags: str) -> None:
        self._expression, self._flags = expression, flags
        self._python: re.Pattern[str] | None = None
        self.beyond: str = ""
        """Why only Node can search for it; empty if Python can."""
        # a plain expression needs no check here: it is compiled when it is searched for
        if not is_plain(expression, flags):
            self._read()

    def _read(self) -> None:
        try:
            self._python = rewritten(self._expression, self._flags)
        except BeyondPython as error:
            self.beyond = str(error)

    def found_in(self, text: str) -> bool:
        """Whether it is found. Raises InvalidPattern, and EvaluatorError if it takes too long or Node is missing."""
        if self._python is None and not self.beyond:
            self._read()
        if self._python is None:
            return self._found_by_node(text)
        return search(self._python, text if "u" in self._flags else code_units(text)) is not None

    def _found_by_node(self, text: str) -> bool:
        from evalwright.sandbox.workers import awaited_now, call_worker, script_command

        given = {"source": self._expression, "flags": self._flags, "text": text}
        request = {"code": _SEARCH, "names": [*given], "arguments": [*given.values()], "seconds": _WAITED}
        folder = str(Path(__file__).parent)
        try:
            command = script_command(folder, folder)
        except EvaluatorError as error:
            shown = f"the pattern {self._expression!r:.80}"
            raise EvaluatorError(f"{shown} is not one for Python ({self.beyond}); {error}", error.type) from None
        reply = awaited_now(call_worker(command, request, on_stdio=True))
        if "error" in reply:
            raise EvaluatorError(f"searching for {self._expression!r:.80} {reply.get('message')}", reply["error"])
        value = reply["value"]
        if "invalid" in value:
            raise InvalidPattern(value["invalid"])
        return bool(value["found"])


@lru_cache(512)
def pattern_of(expression: str, flags: str = "") -> ScriptPattern:
    """The pattern of an expression. Raises InvalidPattern, as far as Python can tell."""
    return ScriptPattern(expression, flags)
