"""Spans as they are imported, and the call of a model in every convention."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from evalwright.importers.spans import OpenInference, OtlpJson
from evalwright.model.import_result import ImportResult
from importers.spans import event, span

QUESTION = [{"role": "user", "content": "Where is order 7?"}]
CALL = {"id": "c1", "type": "function", "function": {"name": "track", "arguments": '{"order": 7}'}}


def imported(folder: Path, *documents: Any, plain: bool = False) -> ImportResult:
    source = folder / "spans.json"
    source.write_text(
        "\n".join(document if isinstance(document, str) else json.dumps(document) for document in documents)
    )
    return (OpenInference if plain else OtlpJson).import_files([source], folder / "out")


def cases(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "out" / "cases.jsonl").read_text().splitlines()]


def trace(folder: Path, *documents: Any, plain: bool = False) -> dict[str, Any]:
    imported(folder, *documents, plain=plain)
    found: dict[str, Any] = cases(folder)[0]["embedded_trace"]
    return found


def model_call(conventions: str) -> dict[str, Any]:
    """A span in which a model was asked, called a tool, and used 12 and 5 tokens."""
    if conventions in ("messages", "structured messages"):
        written = json.dumps if conventions == "messages" else list
        asked = [{"role": "user", "parts": [{"type": "text", "content": "Where is order 7?"}]}]
        call = {"type": "tool_call", "id": "c1", "name": "track", "arguments": {"order": 7}}
        parts = [{"type": "text", "content": "On its way"}, call]
        said = [{"role": "assistant", "parts": parts, "finish_reason": "stop"}]
        return span(2, "chat m", {
            "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai",
            "gen_ai.input.messages": written(asked), "gen_ai.output.messages": written(said),
            "gen_ai.usage.input_tokens": 12, "gen_ai.usage.output_tokens": 5,
        }, below=1)  # fmt: skip
    if conventions == "content events":
        said = [{"role": "assistant", "content": "On its way", "tool_calls": [CALL]}]
        return span(2, "chat m", {
            "gen_ai.operation.name": "chat", "gen_ai.system": "openai",
            "gen_ai.usage.prompt_tokens": 12, "gen_ai.usage.completion_tokens": 5,
        }, below=1, events=[
            event("gen_ai.content.prompt", {"gen_ai.prompt": json.dumps(QUESTION)}),
            event("gen_ai.content.completion", {"gen_ai.completion": json.dumps(said)}),
        ])  # fmt: skip
    if conventions == "message events":
        said = {"role": "assistant", "content": "On its way", "tool_calls": [CALL]}
        return span(2, "chat m", {
            "gen_ai.operation.name": "chat", "gen_ai.system": "openai",
            "gen_ai.usage.input_tokens": 12, "gen_ai.usage.output_tokens": 5,
        }, below=1, events=[
            event("gen_ai.user.message", {"content": "Where is order 7?"}),
            event("gen_ai.choice", {"index": 0, "finish_reason": "stop", "message": json.dumps(said)}),
        ])  # fmt: skip
    if conventions in ("indexed prompts", "older indexed prompts"):
        older = conventions.startswith("older")
        asked, said = ("llm.prompts.0", "llm.completions.0") if older else ("gen_ai.prompt.0", "gen_ai.completion.0")
        usage = "llm.usage" if older else "gen_ai.usage"
        return span(2, "openai.chat", {
            "llm.request.type": "chat", f"{asked}.role": "user", f"{asked}.content": "Where is order 7?",
            f"{said}.role": "assistant", f"{said}.content": "On its way",
            f"{said}.tool_calls.0.id": "c1", f"{said}.tool_calls.0.name": "track",
            f"{said}.tool_calls.0.arguments": '{"order": 7}',
            f"{usage}.prompt_tokens": 12, f"{usage}.completion_tokens": 5,
        }, below=1)  # fmt: skip
    assert conventions == "openinference"
    call = "llm.output_messages.0.message.tool_calls.0.tool_call"
    return span(2, "ChatCompletion", {
        "openinference.span.kind": "LLM", "llm.model_name": "m",
        "llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "Where is order 7?",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.contents.0.message_content.type": "text",
        "llm.output_messages.0.message.contents.0.message_content.text": "On its way",
        f"{call}.id": "c1", f"{call}.function.name": "track", f"{call}.function.arguments": '{"order": 7}',
        "llm.token_count.prompt": 12, "llm.token_count.completion": 5,
    }, below=1)  # fmt: skip
