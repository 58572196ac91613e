"""`{{ path }}`, `{{ path | json }}` and `{{ path | default("...") }}` in what is sent to a system.

Roots are `input`, `case_id`, `session_id` and `case.{id,input,metadata}`. The expected behaviour of a case cannot be
reached: a system must not see what it is tested for.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import msgspec

from evalwright.errors import InputError, Problem, TargetError, did_you_mean
from evalwright.model.plan import Variant
from evalwright.model.snapshot import Case

if TYPE_CHECKING:
    from evalwright.model.case import EvalCase

__all__ = ["SESSION_ID", "Template", "in_session", "never_filled", "template_of"]

SESSION_ID = "evalwright.session_id"
"""Where the `extra` of a case has the id of a conversation that takes several calls."""

_PLACE = re.compile(r"\{\{([^{}]*)\}\}")
_UNCLOSED = re.compile(r"\{\{\s*([\w-]+(?:\.[\w-]+)+)\s*(?:\}(?!\})|$)")
_PATH = re.compile(r"[\w-]+(?:\.[\w-]+)*")
_DEFAULT = re.compile(r"""default\(\s*("[^"]*"|'[^']*')\s*\)""")
_BAR = re.compile(r"""\|(?=(?:[^"']|"[^"]*"|'[^']*')*$)""")
"""Separates filters; between quotes it is text of a default, and so is the other kind of quote."""
_EVALH = re.compile(r"\{\{([^{}|]+)(\|\s*json\s*)?\}\}")
"""What evalh fills in; it leaves everything else between braces as it is."""
_OF_CASE = ("id", "input", "metadata")
_IDS = ("case_id", "session_id")
_ROOTS = ("input", *_IDS, *(f"case.{name}" for name in _OF_CASE))
_NOTHING = object()


class _Field(NamedTuple):
    """A place for a value, and the text after it."""

    path: str
    as_json: bool
    default: Any
    after: str


class Template:
    """A text with places for values of the case. Raises InputError for a place that no case can fill.

    `key` is the key of the system that contains it, for messages. By evalh's rules, what is not found is empty.
    """

    def __init__(self, text: str, key: str = "", *, evalh_rules: bool = False) -> None:
        self._key = key
        pieces = (_EVALH if evalh_rules else _PLACE).split(text)
        self._start = pieces[0]
        if evalh_rules:
            triples = zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True)
            self._fields = [
                _Field(path.strip(), filtered is not None, None, after) for path, filtered, after in triples
            ]
            return
        problems: list[Problem] = []
        self._fields = [
            _field(inside, after, key, problems) for inside, after in zip(pieces[1::2], pieces[2::2], strict=True)
        ]
        problems += (Problem("", wrong, key=key) for wrong in _unclosed_places(pieces[::2]))
        if problems:
            raise InputError(problems)

    def render(self, case: Case) -> str:
        """Fill in the values: strings as they are, null as nothing, others as JSON; `| json` turns anything into JSON.

        Raises TargetError that names every path without a value.
        """
        # a call outside a conversation is one of its own: services that keep sessions must not mix trials or attempts
        roots = _roots_of(case, in_session(case).extra[SESSION_ID])
        written, missing = [self._start], []
        for field in self._fields:
            value = _value_at(roots, field.path.split("."))
            if value is _NOTHING:
                value = field.default
            if value is _NOTHING:
                missing.append(field.path)
            else:
                written += (_written_value(value, field.as_json), field.after)
        if missing:
            place = f"{self._key}: " if self._key else ""
            problems = (f"{place}the case has no {path}{_instead(path, roots)}" for path in dict.fromkeys(missing))
            raise TargetError("; ".join(problems))
        return "".join(written)

    def missing(self, case: Case | EvalCase) -> dict[str, str]:
        """Each path that needs a value and finds none in the case, with what there is instead."""
        roots = _roots_of(case)
        needed = dict.fromkeys(field.path for field in self._fields if field.default is _NOTHING)
        return {path: _instead(path, roots) for path in needed if _value_at(roots, path.split(".")) is _NOTHING}


def in_session(case: Case) -> Case:
    """The case with the id of its session, a new one unless it has one: for a call with several templates."""
    if SESSION_ID in case.extra:
        return case
    return msgspec.structs.replace(case, extra={**case.extra, SESSION_ID: uuid4().hex})


def template_of(text: str, key: str, variant: Variant, problems: list[Problem]) -> Template | None:
    """The template in the key of a system, or None, with its mistakes added to `problems`."""
    try:
        return Template(text, key, evalh_rules=variant.evalh_rules)
    except InputError as error:
        problems += error.listed
        return None


def never_filled(variant: Variant, keys: Iterable[str], filled: str) -> Iterator[Problem]:
    """Places for values of the case in keys of a system that are sent as they are; `filled` is the key to use.

    By evalh's rules they are text.
    """
    for key in () if variant.evalh_rules else keys:
        for where, text in _texts(variant.config.get(key), key):
            for inside in _PLACE.findall(text):
                if not _wrong(_split(inside)[0].strip()):
                    message = f"{{{{{inside}}}}} is not filled in here, but only in {filled!r}"
                    yield Problem("", message, key=where)


def _texts(value: Any, key: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _texts(item, f"{key}.{name}")
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item, key)


def _field(inside: str, after: str, key: str, problems: list[Problem]) -> _Field:
    path, *filters = (part.strip() for part in _split(inside))
    as_json, default = False, _NOTHING
    for written in filters:
        if default_call := _DEFAULT.fullmatch(written):
            default = ast.literal_eval(default_call[1])
        elif written == "json":
            as_json = True
        else:
            near = did_you_mean(written, ("json", "default"))
            message = f'unknown filter {written!r} in {{{{{inside}}}}}{near} (there are: json, default("..."))'
            problems.append(Problem("", message, key=key))
    if wrong := _wrong(path):
        problems.append(Problem("", f"{{{{{inside}}}}} {wrong}", key=key))
    return _Field(path, as_json, default, after)


def _unclosed_places(literals: Iterable[str]) -> Iterator[str]:
    """Places that begin but do not end; other braces are text."""
    for literal in literals:
        if match := _UNCLOSED.search(literal):
            yield f"{match[0].strip()!r} does not end with two braces: write {{{{ {match[1]} }}}}"


def _split(inside: str) -> list[str]:
    """The path and the filters."""
    return _BAR.split(inside)


def _wrong(path: str) -> str:
    """Why no case can have a value there; empty if one can."""
    known = f"expected one of {', '.join(_ROOTS)}, or a path below input or case.metadata"
    if not _PATH.fullmatch(path):
        return f"is not the path of a value: {known}"
    root, _, rest = path.partition(".")
    if root == "case" and rest.partition(".")[0] == "expected":
        return f"cannot be sent: a system does not see what is expected of it ({known})"
    if root == "case" and rest and rest.partition(".")[0] not in _OF_CASE:
        return f"names nothing that a case has{did_you_mean(path, _ROOTS)} ({known})"
    if root not in ("input", "case", *_IDS) or (root in _IDS and rest):
        return f"names nothing that a case has{did_you_mean(path, (*_ROOTS, f'input.{path}'))} ({known})"
    return ""


def _value_at(value: Any, path: list[str]) -> Any:
    for key in path:
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return _NOTHING
    return value


def _roots_of(case: Case | EvalCase, session_id: str = "") -> dict[str, Any]:
    of_case = {"id": case.id, "input": case.input, "metadata": case.metadata}
    return {"input": case.input, "case_id": case.id, "session_id": session_id, "case": of_case}


def _instead(path: str, roots: dict[str, Any]) -> str:
    """Says what there is beside a missing value, and how to make it optional."""
    parent, _, last = path.rpartition(".")
    beside = _value_at(roots, parent.split("."))
    names = [str(name) for name in beside] if isinstance(beside, dict) else []
    near = did_you_mean(last, names) or (f"; {parent} has: {', '.join(names)}" if names else "")
    return f'{near} (optional: {{{{ {path} | default("") }}}})'


def _written_value(value: Any, as_json: bool) -> str:
    if as_json:
        return json.dumps(value)
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)
