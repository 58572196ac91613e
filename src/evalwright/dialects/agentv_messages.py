"""Messages of AgentEvals files: checked, resolved and rendered (specification agentv, 2.4 and 2.5)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from evalwright.dialects.agentv_config import Config, config_file, read_config

__all__ = [
    "Files",
    "chat_of",
    "checked_messages",
    "expected_messages",
    "guidelines_of",
    "prompt_of",
    "question_of",
    "reference_of",
]

Tell = Callable[[str, str], None]
"""Tells a mistake: the path inside the case, and the message."""

ROLES = ("system", "user", "assistant", "tool")
_BLOCKS = ("text", "file", "image", "json")


class Files:
    """Finds files that messages and prompts name: beside the eval file, in its parents up to the repository's root."""

    def __init__(self, folder: Path) -> None:
        parents, here = [folder, *folder.parents], Path.cwd()
        outermost = here if here in parents else folder
        root = next((parent for parent in parents if (parent / ".git").exists()), outermost)
        self.roots = list(dict.fromkeys([*parents[: parents.index(root) + 1], here]))
        path = config_file(self.roots)
        self.config = Config() if path is None else read_config(path)
        self._root = root

    def is_guideline(self, path: Path) -> bool:
        """Whether the repository's configuration says so."""
        patterns = self.config.guidelines
        if patterns is None or not path.is_relative_to(self._root):
            return False
        return patterns.fullmatch(path.relative_to(self._root).as_posix()) is not None

    def find(self, name: str) -> Path | None:
        """The first file of that name; leading slashes are dropped for the search roots."""
        absolute = Path(name)
        if absolute.is_absolute() and absolute.is_file():
            return absolute
        return next((path for path in self.tried(name) if path.is_file()), None)

    def folder(self, name: str) -> Path | None:
        return next((path for path in [Path(name), *self.tried(name)] if path.is_absolute() and path.is_dir()), None)

    def tried(self, name: str) -> list[Path]:
        return [root / name.lstrip("/") for root in self.roots]


def checked_messages(raw: Any, place: str, files: Files, tell: Tell) -> list[dict[str, Any]]:
    """The messages with every mistake told; a text is one user message."""
    if isinstance(raw, str):
        return [{"role": "user", "content": raw}]
    if not isinstance(raw, list):
        tell(place, f"expected text or a list of messages, found {_kind(raw)}")
        return []
    if not raw:
        tell(place, "expected at least one message, found an empty list")
    return [_message(message, f"{place}[{i}]", files, tell) for i, message in enumerate(raw)]


def expected_messages(raw: Any, place: str, files: Files, tell: Tell) -> list[dict[str, Any]]:
    """What is expected as messages: text, an object and a list of plain values are one assistant message."""
    if raw is None:
        return []
    if isinstance(raw, dict):
        raw = [raw] if "role" in raw else [{"role": "assistant", "content": raw}]
    elif not isinstance(raw, list):
        return [{"role": "assistant", "content": raw if isinstance(raw, str) else json.dumps(raw)}]
    elif not (raw and isinstance(raw[0], dict) and "role" in raw[0]):
        return [{"role": "assistant", "content": raw}]
    checked = [_message(message, f"{place}[{i}]", files, tell) for i, message in enumerate(raw)]
    return [_with_files(message, files) for message in checked]


def _with_files(message: dict[str, Any], files: Files) -> dict[str, Any]:
    """What is expected holds the content of its files, so that judges can see it."""
    content = message.get("content")
    if not isinstance(content, list):
        return message
    return {**message, "content": [_with_text(block, files) if isinstance(block, dict) else block for block in content]}


def _with_text(block: dict[str, Any], files: Files) -> dict[str, Any]:
    path = files.find(str(block.get("value"))) if block.get("type") == "file" else None
    if path is None:
        return block
    text = path.read_text("utf-8", errors="replace").replace("\r\n", "\n")
    return {"type": "file", "path": block["value"], "text": text, "resolvedPath": str(path)}


def _message(raw: Any, place: str, files: Files, tell: Tell) -> dict[str, Any]:
    if not isinstance(raw, dict):
        tell(place, f"expected a mapping, found {_kind(raw)}")
        return {"role": "user", "content": ""}
    if raw.get("role") not in ROLES:
        tell(f"{place}.role", f"unknown role {raw.get('role')!r}, expected one of {', '.join(ROLES)}")
    content, calls = raw.get("content"), raw.get("tool_calls")
    if isinstance(content, list):
        for i, block in enumerate(content):
            _check_block(block, f"{place}.content[{i}]", files, tell)
    elif not isinstance(content, (str, dict)) and not (isinstance(calls, list) and calls):
        tell(f"{place}.content", f"content: expected text, a list of blocks or an object, found {_kind(content)}")
    return dict(raw)


def _check_block(block: Any, place: str, files: Files, tell: Tell) -> None:
    if not isinstance(block, dict):
        tell(place, f"content: expected a block with 'type' and 'value', found {_kind(block)}")
        return
    if "type" not in block and "role" not in block:
        tell(f"{place}.type", "content: a block needs a 'type'")
        return
    kind, value = block.get("type"), block.get("value", block.get("text"))
    if kind not in _BLOCKS:
        tell(f"{place}.type", f"unknown type {kind!r} of a content block, expected one of {', '.join(_BLOCKS)}")
    elif kind != "json" and not isinstance(value, str):
        tell(f"{place}.value", f"content: a block of type {kind!r} needs a text as 'value'")
    elif kind == "file" and isinstance(value, str) and files.find(value) is None:
        tried = ", ".join(map(str, files.tried(value)))
        tell(f"{place}.value", f"there is no file {value!r} (tried: {tried})")


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The content as blocks; text and objects are one block each."""
    content = message.get("content")
    if isinstance(content, list):
        return [block for block in content if isinstance(block, dict)]
    if isinstance(content, str):
        return [{"type": "text", "value": content}]
    return [{"type": "json", "value": content}] if isinstance(content, dict) else []


def question_of(messages: Sequence[dict[str, Any]]) -> str:
    """What is asked, as judges see it: all texts and JSON values, files and images left out."""
    parts = [
        _text(block).strip()
        for message in messages
        for block in _blocks(message)
        if block.get("type") in ("text", "json")
    ]
    return " ".join(part for part in parts if part)


def _text(block: dict[str, Any]) -> str:
    if block.get("type") == "json":
        return json.dumps(block.get("value"), ensure_ascii=False, indent=2)
    return str(block.get("value", block.get("text")) or "")


def prompt_of(messages: Sequence[dict[str, Any]], files: Files, *, embed: bool) -> str:
    """The prompt that a system gets: with the files' content (`embed`), or only naming them for agents that read."""
    rendered = [(message, list(_parts(message, files, embed))) for message in messages]
    visible = [item for item in rendered if item[1]]
    if any(m.get("role") in ("assistant", "tool") for m in messages) or len(visible) > 1:
        return "\n\n".join("\n".join([f"@[{str(m['role']).title()}]:", *parts]) for m, parts in visible)
    return "\n\n".join(part for _, parts in visible for part in parts)


def chat_of(messages: Sequence[dict[str, Any]], files: Files) -> list[dict[str, str]]:
    """The messages for a chat model, each as text; tool calls and tool messages are told in words."""
    said = []
    for message in messages:
        text = "\n".join(_parts(message, files, embed=True))
        if message.get("role") == "tool":
            said.append({"role": "assistant", "content": f"@[Tool]:\n{text}"})
        elif text:
            said.append({"role": str(message.get("role")), "content": text})
    return said


def _parts(message: dict[str, Any], files: Files, embed: bool) -> Iterator[str]:
    for block in _blocks(message):
        if block.get("type") == "file":
            name = str(block.get("value", block.get("text")))
            path = files.find(name)
            if path is None or not files.is_guideline(path):
                yield _file(name, path, embed)
        elif block.get("type") == "image":
            value = str(block.get("value", block.get("text")))
            yield f'<image path="{value}">' if not value.startswith("data:") else "<image>"
        elif text := _text(block).strip():
            yield text


def guidelines_of(paths: Iterable[Path]) -> str:
    """The content of files that are guidelines, apart from the prompt."""
    return "\n\n".join(_file(path.name, path, True) for path in paths)


def _file(name: str, path: Path | None, embed: bool) -> str:
    shown = name.lstrip("/")
    if path is None or not embed:
        return f'<file: path="{shown}">'
    text = path.read_text("utf-8", errors="replace").replace("\r\n", "\n").strip()
    return f'<file path="{shown}">\n{text}\n</file>'


def reference_of(messages: Sequence[dict[str, Any]]) -> str:
    """The reference answer: the content of the last expected message, else its tool calls."""
    if not messages:
        return ""
    content, calls = messages[-1].get("content"), messages[-1].get("tool_calls")
    if isinstance(content, str):
        return content
    found = content if content is not None else calls
    return "" if found is None else json.dumps(found, ensure_ascii=False, indent=2)


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, (dict, list)):
        return "a mapping" if isinstance(value, dict) else "a list"
    return f"{type(value).__name__} {str(value)[:60]!r}"
