"""Recorded conversations as tests write and import them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from evalwright.errors import InputError
from evalwright.files.yaml import load
from evalwright.importers.openai_messages import OpenAIMessages
from evalwright.model.import_result import ImportResult
from evalwright.model.trace import Trace

HELLO = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]


def call(name: str, arguments: object = "{}", id: str = "call_1") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def imported(folder: Path, records: object, mapping: dict[str, str] | None = None) -> ImportResult:
    source = folder / "recorded.json"
    source.write_text(json.dumps(records))
    return OpenAIMessages.import_files([source], folder / "out", mapping)


def cases(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "out" / "cases.jsonl").read_text().splitlines()]


def suite(folder: Path) -> Any:
    return load(folder / "out" / "eval.yaml").value


def trace_of(folder: Path, messages: object, **more: object) -> Trace:
    imported(folder, [{"id": "c", "messages": messages, **more}])
    return msgspec.convert(cases(folder)[0]["embedded_trace"], Trace)


def problems(folder: Path, records: object, mapping: dict[str, str] | None = None) -> list[str]:
    with pytest.raises(InputError) as caught:
        imported(folder, records, mapping)
    assert not (folder / "out").exists()
    return [str(problem).removeprefix(str(folder)).lstrip("/") for problem in caught.value.problems]
