"""Messages in the form in which systems and judges read them: prompts, chats, questions and references."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from evalwright.files.images import is_image
from evalwright.formats.agentv.message_files import Files, image_address, value_of
from evalwright.formats.agentv.messages import called_name

__all__ = ["chat_of", "guidelines_of", "prompt_of", "question_of", "reference_of", "without_places"]

Shown = Literal["content", "name", "path"]
"""What represents a file in a text: its content, its name in the suite, or its path on this machine."""


def _result_of(message: Mapping[str, Any]) -> Iterator[str]:
    """The call that a tool message answers, if it says so."""
    marks = {"name": message.get("name"), "id": message.get("tool_call_id")}
    known = "".join(f' {key}="{value}"' for key, value in marks.items() if isinstance(value, str))
    if message.get("role") == "tool" and known:
        yield f"<tool_result{known}>"


def _calls_in_words(message: Mapping[str, Any]) -> Iterator[str]:
    """The calls of a message with their names, arguments and ids, for systems that read text."""
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function")
        arguments = function.get("arguments") if isinstance(function, dict) else call.get("input")
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        marks = f' id="{call["id"]}"' if isinstance(call.get("id"), str) else ""
        yield f'<tool_call name="{called_name(call)}"{marks}>{"" if arguments is None else text}</tool_call>'


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The content as blocks; a string or an object is one block."""
    content = message.get("content")
    if isinstance(content, list):
        return [block for block in content if isinstance(block, dict)]
    if isinstance(content, str):
        return [{"type": "text", "value": content}]
    return [{"type": "json", "value": content}] if isinstance(content, dict) else []


def question_of(messages: Sequence[dict[str, Any]]) -> str:
    """The question as judges see it: all texts and JSON values, without files and images."""
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


def prompt_of(messages: Sequence[dict[str, Any]], files: Files, shown: Shown) -> str:
    """The prompt that a system gets: with the files' content, or only with their names for agents that read files."""
    rendered = [(message, list(_parts(message, files, shown))) for message in messages]
    visible = [item for item in rendered if item[1]]
    if any(m.get("role") in ("assistant", "tool") for m in messages) or len(visible) > 1:
        return "\n\n".join("\n".join([f"@[{str(m['role']).title()}]:", *parts]) for m, parts in visible)
    return "\n\n".join(part for _, parts in visible for part in parts)


def chat_of(messages: Sequence[dict[str, Any]], files: Files, named: Sequence[Path]) -> list[dict[str, Any]]:
    """The messages for a chat model; tool messages and late system messages are rendered as text.

    The content is text or, with images, a list of parts as in the OpenAI chat API, in which `{type: image, file: N}`
    stands for the N-th of the files that are `named`. Interfaces accept images from users only.
    """
    chat: list[dict[str, Any]] = []
    for message in messages:
        role = str(message.get("role"))
        content = _content_of(message, files, named)
        if role == "tool" or (role == "system" and any(other["role"] != "system" for other in chat)):
            chat.append({"role": "assistant", "content": f"@[{role.title()}]:\n{content}"})
        elif content:
            chat.append({"role": role, "content": content})
    return chat


def _content_of(message: dict[str, Any], files: Files, named: Sequence[Path]) -> str | list[dict[str, Any]]:
    texts: list[str] = [*_result_of(message)]
    parts: list[dict[str, Any]] = []
    for block in _blocks(message):
        image = files.image(block) if message.get("role") == "user" else None
        if image is None:
            texts += _part(block, files, "content")
            continue
        parts += _as_parts(texts)
        texts = []
        shown = {"type": "image", "file": named.index(image)} if isinstance(image, Path) else _image_with_address(image)
        parts.append(shown)
    texts += _calls_in_words(message)
    return [*parts, *_as_parts(texts)] if parts else "\n".join(texts)


def _as_parts(texts: Sequence[str]) -> list[dict[str, Any]]:
    return [{"type": "text", "text": "\n".join(texts)}] if texts else []


def _image_with_address(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def _parts(message: dict[str, Any], files: Files, shown: Shown) -> Iterator[str]:
    yield from _result_of(message)
    for block in _blocks(message):
        yield from _part(block, files, shown)
    yield from _calls_in_words(message)


def _part(block: dict[str, Any], files: Files, shown: Shown) -> Iterator[str]:
    """The block in words; nothing for a block without any."""
    value = value_of(block)
    if block.get("type") == "file":
        path = files.find(value)
        if path is None or not files.is_guideline(path):
            yield _file(value, path, files, shown)
    elif block.get("type") == "image":
        yield "<image>" if image_address(value) else f'<image path="{_shown_name(value, files.find(value), shown)}">'
    elif text := _text(block).strip():
        yield text


def guidelines_of(paths: Iterable[Path], files: Files) -> str:
    """The content of files that are guidelines, separate from the prompt."""
    return "\n\n".join(_file(path.name, path, files, "content") for path in paths)


def _file(name: str, path: Path | None, files: Files, shown: Shown) -> str:
    called = _shown_name(name, path, shown)
    if path is None or shown != "content":
        return f'<file: path="{called}">'
    if is_image(path):
        return f'<image path="{called}">'
    return f'<file path="{called}">\n{files.text(path).strip()}\n</file>'


def _shown_name(name: str, path: Path | None, shown: Shown) -> str:
    if path is None:
        return name.lstrip("/")
    return str(path) if shown == "path" or Path(name) == path else name.lstrip("/")


def reference_of(messages: Sequence[dict[str, Any]]) -> str:
    """The reference answer: the content of the last expected message, else its tool calls; as JSON if it is no text."""
    if not messages:
        return ""
    content, calls = messages[-1].get("content"), messages[-1].get("tool_calls")
    if isinstance(content, str):
        return content
    value = content if content is not None else calls
    return "" if value is None else json.dumps(without_places(value), ensure_ascii=False, indent=2)


def without_places(value: Any) -> Any:
    """Messages, or a part of them, without the paths of their files on this machine, which no judge should see."""
    if isinstance(value, list):
        return [without_places(item) for item in value]
    if isinstance(value, dict):
        return {key: without_places(item) for key, item in value.items() if key != "resolvedPath"}
    return value
