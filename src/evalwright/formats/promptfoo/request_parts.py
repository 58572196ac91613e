"""Parts of a model's requests that a configuration may have in files of their own, or in templates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from evalwright.errors import InputError
from evalwright.files import yaml
from evalwright.files.boundary import Boundary, OutsideError
from evalwright.formats.promptfoo.faults import TemplateError
from evalwright.formats.promptfoo.sources import in_file
from evalwright.formats.promptfoo.templates import holds_template, render_all
from evalwright.formats.promptfoo.values import as_javascript

__all__ = ["sent_part"]

_RENDERED = ("tools", "functions", "response_format", "reasoning_effort", "reasoning")
"""Settings whose templates are filled in for each call."""
_Variables = Mapping[str, Any] | None
_Reader = Callable[[Any, str, _Variables], Any]


def sent_part(key: str, value: Any, folder: str, variables: _Variables) -> Any:
    """A setting of a model as it is sent: read from its file, with its templates filled in if promptfoo does that.
    Those in files stay, and all of them without `variables`.

    Raises TemplateError if a template names a file that cannot be read, or that the variables must not name.
    """
    names = variables if key in _RENDERED else None
    if key == "response_format" and isinstance(value, dict):
        return _with_schema(value, folder, names)
    loaded = _loaded(value, folder, names)
    return _with_schema(loaded, folder) if key == "response_format" else loaded


def _with_schema(form: Any, folder: str, variables: _Variables = None) -> Any:
    """The format of a reply; its schema may be in a file of its own."""
    if not isinstance(form, dict):
        return form
    read: dict[str, _Reader] = {"json_schema": _with_schema, "schema": _loaded}
    return {key: read.get(key, _rendered)(value, folder, variables) for key, value in form.items()}


def _loaded(value: Any, folder: str, variables: _Variables) -> Any:
    if isinstance(value, list):
        parts = [_loaded(item, folder, variables) for item in value]
        return [item for part in parts for item in (part if isinstance(part, list) else [part])]
    if in_file(value) and not holds_template(value):
        return as_javascript(yaml.load(Path(folder, value[7:]), "yaml12").value)
    rendered = _rendered(value, folder, variables)
    return rendered if rendered is value or not in_file(rendered) else _content_within(folder, rendered[7:])


def _rendered(value: Any, folder: str, variables: _Variables) -> Any:
    return value if variables is None else render_all(value, variables)


def _content_within(folder: str, named: str) -> Any:
    """The content of a file that a template names. Variables of tests, unlike the configuration, may come from
    anywhere, so that the file must be in the suite's repository, whatever folders are allowed beside that."""
    boundary = Boundary(Path(folder))
    try:
        return as_javascript(yaml.parse(boundary.read(Path(folder, named)), named, "yaml12").value)
    except OutsideError:
        raise TemplateError(f"a template names {named!r}, which is outside of {str(boundary.root)!r}") from None
    except (OSError, InputError) as error:
        raise TemplateError(f"a template names {named!r}, which cannot be read: {error}") from None
