"""Reads `evals.json` as its author means it: each eval is checked, and every mistake has its place."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from evalwright.files.key_paths import Place, as_written, bracketed
from evalwright.formats.shared.findings import Findings
from evalwright.formats.skills.criteria import LISTS, Criterion, criteria_of
from evalwright.formats.skills.skill import Skill
from evalwright.sandbox.patterns import compiled_pattern

__all__ = ["DOCUMENT_KEYS", "EVAL_KEYS", "PATTERNS", "SILENT", "TEXTS", "AuthoredEval", "evals_of"]

DOCUMENT_KEYS = ("skill_name", "skill", "evals", "evaluations")
SILENT = ("version", "description", "note", "notes", "name", "metadata", "$schema")
_PLACEHOLDER = re.compile(r"\{\{ *[A-Za-z_]\w*+ *\}\}|\{[A-Z][A-Z0-9_]*+\}")
"""What a script of the author's would have filled in."""
EVAL_KEYS = (
    "id", "name", "eval_name", "prompt", "expected_output", "files", *LISTS, "should_trigger", "skill_should_trigger",
    "must_have", "must_not_have", "files_exist", "logs_contain", "category", "tags",
)  # fmt: skip
PATTERNS = ("must_have", "must_not_have")
TEXTS = ("files_exist", "logs_contain")


class AuthoredEval(NamedTuple):
    id: str
    prompt: str
    expected_output: str | None
    criteria: list[Criterion]
    files: dict[str, str]
    should_trigger: bool | None
    title: str | None
    metadata: dict[str, Any]
    tags: list[str]
    texts: dict[str, list[str]]
    """Patterns of the answer, files that must be there, texts of the transcript, by the key of the eval."""


def evals_of(document: Any, skill: Skill, path: Path, findings: Findings) -> list[AuthoredEval]:
    """The evals of a document. Mistakes and oddities are noted in `findings`."""
    listed = _list_in(document, findings)
    if listed is None:
        return []
    key, items = listed
    if key == "evals" and "evaluations" in document:
        findings.warn(("evaluations",), "it is not used: there is evals, too")
    for other in document:
        if other not in (*DOCUMENT_KEYS, *SILENT):
            findings.warn_unread((other,), DOCUMENT_KEYS)
    entries: list[AuthoredEval] = []
    places: dict[str, Place] = {}
    for i, raw in enumerate(items):
        entry = _Reading((key, i), raw, skill, path.resolve(), findings).eval(i + 1)
        if entry is None:
            continue
        if entry.id in places:
            first = bracketed(places[entry.id])
            findings.report((key, i, "id"), f"the id {entry.id!r} is also the id of {first}: ids are compared as text")
        places.setdefault(entry.id, (key, i, "id"))
        entries.append(entry)
    return entries


def _list_in(document: Any, findings: Findings) -> tuple[str, list[Any]] | None:
    """The key and the list of evals, or None and one mistake that says what was found instead."""
    wanted = "expected an object with the list evals, of objects with a prompt (evals[].prompt)"
    if not isinstance(document, dict):
        findings.report((), f"{wanted}, found {as_written(document)}")
        return None
    key = next((key for key in ("evals", "evaluations") if key in document), None)
    if key is None:
        findings.report((), f"{wanted}, found the keys {', '.join(map(str, document))[:200] or '(none)'}")
        return None
    items = document[key]
    if not isinstance(items, list) or not items:
        findings.report((key,), f"{wanted}, found {as_written(items)}")
        return None
    if not any(isinstance(item, dict) and "prompt" in item for item in items):
        keys = sorted({str(name) for item in items if isinstance(item, dict) for name in item})
        findings.report((key,), f"{wanted}, found items with {', '.join(keys)[:200] or 'no keys'}")
        return None
    return key, items


class _Reading:
    """One eval while it is being read."""

    def __init__(self, place: Place, raw: Any, skill: Skill, path: Path, findings: Findings) -> None:
        self._place, self._raw, self._skill, self._path, self._findings = place, raw, skill, path, findings

    def eval(self, position: int) -> AuthoredEval | None:
        raw, findings = self._raw, self._findings
        if not isinstance(raw, dict):
            findings.report(self._place, f"expected an object with a prompt, found {as_written(raw)}")
            return None
        for key in raw:
            if key not in (*EVAL_KEYS, *SILENT):
                findings.warn_unread((*self._place, key), EVAL_KEYS)
        expected = self._text("expected_output")
        authored_eval = AuthoredEval(
            id=self._id(position),
            prompt=self._prompt(),
            expected_output=expected,
            criteria=criteria_of(raw, self._place, findings),
            files=_files_of(
                raw.get("files"), (*self._place, "files"), self._skill.root, self._path, findings
            ),
            should_trigger=self._flag(),
            title=self._text("name") or self._text("eval_name"),
            metadata=self._metadata(),
            tags=self._texts("tags"),
            texts=dict(self._lists()),
        )  # fmt: skip
        judged = (
            authored_eval.criteria
            or authored_eval.expected_output
            or authored_eval.should_trigger is not None
            or any(authored_eval.texts.values())
        )
        if not judged:
            findings.warn(self._place, "it has no criteria and no expected_output: it is run, and has no verdict")
        return authored_eval

    def _id(self, position: int) -> str:
        value = self._raw.get("id")
        if value is None:
            return str(position)
        if isinstance(value, bool) or not isinstance(value, int | str) or value == "":
            self._findings.report((*self._place, "id"), f"expected text or a whole number, found {as_written(value)}")
        return str(value)

    def _prompt(self) -> str:
        prompt = self._raw.get("prompt")
        if isinstance(prompt, str) and prompt.strip():
            if unfilled := _PLACEHOLDER.search(prompt):
                self._findings.warn((*self._place, "prompt"), f"{unfilled[0]} is sent unchanged: nothing fills it in")
            return prompt
        document = "nothing" if "prompt" not in self._raw else as_written(prompt)
        self._findings.report((*self._place, "prompt"), f"expected the text that the agent is given, found {document}")
        return ""

    def _text(self, key: str) -> str | None:
        value = self._raw.get(key)
        if value is None or isinstance(value, str):
            return value if value and value.strip() else None
        self._findings.report((*self._place, key), f"expected text, found {as_written(value)}")
        return None

    def _flag(self) -> bool | None:
        flags: list[bool] = []
        for key in ("should_trigger", "skill_should_trigger"):
            value = self._raw.get(key)
            if isinstance(value, bool):
                flags.append(value)
            elif value is not None:
                self._findings.report((*self._place, key), f"expected true or false, found {as_written(value)}")
        if len({*flags}) > 1:
            self._findings.report((*self._place, "skill_should_trigger"), "it contradicts should_trigger")
        return flags[0] if flags else None

    def _metadata(self) -> dict[str, Any]:
        kept = {
            key: self._raw[key] for key in ("category", "note", "notes", "description", "version") if key in self._raw
        }
        own = self._raw.get("metadata")
        if own is not None and not isinstance(own, Mapping):
            self._findings.warn(
                (*self._place, "metadata"), f"it is not used: expected an object, found {as_written(own)}"
            )
        return {**(own if isinstance(own, Mapping) else {}), **kept}

    def _texts(self, key: str) -> list[str]:
        value = self._raw.get(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
            self._findings.report((*self._place, key), f"expected a list of texts, found {as_written(value)}")
            return []
        return value

    def _lists(self) -> Iterator[tuple[str, list[str]]]:
        for key in (*PATTERNS, *TEXTS):
            texts = self._texts(key)
            for i, text in enumerate(texts if key in PATTERNS else ()):
                try:
                    compiled_pattern(text)
                except ValueError as error:
                    self._findings.report((*self._place, key, i), f"{text!r} is not a regular expression: {error}")
            yield key, texts


def _files_of(raw: Any, place: Place, root: Path, evals: Path, findings: Findings) -> dict[str, str]:
    """Absolute paths by their paths in the workspace, which are relative to the skill's root. Mistakes are reported."""
    if raw is None:
        return {}
    if not isinstance(raw, list):
        findings.report(place, f"expected a list of paths, found {as_written(raw)}")
        return {}
    files: dict[str, str] = {}
    for i, name in enumerate(raw):
        path = _file(name, root, evals.parent)
        if isinstance(path, str):
            findings.report((*place, i), path)
        elif evals == path or path in evals.parents:
            findings.report((*place, i), f"{name!r} contains {evals.name}, which says what is expected: name the files")
        else:
            if path == root / "SKILL.md":
                findings.warn((*place, i), f"{name!r} is the skill: the agent without the skill gets it, too")
            files[path.relative_to(root).as_posix()] = str(path)
    return files


def _file(name: Any, root: Path, folder: Path) -> Path | str:
    """The file or folder of a name, or the problem with it."""
    if not isinstance(name, str) or not name.strip() or "\0" in name:
        return f"expected a path, found {as_written(name)}"
    if Path(name).is_absolute():
        return f"{name!r} is an absolute path: expected one relative to the skill's root"
    try:
        for base in (root, folder):
            path = (base / name).resolve()
            if os.path.exists(path):
                return path if root in path.parents else f"{name!r} leads out of the skill's root {root}"
        outside = root not in (root / name).resolve().parents
    except (OSError, RuntimeError) as error:
        return f"{name!r} cannot be read: {error}"
    return f"{name!r} leads out of the skill's root {root}" if outside else f"there is no file {name!r} in {root}"
