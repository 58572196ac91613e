"""Messages of AgentEvals files: checked, resolved and rendered."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evalwright.files.boundary import Boundary
from evalwright.files.images import check_image, inline_image, is_image
from evalwright.formats.agentv.config import Config, config_file, read_project_config
from evalwright.formats.agentv.notes import Notes
from evalwright.formats.shared.findings import kind_found

__all__ = [
    "BLOCKS",
    "ROLES",
    "Files",
    "chat_of",
    "checked_messages",
    "expected_messages",
    "guidelines_of",
    "prompt_of",
    "question_of",
    "reference_of",
]

ROLES = ("system", "user", "assistant", "tool")
_MARKER = re.compile(r"@\[(?:System|User|Assistant|Tool)\]:", re.IGNORECASE)
"""What separates the messages of a prompt."""
_OF_MESSAGE = (
    "role", "content", "name", "tool_call_id", "tool_calls", "metadata", "start_time", "end_time", "duration_ms", "id",
)  # fmt: skip
_OF_BLOCK = ("type", "value", "text", "path", "media_type", "resolvedPath")
BLOCKS = ("text", "file", "image", "json")
_SHOWN = 200
"""Characters of a path that are quoted when nothing is there."""


class Files:
    """Finds files that messages and prompts name: beside the eval file, in its parents up to the repository's root.

    All of them must lie within the boundary of the eval file's folder.
    """

    def __init__(self, folder: Path, allowed: Sequence[Path] = ()) -> None:
        parents, here = [folder, *folder.parents], Path.cwd()
        outermost = here if here in parents else folder
        root = next((parent for parent in parents if (parent / ".git").exists()), outermost)
        self.roots: list[Path] = list(dict.fromkeys([*parents[: parents.index(root) + 1], here]))
        path = config_file(self.roots)
        self.config: Config = Config() if path is None else read_project_config(path)
        self.root = root
        """The repository's."""
        self._boundary = Boundary(folder, allowed)

    def is_guideline(self, path: Path) -> bool:
        """Whether the repository's configuration says so."""
        return self._fits(path, self.config.guidelines) and not is_image(path)

    def is_eval(self, path: Path) -> bool:
        """Whether the repository's configuration says so."""
        return self._fits(path, self.config.evals)

    def _fits(self, path: Path, patterns: re.Pattern[str] | None) -> bool:
        if patterns is None or not path.is_relative_to(self.root):
            return False
        return patterns.fullmatch(path.relative_to(self.root).as_posix()) is not None

    def find(self, name: str) -> Path | None:
        """The first file of that name; leading slashes are dropped for the search roots.

        Raises OutsideError for one outside of the boundary.
        """
        absolute = [Path(name)] if Path(name).is_absolute() else []
        found = next((path for path in [*absolute, *self.tried(name)] if _is_file(path)), None)
        return None if found is None else self._boundary.check(found)

    def text(self, path: Path) -> str:
        """The text of a file that was found, with `\n` for line ends. Raises OutsideError, OSError."""
        return self._boundary.read(path).decode("utf-8", "replace").replace("\r\n", "\n")

    def image(self, block: Mapping[str, Any]) -> Path | str | None:
        """The image that a content block shows: a file, or an address; None when it shows none.

        Raises ValueError for a file that is not there or lies outside of the boundary, and for an image that models
        cannot see.
        """
        kind, value = block.get("type"), _value(block)
        if kind not in ("file", "image"):
            return None
        if kind == "image" and (address := _address(value)) is not None:
            return address
        path = self.find(value)
        if path is None:
            raise ValueError(f"there is no file {value[:_SHOWN]!r} (tried: {', '.join(map(str, self.tried(value)))})")
        if kind == "file" and not is_image(path):
            return None
        check_image(path)
        return path

    def named(self, block: Mapping[str, Any]) -> Path | None:
        """The file that a sound content block names."""
        image = self.image(block)
        if isinstance(image, Path):
            return image
        return self.find(_value(block)) if block.get("type") == "file" else None

    def folder(self, name: str) -> Path | None:
        """The first folder of that name. Raises OutsideError for one outside of the boundary."""
        tried = [Path(name), *self.tried(name)]
        found = next((path for path in tried if path.is_absolute() and path.is_dir()), None)
        return None if found is None else self._boundary.check(found)

    def tried(self, name: str) -> list[Path]:
        return [root / name.lstrip("/") for root in self.roots]


def _value(block: Mapping[str, Any]) -> str:
    return str(block.get("value", block.get("text")))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name too long for any file, or with a null in it
        return False


def _address(value: str) -> str | None:
    return value if value.startswith("https://") else inline_image(value)


def checked_messages(raw: Any, place: str, files: Files, tell: Notes) -> list[dict[str, Any]]:
    """The messages, with every mistake reported; a text, or an object without a role, is one user message."""
    if isinstance(raw, str):
        _warn_of_marker(raw, place, tell)
        return [{"role": "user", "content": raw}]
    if isinstance(raw, dict):
        raw = [raw if "role" in raw else {"role": "user", "content": raw}]
    if not isinstance(raw, list):
        tell(place, f"expected text or a list of messages, found {kind_found(raw, nothing='nothing')}")
        return []
    if not raw:
        tell(place, "expected at least one message, found an empty list")
    return [_message(message, f"{place}[{i}]", files, tell) for i, message in enumerate(raw)]


def expected_messages(raw: Any, place: str, files: Files, tell: Notes) -> list[dict[str, Any]]:
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
    return checked if tell.errors else [_with_files(message, files) for message in checked]


def _with_files(message: dict[str, Any], files: Files) -> dict[str, Any]:
    """What is expected holds the content of its files, so that judges can see it."""
    content = message.get("content")
    if not isinstance(content, list):
        return message
    return {**message, "content": [_with_text(block, files) if isinstance(block, dict) else block for block in content]}


def _with_text(block: dict[str, Any], files: Files) -> dict[str, Any]:
    path = files.find(_value(block)) if block.get("type") == "file" else None
    if path is None or is_image(path):
        return block
    return {"type": "file", "path": _value(block), "text": files.text(path), "resolvedPath": str(path)}


def _message(raw: Any, place: str, files: Files, tell: Notes) -> dict[str, Any]:
    if not isinstance(raw, dict):
        tell(place, f"expected a mapping, found {kind_found(raw, nothing='nothing')}")
        return {"role": "user", "content": ""}
    if raw.get("role") not in ROLES:
        tell(f"{place}.role", f"unknown role {raw.get('role')!r}, expected one of {', '.join(ROLES)}")
    content, calls = raw.get("content"), raw.get("tool_calls")
    tell.unknown_keys(place, raw, _OF_MESSAGE)
    if calls is not None:
        _check_calls(calls, f"{place}.tool_calls", tell)
    if isinstance(content, list):
        for i, block in enumerate(content):
            _check_block(block, f"{place}.content[{i}]", files, tell)
            if isinstance(block, dict) and block.get("type") == "text":
                _warn_of_marker(_value(block), f"{place}.content[{i}]", tell)
    elif not isinstance(content, (str, dict)) and not (isinstance(calls, list) and calls):
        tell(
            f"{place}.content",
            f"content: expected text, a list of blocks or an object, found {kind_found(content, nothing='nothing')}",
        )
    if isinstance(content, str):
        _warn_of_marker(content, f"{place}.content", tell)
    return dict(raw)


def _check_calls(calls: Any, place: str, tell: Notes) -> None:
    if not isinstance(calls, list):
        tell(place, f"tool_calls: expected a list of calls, found {kind_found(calls, nothing='nothing')}")
        return
    for i, call in enumerate(calls):
        if not isinstance(call, dict) or not _name_of(call):
            expected = "{tool, input} or {function: {name, arguments}}"
            tell(
                f"{place}[{i}]",
                f"tool_calls: expected a call as {expected}, found {kind_found(call, nothing='nothing')}",
            )


def _name_of(call: Mapping[str, Any]) -> Any:
    function = call.get("function")
    return function.get("name") if isinstance(function, dict) else call.get("tool")


def _result_of(message: Mapping[str, Any]) -> Iterator[str]:
    """Which call a message of a tool answers, if it says so."""
    marks = {"name": message.get("name"), "id": message.get("tool_call_id")}
    known = "".join(f' {key}="{value}"' for key, value in marks.items() if isinstance(value, str))
    if message.get("role") == "tool" and known:
        yield f"<tool_result{known}>"


def _calls_in_words(message: Mapping[str, Any]) -> Iterator[str]:
    """The calls of a message with their names, arguments and ids, for systems that read text."""
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function")
        given = function.get("arguments") if isinstance(function, dict) else call.get("input")
        text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        marks = f' id="{call["id"]}"' if isinstance(call.get("id"), str) else ""
        yield f'<tool_call name="{_name_of(call)}"{marks}>{"" if given is None else text}</tool_call>'


def _warn_of_marker(text: str, place: str, tell: Notes) -> None:
    if found := _MARKER.search(text):
        tell.warn(place, f"content: {found[0]!r} looks like a role marker: systems may read it as a message of its own")


def _check_block(block: Any, place: str, files: Files, tell: Notes) -> None:
    if not isinstance(block, dict):
        tell(place, f"content: expected a block with 'type' and 'value', found {kind_found(block, nothing='nothing')}")
        return
    if "type" not in block and "role" not in block:
        tell(f"{place}.type", "content: a block needs a 'type'")
        return
    kind, value = block.get("type"), block.get("value", block.get("text"))
    tell.unknown_keys(place, block, _OF_BLOCK)
    if kind == "json" and isinstance(value, str):
        tell.warn(f"{place}.value", "content: a block of type 'json' holds text, which is sent as a JSON string")
    if kind not in BLOCKS:
        tell(f"{place}.type", f"unknown type {kind!r} of a content block, expected one of {', '.join(BLOCKS)}")
    elif kind != "json" and not isinstance(value, str):
        tell(f"{place}.value", f"content: a block of type {kind!r} needs a text as 'value'")
    elif kind in ("file", "image"):
        try:
            files.image(block)
        except (ValueError, OSError) as error:
            tell(f"{place}.value", str(error))


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


def chat_of(messages: Sequence[dict[str, Any]], files: Files, named: Sequence[Path]) -> list[dict[str, Any]]:
    """The messages for a chat model; tool messages and system messages that come late are rendered as text.

    The content is text, with images a list of parts as the OpenAI chat API has them, in which `{type: image, file: N}`
    stands for the N-th of the files that are `named`. Interfaces take images from users only.
    """
    said: list[dict[str, Any]] = []
    for message in messages:
        role = str(message.get("role"))
        content = _content(message, files, named)
        if role == "tool" or (role == "system" and any(other["role"] != "system" for other in said)):
            said.append({"role": "assistant", "content": f"@[{role.title()}]:\n{content}"})
        elif content:
            said.append({"role": role, "content": content})
    return said


def _content(message: dict[str, Any], files: Files, named: Sequence[Path]) -> str | list[dict[str, Any]]:
    texts: list[str] = [*_result_of(message)]
    parts: list[dict[str, Any]] = []
    for block in _blocks(message):
        image = files.image(block) if message.get("role") == "user" else None
        if image is None:
            texts += _part(block, files, embed=True)
            continue
        parts += _as_parts(texts)
        texts = []
        shown = {"type": "image", "file": named.index(image)} if isinstance(image, Path) else _addressed(image)
        parts.append(shown)
    texts += _calls_in_words(message)
    return [*parts, *_as_parts(texts)] if parts else "\n".join(texts)


def _as_parts(texts: Sequence[str]) -> list[dict[str, Any]]:
    return [{"type": "text", "text": "\n".join(texts)}] if texts else []


def _addressed(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def _parts(message: dict[str, Any], files: Files, embed: bool) -> Iterator[str]:
    yield from _result_of(message)
    for block in _blocks(message):
        yield from _part(block, files, embed=embed)
    yield from _calls_in_words(message)


def _part(block: dict[str, Any], files: Files, *, embed: bool) -> Iterator[str]:
    """The block in words, nothing for one without any."""
    value = _value(block)
    if block.get("type") == "file":
        path = files.find(value)
        if path is None or not files.is_guideline(path):
            yield _file(value, path, files, embed)
    elif block.get("type") == "image":
        yield "<image>" if _address(value) else f'<image path="{value.lstrip("/")}">'
    elif text := _text(block).strip():
        yield text


def guidelines_of(paths: Iterable[Path], files: Files) -> str:
    """The content of files that are guidelines, apart from the prompt."""
    return "\n\n".join(_file(path.name, path, files, True) for path in paths)


def _file(name: str, path: Path | None, files: Files, embed: bool) -> str:
    shown = name if path is not None and Path(name) == path else name.lstrip("/")
    if path is None or not embed:
        return f'<file: path="{shown}">'
    if is_image(path):
        return f'<image path="{shown}">'
    return f'<file path="{shown}">\n{files.text(path).strip()}\n</file>'


def reference_of(messages: Sequence[dict[str, Any]]) -> str:
    """The reference answer: the content of the last expected message as text, else its tool calls."""
    if not messages:
        return ""
    content, calls = messages[-1].get("content"), messages[-1].get("tool_calls")
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(one, dict) and one.get("type") in BLOCKS for one in content):
        return "\n".join(map(_expected_part, content))
    found = content if content is not None else calls
    return "" if found is None else json.dumps(found, ensure_ascii=False, indent=2)


def _expected_part(block: Mapping[str, Any]) -> str:
    """A block as a judge sees it: no path but the one that the file has."""
    kind = block.get("type")
    if kind == "text":
        return _value(block)
    if kind == "file" and "text" in block:
        return f'<file path="{block.get("path")}">\n{str(block["text"]).strip()}\n</file>'
    if kind in ("file", "image"):
        return f'<{kind} path="{block.get("path") or block.get("value")}">'
    return json.dumps(block.get("value", block), ensure_ascii=False, indent=2)


def _kind(value: Any) -> str:
    return kind_found(value, nothing="nothing")
