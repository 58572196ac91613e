"""Trajectories of SWE-agent: `.traj` files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from evalwright.importers.blocks import texts_of
from evalwright.importers.imported_records import Imported, ImportFindings, Read
from evalwright.importers.record_values import described, dictionaries
from evalwright.importers.sources import ImportNotes, json_document, stem
from evalwright.importers.token_counts import Tokens, recorded_dollars, token_count
from evalwright.importers.traces import TraceImporter
from evalwright.importers.transcript import Transcript, arguments_of

__all__ = ["SweAgent"]

_SHELL = "bash"
"""What agents without tools of their own write commands for."""


def read(files: Sequence[Path], reading: ImportFindings) -> Iterator[Imported]:
    """The trajectories in the files, one per file."""
    for file in files:
        document = json_document(file, reading.mistakes)
        history = document.get("history") if isinstance(document, dict) else None
        if not isinstance(history, list):
            reading.mistakes.add(
                file, f"expected the messages of a trajectory, found {described(history)}", key="history"
            )
            continue
        talk = Transcript()
        acted = False
        for message in dictionaries(history):
            if message.get("is_demo"):
                reading.notes.lose("messages of demonstrations")
            elif acted and message.get("role") == "user":
                talk.result(None, texts_of(message.get("content"), reading.notes), _SHELL)
                acted = False
            else:
                acted = _message(talk, message, reading.notes)
        info = document.get("info")
        _outcome(talk, info if isinstance(info, dict) else {}, reading.notes)
        origin = {"imported_from": {"file": file.name, "format": "swe-agent"}}
        question = {"user_message": talk.user_message or ""}
        yield Imported(file, stem(file), question, talk.trace("recorded", origin))


def _message(talk: Transcript, message: dict[str, Any], notes: ImportNotes) -> bool:
    """Add a message; returns whether it has an action in its text, whose result the next message of the user is."""
    text = texts_of(message.get("content"), notes)
    match message.get("role"):
        case "assistant":
            turn = talk.turn()
            for block in dictionaries(message.get("thinking_blocks")):
                if isinstance(thought := block.get("thinking"), str) and thought:
                    turn.think(thought)
            if text:
                turn.add_text(text)
            for call in dictionaries(message.get("tool_calls")):
                function = call.get("function")
                function = function if isinstance(function, dict) else {}
                name, arguments = str(function.get("name", "tool")), arguments_of(function.get("arguments"))
                talk.calls_in(turn, name, call.get("id"), arguments)
            action = message.get("action")
            if isinstance(action, str) and action.strip() and not turn.calls:
                talk.calls_in(turn, _SHELL, None, {"command": action})
                return True
        case "tool":
            ids = message.get("tool_call_ids")
            called = ids[0] if isinstance(ids, list) and ids else message.get("tool_call_id")
            talk.result(called, text)
        case "system":
            talk.system(text)
        case _:
            talk.user(text)
    return False


def _outcome(talk: Transcript, info: dict[str, Any], notes: ImportNotes) -> None:
    stats = info.get("model_stats")
    stats = stats if isinstance(stats, dict) else {}
    talk.tokens = Tokens(
        token_count(stats.get("tokens_sent"), notes),
        token_count(stats.get("tokens_received"), notes),
        cost=recorded_dollars(stats.get("instance_cost"), notes),
    )
    if isinstance(info.get("submission"), str):
        talk.answer = info["submission"]
    status = info.get("exit_status")
    if isinstance(status, str) and status.startswith("exit_"):
        talk.extra["stopped"] = status


class SweAgent(TraceImporter):
    """Trajectories of SWE-agent, `.traj` files."""

    read: ClassVar[Read] = staticmethod(read)
