"""Trajectories of mini-swe-agent: `.traj.json` files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from evalwright.files.plain import mapping_or_empty
from evalwright.importers.agent_turns import AgentTurn
from evalwright.importers.blocks import texts_of
from evalwright.importers.imported_records import Imported, ImportFindings, Read
from evalwright.importers.openai_responses import read_item
from evalwright.importers.record_values import described, dictionaries
from evalwright.importers.sources import ImportNotes, json_document, stem
from evalwright.importers.token_counts import openai_tokens, recorded_dollars, recorded_time
from evalwright.importers.traces import TraceImporter
from evalwright.importers.transcript import Transcript, arguments_of
from evalwright.model.trace import TraceError

__all__ = ["MiniSweAgent"]

_STOPPED = ("LimitsExceeded", "TimeExceeded", "RepeatedFormatError", "UserInterruption")
_SHELL = "bash"


def read(files: Sequence[Path], reading: ImportFindings) -> Iterator[Imported]:
    """The trajectories in the files, one per file."""
    for file in files:
        document = json_document(file, reading.mistakes)
        messages = document.get("messages") if isinstance(document, dict) else None
        if not isinstance(messages, list):
            problem = f"expected the messages of a trajectory, found {described(messages)}"
            reading.mistakes.add(file, problem, key="messages")
            continue
        talk = Transcript()
        for number, message in enumerate(dictionaries(messages)):
            _message(talk, message, file, f"messages[{number}]", reading)
        model = _outcome(talk, mapping_or_empty(document.get("info")), reading.notes)
        id = document.get("instance_id")
        origin = {"imported_from": {"file": file.name, "format": "mini-swe-agent"}}
        yield Imported(
            file,
            id if isinstance(id, str) and id else stem(file).removesuffix(".traj"),
            {"user_message": talk.user_message or ""},
            talk.trace(model or "recorded", origin),
            record=document,
        )


def _message(talk: Transcript, message: Mapping[str, Any], file: Path, key: str, reading: ImportFindings) -> None:
    extra = mapping_or_empty(message.get("extra"))
    at = recorded_time(extra.get("timestamp"), reading.notes)
    talk.at(at)
    if message.get("role") != "exit":
        usage = message.get("usage", mapping_or_empty(extra.get("response")).get("usage"))
        talk.tokens += openai_tokens(usage, reading.notes)
    if message.get("object") == "response" or "type" in message:
        for item in dictionaries(message.get("output")) if "type" not in message else [message]:
            read_item(talk, dict(item), key, reading, lambda at, problem: reading.mistakes.add(file, problem, key=at))
        return
    text = texts_of(message.get("content"), reading.notes)
    match message.get("role"):
        case "assistant":
            _turn(talk, talk.turn(at=at), message, text, extra)
        case "tool":
            talk.result(message.get("tool_call_id"), text, at=at, failed=bool(extra.get("returncode")))
        case "user" if "returncode" in extra:
            talk.result(None, text, _SHELL, at, bool(extra["returncode"]))
        case "user":
            talk.user(text)
        case "system":
            talk.system(text)
        case "exit":
            pass  # its content is also in `info`
        case role:
            reading.notes.lose(f"messages with the role {role!r}")


def _turn(talk: Transcript, turn: AgentTurn, message: Mapping[str, Any], text: str, extra: Mapping[str, Any]) -> None:
    if isinstance(message.get("reasoning_content"), str):
        turn.think(message["reasoning_content"])
    if text:
        turn.add_text(text)
    calls = [*dictionaries(message.get("tool_calls"))]
    for call in calls:
        function = mapping_or_empty(call.get("function"))
        talk.calls_in(turn, str(function.get("name", "tool")), call.get("id"), arguments_of(function.get("arguments")))
    for action in dictionaries(extra.get("actions")) if not calls else ():  # commands that were found in the text
        talk.calls_in(turn, _SHELL, None, {"command": action.get("command")})


def _outcome(talk: Transcript, info: Mapping[str, Any], notes: ImportNotes) -> str | None:
    """Cost, answer and how the agent ended; returns the model's name, if it is known."""
    stats, config = mapping_or_empty(info.get("model_stats")), mapping_or_empty(info.get("config"))
    model = mapping_or_empty(config.get("model"))
    # 0 is also what is written for a model whose price is not known
    talk.tokens.cost = recorded_dollars(stats.get("instance_cost"), notes) or None
    talk.answer = str(info["submission"]) if info.get("submission") else None
    ended = str(info.get("exit_status") or "")
    if ended in _STOPPED:
        talk.extra["stopped"] = ended
    elif ended and ended != "Submitted":
        talk.error = TraceError(ended, str(info.get("exception_str") or "the agent ended with an exception"))
    name = model.get("model_name")
    return name if isinstance(name, str) and name else None


class MiniSweAgent(TraceImporter):
    """Trajectories of mini-swe-agent."""

    read: ClassVar[Read] = staticmethod(read)
