"""The body of a request: the configured `body`, overlaid by the case."""

from __future__ import annotations

import json
from typing import Any

from evalwright.errors import TargetError
from evalwright.files.key_paths import as_written
from evalwright.model.snapshot import Case
from evalwright.targets.templates import Template

__all__ = ["RequestBody"]


class RequestBody:
    """`body` overlaid by the rendered `request_template`, or by the case's input if there is no template.

    Without `body`, a template may render any JSON, as a batch of calls that is a list.
    """

    def __init__(self, body: dict[str, Any], template: Template | None) -> None:
        self._body, self._template = body, template

    def content(self, case: Case) -> bytes:
        """The JSON text to send."""
        try:
            return json.dumps(self._document(case), separators=(",", ":"), allow_nan=False, default=str).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise TargetError(f"cannot write the request as JSON: {error}") from None

    def _document(self, case: Case) -> Any:
        if self._template is None:
            overlay, what = case.input, "the input of a case without 'request_template'"
        else:
            overlay, what = _rendered(self._template, case), "the rendered 'request_template', which overlays 'body',"
            if not self._body:
                return overlay
        if not isinstance(overlay, dict):
            raise TargetError(f"{what} must be a JSON object, found {as_written(overlay)}")
        return {**self._body, **overlay}


def _rendered(template: Template, case: Case) -> Any:
    try:
        return json.loads(template.render(case))
    except (ValueError, RecursionError) as error:
        raise TargetError(
            f"the rendered 'request_template' is not JSON: {error}; quote strings, or write {{{{ path | json }}}}"
        ) from None
