"""Prompts of judges: a configuration's own, else ours, and the judge that gets them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalwright.errors import EvaluatorError
from evalwright.files.key_paths import as_written
from evalwright.formats.promptfoo.evaluator import AssertionInput
from evalwright.formats.promptfoo.faults import ScriptError, TemplateError
from evalwright.formats.promptfoo.graders import Grader, grader_of
from evalwright.formats.promptfoo.models import messages_in
from evalwright.formats.promptfoo.scripts import call_file
from evalwright.formats.promptfoo.sources import in_file
from evalwright.formats.promptfoo.switches import is_on
from evalwright.formats.promptfoo.templates import render, render_all
from evalwright.formats.promptfoo.values import compact_json, json_parse

__all__ = [
    "Messages", "judge_of", "messages_for", "own_messages", "parsed_output", "required_texts", "user_message",
    "with_texts",
]  # fmt: skip

Messages = list[dict[str, Any]]
Part = str | int
"""The key or the number of a prompt where a type of assertion takes several."""

_KEEPS_OBJECTS = "PROMPTFOO_DISABLE_OBJECT_STRINGIFY"


def user_message(text: str) -> Messages:
    return [{"role": "user", "content": text}]


def parsed_output(text: str) -> Any:
    """An output in the form in which promptfoo's prompts for judges get it: the value of a text that is JSON."""
    try:
        return json_parse(text)
    except (ValueError, RecursionError):
        return text


def judge_of(question: AssertionInput, names: Mapping[str, Any] | None = None) -> Grader:
    """The judge, with the variables of the test and those that the user's own prompts have."""
    known = {**question.names, **(names or {"output": question.text})}
    return grader_of(question.assertion, question.options, question.folder, "text", known)


async def messages_for(
    question: AssertionInput, names: Mapping[str, Any], part: Part | None = None, *, in_parts: bool = False
) -> Messages:
    """The messages of the configuration's own prompt, which sees mappings as JSON texts, or `in_parts`; empty if there
    is none. Raises EvaluatorError."""
    known = {**question.names, **names}
    return await own_messages(
        question.assertion, question.options, known if in_parts else with_texts(known), question.folder, part
    )


async def own_messages(
    assertion: Mapping[str, Any],
    options: Mapping[str, Any],
    names: Mapping[str, Any],
    folder: str,
    part: Part | None = None,
) -> Messages:
    """The messages in `rubricPrompt` of an assertion or its test; empty if there is none. Raises EvaluatorError."""
    prompt = _part(assertion.get("rubricPrompt") or options.get("rubricPrompt"), part)
    if not prompt:
        return []
    try:
        if in_file(prompt):
            prompt = await call_file(folder, prompt, "get_prompt", [])
        rendered = _rendered_prompt(prompt if isinstance(prompt, str) else compact_json(prompt), names)
        grader = grader_of(assertion, options, folder, "text")
        return messages_in(rendered, grader.provider) if grader.is_model else user_message(rendered)
    except ScriptError as error:
        raise EvaluatorError(f"rubricPrompt: {error}", error.type) from None
    except TemplateError as error:
        raise EvaluatorError(f"rubricPrompt: {error}", "template_error") from None


def _part(prompt: Any, part: Part | None) -> Any:
    if isinstance(part, str):
        return prompt.get(part) if isinstance(prompt, dict) else None
    if part is None or not prompt:
        return prompt
    if not isinstance(prompt, list):
        raise EvaluatorError(f"rubricPrompt: expected a list of two prompts, found {as_written(prompt)}", "bad_value")
    message = prompt[part] if part < len(prompt) else None
    return message.get("content") if isinstance(message, dict) else message


def _rendered_prompt(prompt: str, names: Mapping[str, Any]) -> str:
    """A prompt that is JSON is rendered text by text, so that nothing in an output can break it."""
    try:
        document = json_parse(prompt)
    except (ValueError, RecursionError):
        return render(prompt, names)
    return compact_json(render_all(document, names))


def with_texts(names: Mapping[str, Any]) -> dict[str, Any]:
    """Variables whose mappings, and those in their lists, are JSON texts, as in promptfoo's prompts for judges."""
    if is_on(_KEEPS_OBJECTS):
        return dict(names)
    return {
        name: [_as_text(item) for item in value] if isinstance(value, list) else _as_text(value)
        for name, value in names.items()
    }


def _as_text(value: Any) -> Any:
    return compact_json(value) if isinstance(value, (dict, list)) else value


def required_texts(question: AssertionInput, *, several: bool = False) -> list[str]:
    """The value, which the judge cannot do without: a text, or a list of texts if there may be several. Raises
    EvaluatorError."""
    value = question.value
    texts: list[Any] = value if several and isinstance(value, list) else [value]
    if not texts or not all(isinstance(text, str) and text for text in texts):
        expected = "text, or a list of texts" if several else "text"
        raise EvaluatorError(
            f"{question.kind} needs a value: expected {expected}, found {as_written(value)}", "bad_value"
        )
    return texts
