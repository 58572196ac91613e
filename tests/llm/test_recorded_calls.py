"""Calls that were recorded are answered again as they were."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalwright.errors import InputError
from evalwright.llm.failures import CallFailed
from evalwright.llm.recorded_calls import CallRecorder, RecordedCalls
from evalwright.model.chat import ChatMessage, ChatReply, ChatRequest, Embedding

HI = ChatRequest("m", [ChatMessage("user", "hi")])


def test_replies_to_the_same_call_come_in_order_and_the_last_one_for_ever(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    recorder = CallRecorder(path, lambda text: text.replace("secret", "***"))
    for text in ("one", "two secret"):
        recorder.keep("k", "chat", HI, ChatReply(text, "m"))
    recorder.keep("e", "embed", "hi", Embedding([[0.5]], "m"))
    recorder.close()
    recorded = RecordedCalls(path)
    assert [recorded.find("k", HI).text for _ in range(4)] == ["one", "two ***", "two ***", "two ***"]
    assert recorded.find("e", "m").vectors == [[0.5]]
    with pytest.raises(CallFailed, match="this call of 'm' is not recorded"):
        recorded.find("other", HI)


def test_lines_that_are_no_recorded_calls_are_reported_together(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_text('{"key": "k"}\n{"key": "k", "kind": "sing", "asked": 1, "reply": {}}\nno\n')
    with pytest.raises(InputError) as caught:
        RecordedCalls(path)
    assert [problem.line for problem in caught.value.problems] == [1, 2, 3]


@pytest.mark.parametrize("text", ["def answer(q):\n", '{"id": "c1", "input": {}}\n', "[1]\n"])
def test_calls_are_not_added_to_a_file_of_something_else(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mine"
    path.write_text(text)
    path.chmod(0o640)
    with pytest.raises(InputError, match="contains something other than recorded calls"):
        CallRecorder(path, str)
    assert (path.read_text(), path.stat().st_mode & 0o777) == (text, 0o640)
