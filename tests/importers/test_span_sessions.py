"""Traces of one session are one group: turns of a conversation are not independent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from importers.platforms import OBSERVATIONS
from importers.span_imports import cases, imported
from importers.spans import exported, span
from importers.transcripts import imported as imported_as
from importers.transcripts import written


def turn(number: int, attributes: dict[str, Any], *, inner: bool = False) -> dict[str, Any]:
    """A trace of its own, whose root or inner span has the attributes."""
    root = span(1, "ask", {"output.value": "Hi", **({} if inner else attributes)})
    below = span(2, "chat", attributes if inner else {}, below=1)
    return exported(*({**one, "traceId": f"{number:032x}"} for one in (root, below)))


@pytest.mark.parametrize(
    "attributes",
    [
        {"session.id": "s"},
        {"gen_ai.conversation.id": "s"},
        {"langfuse.session.id": "s"},
        {"ai.telemetry.metadata.sessionId": "s"},
        {"metadata": json.dumps({"thread_id": "s"})},
    ],
)
@pytest.mark.parametrize("inner", [False, True])
def test_several_traces_of_a_session_are_a_group(tmp_path: Path, attributes: dict[str, Any], inner: bool) -> None:
    turns = [turn(1, attributes, inner=inner), turn(2, attributes, inner=inner), turn(3, {"session.id": "other"})]
    notes = imported(tmp_path, *turns).notes
    assert [case.get("group") for case in cases(tmp_path)] == ["s", "s", None]
    assert [note for note in notes if "session" in note] == [
        "2 traces are turns of 1 session: a session is one group, a unit of all statistics"
    ]


def test_a_session_that_has_all_traces_says_little(tmp_path: Path) -> None:
    [note] = (
        note for note in imported(tmp_path, *(turn(n, {"session.id": "s"}) for n in (1, 2))).notes if "turn" in note
    )
    assert note.endswith("; one unit says little: if the traces are independent, delete 'group' in cases.jsonl")


def test_an_agent_inside_may_have_a_session_of_its_own(tmp_path: Path) -> None:
    def nested(number: int) -> dict[str, Any]:
        spans = (span(2, "chat", {"gen_ai.conversation.id": f"own-{number}"}, below=1),
                 span(1, "ask", {"output.value": "Hi", "session.id": "s"}))  # fmt: skip
        return exported(*({**one, "traceId": f"{number:032x}"} for one in spans))

    imported(tmp_path, nested(1), nested(2))
    assert [case.get("group") for case in cases(tmp_path)] == ["s", "s"]


def test_one_trace_of_a_session_is_no_group(tmp_path: Path) -> None:
    notes = imported(tmp_path, turn(1, {"session.id": "s"})).notes
    assert "group" not in cases(tmp_path)[0]
    assert not any("session" in note for note in notes)


def test_traces_of_a_session_of_langfuse_are_a_group(tmp_path: Path) -> None:
    traces = [
        {"id": id, "name": "shop", "sessionId": "s", "observations": [{**one, "traceId": id} for one in OBSERVATIONS]}
        for id in ("a", "b")
    ]
    _, found = imported_as(tmp_path, "langfuse", written(tmp_path / "x.jsonl", traces))
    assert [case.get("group") for case in found] == ["s", "s"]
