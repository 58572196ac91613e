"""OpenAI's Responses API: response objects, lists of items, and the output of the Agents SDK's `to_input_list()`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from evalwright.importers.blocks import texts_of, thoughts_in
from evalwright.importers.imported_records import Imported, ImportFindings, Read
from evalwright.importers.placed_conversations import imported_conversation
from evalwright.importers.placed_records import placed_records
from evalwright.importers.record_values import described, dictionaries
from evalwright.importers.sources import ImportNotes
from evalwright.importers.token_counts import openai_tokens, recorded_time
from evalwright.importers.traces import TraceImporter
from evalwright.importers.transcript import Transcript, arguments_of
from evalwright.model.chat import SERVED_RESULTS
from evalwright.model.trace import TraceError

__all__ = ["OpenAIResponses", "read_item"]


def read(files: Sequence[Path], reading: ImportFindings) -> Iterator[Imported]:
    """The responses and lists of items in the files."""
    for file in files:
        for place in placed_records(file, reading.mistakes, items_are_one=_is_item):
            record = place.value

            def report(key: str, message: str, place: Any = place, file: Path = file) -> None:
                reading.mistakes.add(file, message, place.line, place.below(key))

            before = len(reading.mistakes)
            talk = Transcript()
            response: dict[str, Any] = {}
            if isinstance(record, dict):
                response = record
                instructions = record.get("instructions")
                if isinstance(instructions, str):
                    talk.system(instructions)
                elif instructions is not None:
                    _items(talk, instructions, "instructions", reading, report)
                question = record.get("input")
                if isinstance(question, str):
                    talk.user(question)
                elif question is not None:
                    _items(talk, question, "input", reading, report, continues=_continues(record))
                _items(talk, record.get("output") or [], "output", reading, report)
            else:
                _items(talk, record, "", reading, report)
            _outcome(talk, response, reading.notes)
            if talk.empty and talk.error is None:
                if len(reading.mistakes) == before:
                    report("", "expected a response or items with messages, found none")
                continue
            yield imported_conversation(talk, file, place, "openai-responses")


def _is_item(value: Any) -> bool:
    """Whether it is an item of a conversation; a list of items is one record."""
    return isinstance(value, dict) and value.get("object") != "response" and ("role" in value or "type" in value)


def _continues(response: dict[str, Any]) -> bool:
    """Whether the service put earlier items, which are not in the record, before its input."""
    return bool(response.get("previous_response_id") or response.get("conversation"))


def _items(
    talk: Transcript, items: Any, key: str, reading: ImportFindings, report: Any, *, continues: bool = False
) -> None:
    if not isinstance(items, list):
        report(key, f"expected a list of items, found {described(items)}")
        return
    for number, item in enumerate(items):
        if isinstance(item, dict):
            read_item(talk, item, f"{key}[{number}]", reading, report, continues=continues)
        else:
            report(f"{key}[{number}]", f"expected an item, found {described(item)}")


def read_item(
    talk: Transcript, item: dict[str, Any], key: str, reading: ImportFindings, report: Any, *, continues: bool = False
) -> None:
    """Add an item to the conversation; `report` is called with the key and the flaw of one that cannot be used.

    If the conversation `continues` another, a call may have been made there.
    """
    kind = item.get("type", "message" if "role" in item else None)
    call_id = item.get("call_id") or item.get("id")
    if kind == "message":
        _message(talk, item, key, reading, report)
    elif kind == "function_call" or kind == "custom_tool_call":
        talk.call(str(item.get("name", "tool")), call_id, arguments_of(item.get("arguments", item.get("input"))))
    elif kind == "mcp_call":  # of a tool of a server, which the provider called itself
        talk.call(str(item.get("name", "tool")), call_id, arguments_of(item.get("arguments")))
        failed = item.get("error") is not None
        output = item["error"] if failed else item.get("output")
        if output is not None and call_id is not None:
            output = output if isinstance(output, dict) else texts_of(output, reading.notes)
            talk.result(call_id, output, failed=failed)
    elif isinstance(kind, str) and kind.endswith("_call_output"):
        if not (talk.knows(call_id) or continues):
            report(f"{key}.call_id", f"the output of a missing call: {call_id!r}")
            return
        output = item.get("output")
        failed = any(map(_is_failure, dictionaries(output)))
        if any("stdout" in part for part in dictionaries(output)):
            output = {"output": output}  # of a shell: what each command printed, and how it ended
        talk.result(call_id, output if isinstance(output, dict) else texts_of(output, reading.notes), failed=failed)
    elif kind == "reasoning":
        for text in thoughts_in(item.get("summary"), item.get("content")):
            talk.think(text)
    elif isinstance(kind, str) and kind.endswith("_call"):
        _hosted_call(talk, kind.removesuffix("_call"), call_id, item, reading)
    else:
        reading.notes.lose(f"items of type {kind!r}")


def _hosted_call(talk: Transcript, name: str, call_id: Any, item: dict[str, Any], reading: ImportFindings) -> None:
    """A call of a tool of the provider, with its result, if the item has it."""
    known = ("type", "id", "status", "call_id", *SERVED_RESULTS)
    talk.call(name, call_id, {key: item[key] for key in item if key not in known})
    returned: Any = {key: item[key] for key in SERVED_RESULTS if item.get(key) is not None}
    failed = item.get("status") == "failed"
    if name == "image_generation" and returned:
        returned = texts_of([{"type": "image"}], reading.notes)
    if (returned or failed) and call_id is not None:
        talk.result(call_id, returned or "", failed=failed)


def _is_failure(output: dict[str, Any]) -> bool:
    """Whether a command of a shell ended with another code than 0, or did not end."""
    outcome = output.get("outcome")
    return isinstance(outcome, dict) and (outcome.get("type") == "timeout" or outcome.get("exit_code") not in (0, None))


def _message(talk: Transcript, item: dict[str, Any], key: str, reading: ImportFindings, report: Any) -> None:
    content = item.get("content")
    if isinstance(content, list):
        content = [
            {"text": part["refusal"]} if isinstance(part, dict) and isinstance(part.get("refusal"), str) else part
            for part in content
        ]
    text = texts_of(content, reading.notes)
    match item.get("role"):
        case "assistant":
            talk.add_text(text)
        case "user":
            talk.user(text)
        case "system" | "developer":
            talk.system(text)
        case role:
            report(f"{key}.role", f"expected system, developer, user or assistant, found {described(role)}")


_UNFINISHED = ("queued", "in_progress", "cancelled")
"""The status of responses without an answer, or with a part of one."""


def _outcome(talk: Transcript, response: dict[str, Any], notes: ImportNotes) -> None:
    """Tokens, error and the reason why the model stopped."""
    talk.tokens = openai_tokens(response.get("usage"), notes)
    if response.get("model") is not None:
        talk.extra["model"] = response["model"]
    for key in ("created_at", "completed_at"):
        talk.at(recorded_time(response.get(key), notes))
    error, status = response.get("error"), response.get("status")
    if status == "failed" or isinstance(error, dict):
        fields = error if isinstance(error, dict) else {}
        talk.error = TraceError(str(fields.get("code") or "response_failed"), str(fields.get("message") or "failed"))
    elif status in _UNFINISHED:
        kind = "aborted" if status == "cancelled" else "unfinished"
        talk.error = TraceError(kind, f"the status of the response is {status!r}")
    if status == "incomplete":
        details = response.get("incomplete_details")
        talk.extra["stopped"] = details.get("reason") if isinstance(details, dict) else "incomplete"


class OpenAIResponses(TraceImporter):
    """Requests and responses of OpenAI's Responses API, and lists of items."""

    read: ClassVar[Read] = staticmethod(read)
