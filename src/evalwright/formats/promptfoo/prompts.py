"""The prompts of a configuration: texts, and functions in users' files, each with a name."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from evalwright.errors import InputError
from evalwright.files import yaml
from evalwright.files.key_paths import as_written
from evalwright.formats.promptfoo.origin import Origin
from evalwright.formats.promptfoo.shapes import PROMPT, warn_of_others, what_fits
from evalwright.formats.promptfoo.sources import SCRIPTS, Sources, in_file, split_function
from evalwright.formats.promptfoo.tables import rows_of
from evalwright.formats.promptfoo.templates import holds_template
from evalwright.formats.promptfoo.values import as_javascript, compact_json, json_parse, pretty_json

__all__ = ["TURNS", "AuthoredPrompt", "allows", "prompts_of"]

TURNS = "_conversation"
"""The variable with the earlier turns."""

AuthoredPrompt = dict[str, Any]
"""`raw` or `function` (file and name, with `remembers` if its file names the earlier turns), `label`, and possibly `id`
and `config`: plain data, as plans hold it."""

_TEXTS = (".txt", ".json", ".jsonl", ".yaml", ".yml", ".md", ".j2", ".csv")
_KNOWN = (*_TEXTS, *SCRIPTS)
_ELSEWHERE = ("portkey://", "langfuse://", "helicone://")
_PROGRAM = "exec:"
_DEFAULT = "{{prompt}}"
_MAGIC = frozenset("*?[")
"""Characters of file patterns: a pattern that matches no file is a text after all."""
_OF_ROW = "label of its row"
_ONLY_PARTS = re.compile(r"[*/\\]")


def prompts_of(raw: Any, sources: Sources, origin: Origin) -> list[AuthoredPrompt]:
    """Every prompt under the key `prompts`, with files read; a mapping has labels by texts or files."""
    if raw is None:
        return [{"raw": _DEFAULT, "label": _DEFAULT}]
    reading = _Reading(sources)
    prompts: list[AuthoredPrompt] = []
    if isinstance(raw, dict) and raw.keys().isdisjoint(PROMPT):
        return [prompt for text, label in raw.items() for prompt in reading.labelled(str(text), label, origin)]
    entries = raw if isinstance(raw, list) else [raw]
    for i, entry in enumerate(entries):
        place = origin.at(i) if isinstance(raw, list) else origin
        if isinstance(entry, str) and entry in entries[:i]:
            place.warn("the same text again: as in promptfoo, it is one prompt; give it a label to have it twice")
        else:
            prompts += reading.prompts(entry, place)
    return prompts


def allows(allowed: list[Any] | None, prompt: AuthoredPrompt) -> bool:
    """Whether a list of labels and ids includes the prompt or provider; `x` also means what begins with `x:`, and `x*`
    what begins with `x`."""
    if allowed is None:
        return True
    names = [str(prompt[key]) for key in ("label", "id") if prompt.get(key)]
    return any(_refers(str(reference), name) for name in names for reference in allowed)


def _refers(reference: str, name: str) -> bool:
    begins = name.startswith(f"{reference}:") or (reference.endswith("*") and name.startswith(reference[:-1]))
    return begins or name == reference


def is_path(text: str) -> bool:
    """Whether promptfoo takes a prompt for a file name."""
    if "\n" in text:
        return False
    if text.startswith("file://"):
        return True
    parts = text.split(":")
    if any(part.endswith(_KNOWN) for part in parts[-2:]):
        return True
    return text[-4:-3] == "." or text[-3:-2] == "." or _ONLY_PARTS.search(text) is not None


class _Reading:
    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    def prompts(self, one: Any, origin: Origin) -> list[AuthoredPrompt]:
        if isinstance(one, str):
            return self._text(one, {}, origin)
        if isinstance(one, dict):
            if isinstance(file := one.get("file"), str):
                hint = f": write raw: file://{file.removeprefix('file://')}"
                origin.at("file").warn(f"nothing reads this key; the prompt is its raw or its id{hint}", unread=True)
            warn_of_others(one, (*PROMPT, "file"), origin)
            one = what_fits(one, PROMPT, origin)
            named = {key: one[key] for key in ("id", "label", "config") if one.get(key) is not None}
            source = one.get("raw", one.get("id"))
            if isinstance(source, str):
                return self._text(source, named, origin, written="raw" in one)
        if isinstance(one, list):
            return [{"raw": pretty_json(one), "label": pretty_json(one)}]
        origin.report(f"expected text, or a mapping with raw or id, found {as_written(one, nothing='nothing')}")
        return []

    def labelled(self, text: str, label: Any, origin: Origin) -> list[AuthoredPrompt]:
        if isinstance(label, (dict, list)):
            origin.at(text).report("expected a label; write a list of prompts: [{label: ..., raw: ...}]")
            return []
        return self._text(text, {"label": str(label)}, origin)

    def _text(self, text: str, named: AuthoredPrompt, origin: Origin, *, written: bool = False) -> list[AuthoredPrompt]:
        if text.startswith(_ELSEWHERE):
            origin.report(f"{text!r} is stored by a service, which is not called: write the prompt into a file")
            return []
        if text.startswith(_PROGRAM):
            origin.report(
                f"{text!r:.60} is made by a program, which is not called: write a function in Python or JavaScript"
            )
            return []
        if text.startswith("file://") or (not written and is_path(text)):
            return [_named(file, named) for file in self._files(text, origin)]
        if not (text or written):
            origin.report("the prompt is empty")
            return []
        return [{"raw": text, "label": text, **named}]

    def _files(self, named: str, origin: Origin) -> Iterator[AuthoredPrompt]:
        path, name = split_function(named)
        if not _MAGIC.isdisjoint(named) and not self._sources.matches(path) and not named.startswith("file://"):
            yield {"raw": named, "label": named}
            return
        if "{{" in named and not self._sources.matches(path):
            origin.report(
                f"the prompt {named!r} is taken for a file name, as by promptfoo: write it on two lines, or"
                " put it into a text file"
            )
            return
        for file in self._sources.paths(path, origin):
            shown = os.path.relpath(file, self._sources.folder)
            yield from self._prompts_in_file(file, shown, name, origin)

    def _prompts_in_file(self, path: Path, shown: str, name: str, origin: Origin) -> Iterator[AuthoredPrompt]:
        suffix = path.suffix.lower()
        if suffix in SCRIPTS:
            prompt = {"function": [shown, name], "label": f"{shown}:{name}" if name else shown}
            yield {**prompt, "remembers": True} if TURNS in self._sources.text(path, origin) else prompt
        elif suffix == ".txt":
            pieces = _pieces(self._sources.lines(path, origin))
            if not pieces:
                origin.report(f"{shown!r} contains no prompt")
            for piece in pieces:
                yield {"raw": piece, "label": f"{shown}: {piece}"}
        elif suffix == ".csv":
            yield from self._prompts_in_csv(path, shown, origin)
        elif suffix == ".jsonl":
            lines = [*filter(str.strip, self._sources.lines(path, origin))]
            for line in lines:
                yield {"raw": line, "label": shown if len(lines) == 1 else f"{shown}: {line}"}
        elif suffix in (".yaml", ".yml"):
            text = self._text_of_yaml(path, origin)
            if text is not None:
                yield {"raw": text, "label": f"{shown}: {text}"}
        elif suffix in _TEXTS:
            text = self._sources.text(path, origin)
            if suffix == ".json":
                text = self._compact_json(text, origin)
            yield {"raw": text, "label": f"{shown}: {text}"}
        else:
            origin.report(f"{shown!r} is not a file of prompts: expected one of {', '.join(_KNOWN)}")

    def _text_of_yaml(self, path: Path, origin: Origin) -> str | None:
        """A YAML file as JSON; None, after a report, if it is not YAML. With templates, as in `content: {{q}}`, it may
        be YAML only once they are filled in, and is a text until then."""
        text = self._sources.text(path, origin)
        try:
            document = yaml.parse(text.encode(), str(self._sources.shown(path)), "yaml12")
        except InputError as error:
            if holds_template(text):
                return text
            origin.findings.add(error)
            return None
        return compact_json(self._with_files(as_javascript(document.value), origin))

    def _compact_json(self, text: str, origin: Origin) -> str:
        """JSON without blanks; any other text as it is."""
        try:
            parsed = json_parse(text)
        except (ValueError, RecursionError):
            return text
        return compact_json(self._with_files(parsed, origin))

    def _with_files(self, value: Any, origin: Origin) -> Any:
        """Messages with the contents of the files that they name, relative to the configuration."""
        if isinstance(value, dict):
            return {key: self._with_files(item, origin) for key, item in value.items()}
        if isinstance(value, list):
            return [self._with_files(item, origin) for item in value]
        if not in_file(value) or holds_template(value) or (path := self._sources.path(value, origin)) is None:
            return value
        if path.suffix.lower() not in (".json", ".yaml", ".yml"):
            return self._sources.text(path, origin)
        document = self._sources.document(path, origin)
        return value if document is None else as_javascript(document.value)

    def _prompts_in_csv(self, path: Path, shown: str, origin: Origin) -> Iterator[AuthoredPrompt]:
        text = self._sources.text(path, origin)
        header, rows = rows_of(text, shown, origin)
        if "prompt" in header:
            table = [dict(zip(header, row.cells, strict=True)) for row in rows]
        else:
            if len(header) > 1:
                origin.warn(f"{shown!r} has no column 'prompt': each of its lines is a prompt")
            table = [{"prompt": line} for line in self._sources.lines(path, origin)]
        for number, row in enumerate((row for row in table if row["prompt"].strip()), 1):
            own = {_OF_ROW: row["label"]} if row.get("label") else {}
            yield {"raw": row["prompt"], "label": f"Prompt {number} - {row['prompt']}", **own}


def _named(prompt: AuthoredPrompt, named: AuthoredPrompt) -> AuthoredPrompt:
    """A prompt in a file, with what the configuration says of the whole file; a row keeps the label that it has."""
    own = prompt.pop(_OF_ROW, None)
    return {**prompt, **named, **({} if own is None else {"label": own})}


def _pieces(text: Sequence[str]) -> list[str]:
    """The prompts in a text file, which are separated by lines of three hyphens."""
    separator = os.environ.get("PROMPTFOO_PROMPT_SEPARATOR", "---")
    lines: list[list[str]] = [[]]
    for line in text:
        if line.strip() == separator:
            lines.append([])
        else:
            lines[-1].append(line)
    return [piece for part in lines if (piece := "\n".join(part).strip())]
