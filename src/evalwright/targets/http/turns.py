"""What an agent says and does while it answers: texts, thoughts, calls of tools and their results, turn by turn."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from evalwright.errors import TargetError
from evalwright.files.key_paths import kind_in_words

__all__ = ["Turns", "object_at", "objects_at", "string_at"]


class _Turn:
    """One message of the model, and the results of its calls."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.thoughts: dict[str, list[str]] = {}
        """The pieces of each block."""
        self.calls: dict[int, dict[str, Any]] = {}
        """By their numbers in the answer: a model may use an id again, or none."""
        self.results: dict[int | str, Any] = {}
        """By the numbers of their calls; by its id where the call is none of the answer's."""

    def clear(self) -> None:
        for part in (self.texts, self.thoughts, self.calls, self.results):
            part.clear()

    @property
    def empty(self) -> bool:
        return not (self.texts or self.thoughts or self.calls or self.results)

    @property
    def named(self) -> list[dict[str, Any]]:
        return [call for call in self.calls.values() if call["name"]]

    @property
    def thinking(self) -> str | None:
        return "\n\n".join(filter(None, map("".join, self.thoughts.values()))) or None


class Turns:
    """Collects what the events of a protocol tell.

    The answer is the last turn's text that is not blank. A later result of the same call replaces an earlier one.
    A call with the id of one that has a result or another name is another call.
    """

    def __init__(self) -> None:
        self.error: str | None = None
        """Why the agent failed."""
        self.done: bool = False
        """Whether nothing more is to be read."""
        self.ended: bool = False
        """Whether an event said that the answer is complete."""
        self.finish_reason: str | None = None
        self.structured: Any = None
        self.usage: dict[str, Any] = {}
        """Token counts by their names in `Metrics`."""
        self.unread: Counter[str] = Counter()
        """How many events there were of each type that says nothing about the parts of an answer."""
        self._fresh: list[str] = []
        self._number = 0
        self.clear()

    def clear(self) -> None:
        """Drop all turns: what follows tells them again."""
        self._current = _Turn()
        self._turns = [self._current]
        self._of_key: dict[str, _Turn] = {}
        self._of_call: dict[str, list[tuple[_Turn, int]]] = {}

    @property
    def answered(self) -> bool:
        """Whether the results of this turn's calls have begun to arrive."""
        return bool(self._current.results)

    @property
    def spoken(self) -> bool:
        """Whether this turn has a text."""
        return bool(self._current.texts)

    @property
    def empty(self) -> bool:
        """Whether there is neither a text nor a call."""
        return not any(turn.texts or turn.calls for turn in self._turns)

    @property
    def nameless(self) -> bool:
        """Whether a call has no name."""
        return any(len(turn.named) < len(turn.calls) for turn in self._turns)

    def begin(self) -> None:
        """Begin another turn, unless this one is empty."""
        if not self._current.empty:
            self._current = _Turn()
            self._turns.append(self._current)

    def resume(self, key: str) -> None:
        """Go on with the turn that has this key, or begin it: turns of agents that work side by side alternate."""
        turn = self._of_key.get(key)
        if turn is None:
            turn = self._of_key[key] = _Turn()
            self._turns.append(turn)
        self._current = turn

    def restart(self) -> None:
        """Drop what this turn has: the agent repeats it."""
        self._current.clear()
        for id, places in self._of_call.items():
            self._of_call[id] = [place for place in places if place[0] is not self._current]

    def add_text(self, text: str) -> None:
        if text:
            self._current.texts.append(text)
            self._fresh.append(text)

    def add_thinking(self, text: str, block: str = "") -> None:
        """Add to a `block` of thinking; an empty line separates blocks."""
        if text:
            self._current.thoughts.setdefault(block, []).append(text)

    def call(self, id: str, name: str | None = None, arguments: Any = None) -> None:
        """Begin or complete the call with this id; None leaves what is known."""
        call = self._call_to_complete(id, name)
        if call is None:
            self._number += 1
            self._of_call.setdefault(id, []).append((self._current, self._number))
            call = self._current.calls[self._number] = {"id": id, "name": None, "arguments": ""}
        call["name"] = name or call["name"]
        if arguments is not None:
            call["arguments"] = arguments if isinstance(arguments, dict | str) else {"_raw": arguments}

    def _call_to_complete(self, id: str, name: str | None) -> dict[str, Any] | None:
        """The last call with this id, unless what is said with the name is of another one."""
        if not self._of_call.get(id):
            return None
        turn, number = self._of_call[id][-1]
        call = turn.calls[number]
        is_whole = number in turn.results or (not id and isinstance(call["arguments"], dict))
        return None if name and (is_whole or call["name"] not in (None, name)) else call

    def add_arguments(self, id: str, text: str) -> None:
        """Add a piece of the JSON text of a call's arguments."""
        self.call(id)
        turn, number = self._of_call[id][-1]
        call = turn.calls[number]
        if isinstance(call["arguments"], str):
            call["arguments"] += text

    def result(self, id: str, content: Any) -> None:
        """The result of a call, perhaps of one that an earlier request made; the JSON text of an object is that
        object."""
        if isinstance(content, str) and content.lstrip().startswith("{"):
            with suppress(ValueError, RecursionError):
                content = json.loads(content)
        elif not isinstance(content, str | dict):
            content = json.dumps(content, ensure_ascii=False)
        places = self._of_call.get(id)
        if not places:
            self._current.results[id] = content
            return
        turn, number = next((place for place in places if place[1] not in place[0].results), places[-1])
        turn.results[number] = content

    def replace_calls(self, calls: list[dict[str, Any]]) -> None:
        """Set the calls of this turn, of which some may lack an id."""
        self._current.calls = dict(enumerate(calls))

    def count(self, **tokens: Any) -> None:
        """Note token counts; None leaves what is known."""
        self.usage.update({name: number for name, number in tokens.items() if number is not None})

    def fresh_text(self) -> str | None:
        """The text since the last time."""
        text, self._fresh = "".join(self._fresh), []
        return text or None

    def parts(self) -> dict[str, Any]:
        """The parts of an answer under our keys, without metrics; calls without a name are left out."""
        texts = ["".join(turn.texts) for turn in self._turns]
        structured = self.structured
        return {
            "final_answer": next((text for text in reversed(texts) if text.strip()), "".join(texts) or None),
            "thinking": "\n\n".join(filter(None, (turn.thinking for turn in self._turns))) or None,
            "structured": structured if isinstance(structured, dict | None) else {"value": structured},
            "messages": [message for turn in self._turns for message in _messages_of(turn)],
            "tool_calls": [call for turn in self._turns for call in turn.named],
        }


def _messages_of(turn: _Turn) -> list[dict[str, Any]]:
    text, calls = "".join(turn.texts) or None, turn.named
    message = {"role": "assistant", "content": text, "thinking": turn.thinking, "tool_calls": calls}
    results = []
    for key, content in turn.results.items():
        call = turn.calls.get(key, {}) if isinstance(key, int) else {"id": key}
        results.append({"role": "tool", "content": content, "tool_call_id": call.get("id"), "name": call.get("name")})
    return [*([message] if text or calls or turn.thinking else []), *results]


def string_at(event: Mapping[str, Any], key: str) -> str:
    """The text at a key; empty if it is null or missing. Raises TargetError for anything else.

    Its message has no values: cut, a secret in one would not be recognised.
    """
    value = event.get(key)
    if isinstance(value, str | None):
        return value or ""
    raise TargetError(f"{key!r} in an event of the stream must be a text, found {kind_in_words(value)}")


def object_at(event: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The mapping at a key; an empty one if there is none."""
    value = event.get(key)
    return value if isinstance(value, dict) else {}


def objects_at(event: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """The mappings in the list at a key; none if there is no list."""
    value = event.get(key)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
