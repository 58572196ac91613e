"""Assertions on JSON in a text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from evalwright.errors import EvaluatorError, InputError
from evalwright.evaluators.judges.replies import BadReply
from evalwright.files import yaml
from evalwright.files.key_paths import as_written
from evalwright.formats.promptfoo.evaluator import AssertionInput
from evalwright.formats.promptfoo.values import as_javascript
from evalwright.model.result import Evaluation

__all__ = ["contains_json", "is_json", "objects_in", "schema_of"]

_MOST_OPENINGS = 200
"""Braces that are tried as the beginning of an object: real outputs have far fewer."""
_LONGEST = 100_000
"""Maximum length of an object in a text, in characters."""
_BRACES = re.compile("[{}]")
_COMMENTS = re.compile(r"""\"(?:\\.|[^"\\\n])*"|(?<![a-zA-Z])'(?:\\.|[^'\\\n])*'|(?<![:/])(//+)""")
_NOTHING = object()


def is_json(question: AssertionInput) -> Evaluation:
    """The whole text is JSON, and valid by the schema if there is one."""
    output = _parsed_output(question)
    if output is _NOTHING:
        return question.of(False, "the output is not JSON")
    if not _has_schema(question):
        return question.of(True, "the output is JSON")
    return _by_schema(question, [output])


def contains_json(question: AssertionInput) -> Evaluation:
    """The text contains an object; with a schema, a valid one."""
    objects = list(_embedded_objects(question.text))
    if not objects or not _has_schema(question):
        return question.of(bool(objects), "there is no object in the output", "there is an object in the output")
    return _by_schema(question, objects)


def _has_schema(question: AssertionInput) -> bool:
    """Whether the value counts as one in JavaScript, where an empty list or mapping is true."""
    return bool(question.value) or isinstance(question.value, (dict, list))


def _parsed_output(question: AssertionInput) -> Any:
    if isinstance(question.output, (dict, list)):
        return question.output
    try:
        return as_javascript(json.loads(question.text, parse_constant=_reject_constant))
    except (ValueError, RecursionError):
        return _NOTHING


def _reject_constant(word: str) -> Any:
    raise ValueError(word)


def _embedded_objects(text: str) -> Iterator[Any]:
    """The objects that promptfoo sees in a text: it counts braces, even within quotation marks."""
    position = tried = 0
    while tried < _MOST_OPENINGS and (start := text.find("{", position)) >= 0:
        tried += 1
        end, depth = min(len(text), start + _LONGEST), 1
        for brace in _BRACES.finditer(text, start + 1, end):
            depth += 1 if brace[0] == "{" else -1
            if not depth:
                end = brace.end()
                break
        value = _tolerant(_COMMENTS.sub(lambda match: "#" if match[1] else match[0], text[start:end] + "}" * depth))
        position = start + 1
        if isinstance(value, (dict, list)):
            yield value
            position = end


def objects_in(text: str, pairs: Callable[[list[tuple[str, Any]]], dict[str, Any]] = dict) -> Iterator[dict[str, Any]]:
    """The outermost objects in a text, read as JSON or, if that fails, as YAML of one line or more.

    `pairs` makes an object from its keys and values; a BadReply that it raises ends the search.
    """
    decoder, position, tried = json.JSONDecoder(strict=False, object_pairs_hook=pairs), 0, 0
    while tried < _MOST_OPENINGS and (start := text.find("{", position)) >= 0:
        tried += 1
        try:
            value, position = decoder.raw_decode(text, start)
            yield value
            continue
        except BadReply:
            raise
        except (ValueError, RecursionError):
            pass
        end = _closing(text, start)
        value = None if end is None else _tolerant(text[start:end])
        if isinstance(value, dict) and end is not None:
            yield value
            position = end
        else:
            position = start + 1


def _closing(text: str, start: int) -> int | None:
    """Where the brace at `start` is closed."""
    depth, quote, i = 0, "", start
    while i < len(text):
        sign = text[i]
        if quote:
            if sign == "\\":
                i += 1
            elif sign == quote:
                quote = ""
        elif sign == '"':
            quote = sign
        elif sign == "{":
            depth += 1
        elif sign == "}":
            depth -= 1
            if not depth:
                return i + 1
        i += 1
    return None


def _tolerant(text: str) -> Any:
    with suppress(ValueError, RecursionError):
        return as_javascript(json.loads(text))
    try:
        return as_javascript(yaml.parse(text.encode(errors="replace"), "output", "yaml12").value)
    except InputError:
        return None


def _by_schema(question: AssertionInput, objects: list[Any]) -> Evaluation:
    from evalwright.formats.promptfoo.ajv import validator_of

    try:
        if not isinstance(question.value, (str, dict, list)):
            raise ValueError(f"expected a mapping or text, found {as_written(question.value)}")
        validator = validator_of(schema_of(question.value))
        errors = [next(iter(validator.iter_errors(document)), None) for document in objects]
    except (ValueError, RecursionError) as error:
        raise EvaluatorError(f"the schema cannot be used: {error}", "bad_value") from None
    first = next((error for error in errors if error is not None), None)
    wrong = "" if first is None else f"not valid by the schema: {first.message}"
    return question.of(None in errors, wrong, "it is valid by the schema")


def schema_of(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return as_javascript(yaml.parse(value.encode(), "schema", "yaml12").value)
    except InputError as error:
        raise ValueError(str(error)) from None
