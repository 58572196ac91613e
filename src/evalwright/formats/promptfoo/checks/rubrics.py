"""A configuration's own prompts for its judges."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from evalwright.errors import EvaluatorError
from evalwright.formats.promptfoo.faults import TemplateError
from evalwright.formats.promptfoo.templates import render, render_all
from evalwright.formats.promptfoo.values import pretty_json

__all__ = ["own_messages"]


def own_messages(
    assertion: Mapping[str, Any], options: Mapping[str, Any], names: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The messages in `rubricPrompt` of an assertion or its test; empty if there is none. Raises EvaluatorError."""
    prompt = assertion.get("rubricPrompt", options.get("rubricPrompt"))
    if prompt is None:
        return []
    try:
        if isinstance(prompt, str) and prompt.lstrip().startswith("["):
            prompt = _parsed(prompt)
        if isinstance(prompt, list):
            return [dict(one) for one in render_all(prompt, names) if isinstance(one, dict)]
        text = prompt if isinstance(prompt, str) else pretty_json(prompt)
        return [{"role": "user", "content": render(text, names)}]
    except TemplateError as error:
        raise EvaluatorError(f"rubricPrompt: {error}", "template_error") from None


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
