"""The body of a request: what is configured, overlaid by the case (specification evalh, d.1)."""

from __future__ import annotations

import json
from typing import Any

from evalwright.errors import TargetError
from evalwright.model.snapshot import Case
from evalwright.targets.templates import Template

__all__ = ["RequestBody"]


class RequestBody:
    """`body` overlaid by what `request_template` gives, or by the case's input where there is no template."""

    def __init__(self, body: dict[str, Any], template: str | None) -> None:
        self._body = body
        self._template = None if template is None else Template(template)

    def content(self, case: Case) -> bytes:
        """The JSON text to send."""
        try:
            return json.dumps(
                {**self._body, **self._overlay(case)}, separators=(",", ":"), allow_nan=False, default=str
            ).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise TargetError(f"the request cannot be written as JSON: {error}") from None

    def _overlay(self, case: Case) -> dict[str, Any]:
        if self._template is None:
            return _object(case.input, "the input of a case without 'request_template'")
        text = self._template.render(case)
        try:
            return _object(json.loads(text), "what 'request_template' gives")
        except (ValueError, RecursionError) as error:
            raise TargetError(
                f"request_template does not give JSON: {error}; texts need quotes, or write {{{{ path | json }}}}"
            ) from None


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TargetError(f"{what} must be a JSON object, found {type(value).__name__}")
    return value
