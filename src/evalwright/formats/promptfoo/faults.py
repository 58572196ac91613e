"""Failures of the code and the templates of a configuration."""

from __future__ import annotations

from evalwright.errors import EvalwrightError

__all__ = ["ScriptError", "TemplateError"]


class ScriptError(EvalwrightError):
    """A script that returned no value. `type` is the sandbox's: exception, unusable, timeout, not_started, ..."""

    def __init__(self, message: str, type: str = "exception") -> None:
        super().__init__(message)
        self.type = type


class TemplateError(EvalwrightError):
    """A template that cannot be rendered; the message says why."""
