"""The prompt of a cell: its variables resolved, then the prompt rendered with them."""

from __future__ import annotations

import base64
import mimetypes
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalwright.errors import TargetError
from evalwright.files import yaml
from evalwright.files.boundary import Boundary, OutsideError
from evalwright.formats.promptfoo.faults import ScriptError, TemplateError
from evalwright.formats.promptfoo.prompts import AuthoredPrompt
from evalwright.formats.promptfoo.scripts import call_file
from evalwright.formats.promptfoo.sources import SCRIPTS, in_file, split_function
from evalwright.formats.promptfoo.templates import (
    holds_template,
    is_cut,
    names_nothing,
    render,
    render_all,
    with_references,
)
from evalwright.formats.promptfoo.values import as_javascript, compact_json, json_parse, pretty_json

__all__ = ["Rendering", "rendering_error"]

_IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".svg")


def rendering_error(error: Exception) -> TargetError:
    """The error of a cell whose prompt cannot be made."""
    return TargetError(str(error), "template_error" if isinstance(error, TemplateError) else "script_error")


class Rendering:
    """Renders the prompts of one column."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._folder: str = config["folder"]
        self._boundary = Boundary(Path(self._folder), config.get("allow_outside", ()))
        self._prompt: AuthoredPrompt = config["prompt"]
        self._provider: Mapping[str, Any] = config["provider"]
        self._filters = {name: str(named) for name, named in config.get("filters", {}).items()}
        self._files: dict[Path, str] = {}
        self._own_filters: dict[str, Any] | None = None

    async def read(self, variables: Mapping[str, Any]) -> dict[str, Any]:
        """The variables of a cell, with files read: what functions of prompts get."""
        values = dict(variables)
        for name, value in variables.items():
            if in_file(value):
                values[name] = await self._value_in_file(name, str(value), values)
        return values

    def resolved(self, read: Mapping[str, Any]) -> dict[str, Any]:
        """The variables of templates: one trailing line break dropped, references between variables filled in."""
        return with_references(
            {
                name: value[:-1] if isinstance(value, str) and value.endswith("\n") else value
                for name, value in read.items()
            }
        )

    async def _value_in_file(self, name: str, named: str, values: Mapping[str, Any]) -> Any:
        path, _ = split_function(named)
        suffix = Path(path).suffix.lower()
        if suffix in SCRIPTS:
            arguments = [name, self._prompt.get("raw", ""), values, {"id": self._provider["id"]}]
            if suffix == ".py":
                arguments.pop()
            reply = await call_file(self._folder, named, "get_var", arguments, walled=False)
            if not isinstance(reply, dict) or reply.get("error") or reply.get("output") in (None, ""):
                problem = reply.get("error") if isinstance(reply, dict) else f"gave {reply!r:.60}"
                raise ScriptError(f"{named}: {problem or 'no output'}")
            output = as_javascript(reply["output"])
            return output.strip() if suffix == ".py" and isinstance(output, str) else output
        return self._file_content(Path(self._folder, path), suffix)

    def _file_content(self, path: Path, suffix: str) -> str:
        if path in self._files:
            return self._files[path]
        try:
            read = self._boundary.read(path)
            text = _as_text(read, path, suffix)
        except (OSError, OutsideError, ValueError) as error:
            raise ScriptError(f"{path.name!r} cannot be read: {error}") from None
        self._files[path] = text
        return text

    async def prompt(
        self, values: Mapping[str, Any], read: Mapping[str, Any], options: Mapping[str, Any]
    ) -> tuple[str, dict[str, Any]]:
        """The rendered prompt, and the prompt's own settings for the call. Raises ScriptError, TemplateError."""
        config = dict(self._prompt.get("config") or {})
        raw = self._prompt.get("raw")
        if raw is None:
            raw, more = await self._prompt_of_function(read)
            config |= more
        else:
            raw = f"{options.get('prefix') or ''}{raw}{options.get('suffix') or ''}"
        await self._load_filters()
        return self._rendered_text(raw, values), config

    async def _prompt_of_function(self, read: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        file, name = self._prompt["function"]
        label = self._provider["label"]
        provider = {"id": self._provider["id"], "label": "" if label == self._provider["id"] else label}
        context = {"vars": dict(read), "provider": provider, "config": dict(self._prompt.get("config") or {})}
        returned = await call_file(
            self._folder, f"{file}:{name}" if name else file, "get_prompt", [context], walled=False
        )
        if isinstance(returned, str):
            return returned, {}
        if isinstance(returned, dict) and "prompt" in returned:
            inner = returned["prompt"]
            return inner if isinstance(inner, str) else compact_json(inner), dict(returned.get("config") or {})
        if isinstance(returned, (dict, list)):
            return compact_json(returned), {}
        raise ScriptError(f"{file} gave {type(returned).__name__}, expected a prompt")

    def _rendered_text(self, raw: str, values: Mapping[str, Any]) -> str:
        if is_cut(raw):
            return raw
        try:
            document = json_parse(raw)
        except (ValueError, RecursionError):
            return self.text(raw, {name: self._filled_variable(value, values) for name, value in values.items()})
        return pretty_json(render_all(document, values))

    def _filled_variable(self, value: Any, values: Mapping[str, Any]) -> Any:
        """A variable as text prompts show it: a template, unless it names something that does not exist."""
        if not isinstance(value, str) or not holds_template(value) or is_cut(value) or names_nothing(value, values):
            return value
        return self.text(value, values)

    def text(self, text: str, values: Mapping[str, Any]) -> str:
        """A template of the configuration, rendered. Raises TemplateError."""
        return render(text, values, self._own_filters)

    async def _load_filters(self) -> None:
        if not self._filters or self._own_filters is not None:
            return
        from evalwright.formats.promptfoo.filters import filter_of

        self._own_filters = {name: filter_of(self._folder, named) for name, named in self._filters.items()}


def _as_text(read: bytes, path: Path, suffix: str) -> str:
    if suffix in _IMAGES:
        kind = mimetypes.guess_type(path.name)[0] or "image/png"
        return f"data:{kind};base64,{base64.b64encode(read).decode()}"
    text = read.decode("utf-8-sig")
    if suffix in (".yaml", ".yml"):
        return compact_json(yaml.parse(read, str(path), "yaml12").value)
    return text.strip()
