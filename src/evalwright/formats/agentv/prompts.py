"""Prompts of judges as AgentEvals files write them: text, a file, or a program that prints the prompt."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from evalwright.errors import did_you_mean
from evalwright.files.boundary import OutsideError
from evalwright.files.key_paths import as_written
from evalwright.formats.agentv.message_files import Files
from evalwright.formats.agentv.notes import Notes

__all__ = ["missing_file", "prompt_config", "text_or_file"]

PROMPT_NAMES = (
    "question", "input", "candidate_answer", "output", "answer", "expected_outcome", "criteria", "outcome",
    "reference_answer", "expected_output", "input_messages", "expected_messages", "output_messages", "file_changes",
    "note", "metadata", "metadata_json", "description", "conversation_id", "tool_calls",
)  # fmt: skip
"""Names that a template may have in double braces."""
_NAME = re.compile(r"\{\{\s*([A-Za-z_]+)\s*\}\}")
_ANSWER = re.compile(r"\{\{\s*(candidate_answer|output|answer|expected_messages|expected_output)\s*\}\}")
_FILE = "file://"
_PATH = re.compile(r"\S+\.(md|txt|prompt|j2|jinja2?|tmpl|yaml|yml|json)")
"""What is meant as a file, whether it exists or not."""


def prompt_config(written: Any, place: str, files: Files, report: Notes, *, newer: bool = False) -> dict[str, Any]:
    """What `prompt` adds to a judge's configuration; `newer` judges may take their criterion from a file."""
    if written is None:
        return {}
    if isinstance(written, str):
        return _prompt(written, place, files, report, newer)
    if not isinstance(written, dict):
        report(place, f"prompt: expected text or {{command: [...]}}, found {as_written(written)}")
        return {}
    report.unknown_keys(place, written, ("command", "script", "config"))
    command = written.get("script") if written.get("command") is None else written["command"]
    if not isinstance(command, list) or not command or not all(isinstance(word, str) and word for word in command):
        report(place, f"prompt.command: expected a list of texts with at least one, found {as_written(command)}")
        return {}
    config = written.get("config")
    return _program(command, place, files, report) | ({"prompt_config": config} if isinstance(config, dict) else {})


def _program(command: list[str], place: str, files: Files, report: Notes) -> dict[str, Any]:
    """A program that prints the prompt. If its last word names a file, it works in that file's folder, as in AgentV."""
    try:
        script = files.find(command[-1])
    except OutsideError as error:
        report(place, str(error))
        script = None
    if script is None or not os.path.isfile(script):
        return {"prompt_command": command}
    return {"prompt_command": [*command[:-1], str(script)], "folder": str(script.parent)}


def _prompt(written: str, place: str, files: Files, report: Notes, newer: bool) -> dict[str, Any]:
    """A prompt, or the file that it names; a text without names to fill in is the judge's own criterion."""
    path, text = text_or_file(written, place, files, report)
    if text is None:
        return {"prompt": ""}
    if strange := sorted({name for name in _NAME.findall(text) if name not in PROMPT_NAMES}):
        near = did_you_mean(strange[0], PROMPT_NAMES)
        report.warn(
            place, f"the prompt {written[:60]!r}: nothing fills {', '.join(strange)}{near}; the text stays as it is"
        )
    if path is None and (problem := missing_file(written, files)):
        report(place, problem)
    elif (path is None or (newer and not written.startswith(_FILE))) and not any(
        name in PROMPT_NAMES for name in _NAME.findall(text)
    ):
        return {"criterion": text}
    elif not _ANSWER.search(text):
        notify = report.warn if path is None else report
        notify(place, f"the prompt {written[:60]!r} uses neither candidate_answer nor expected_messages")
    return {"prompt": text}


def missing_file(written: str, files: Files) -> str:
    """That a text names a file that does not exist; empty for other texts."""
    if not _PATH.fullmatch(written):
        return ""
    return f"there is no file {written!r} (tried: {', '.join(map(str, files.tried(written.removeprefix(_FILE))))})"


def text_or_file(written: str, place: str, files: Files, report: Notes) -> tuple[Path | None, str | None]:
    """The file that a text names, if any; and that file's text, or else the text itself.

    No text for a file outside the boundary, which is reported.
    """
    named = written.removeprefix(_FILE)
    try:
        path = files.find(named)
        return path, written if path is None else files.text(path)
    except OutsideError as error:
        report(place, str(error))
        return None, None
