"""Folders of Claude Code: several sessions, their files, and their subagents."""

from __future__ import annotations

import json

import pytest

from evalwright.errors import InputError
from evalwright.importers.pricing import ListPricing
from evalwright.registry import load
from importers.transcripts import claude_session, imported, session_line, spoken, used, written
from warm import run


@pytest.mark.parametrize("linked", [True, False])
def test_each_subagent_without_a_name_begins_with_its_request(tmp_path, linked):
    def below(number: int, kind: str, text: str, parent: int | None) -> dict:
        parent_id = f"u{parent}" if linked and parent is not None else None
        return {**session_line(number, kind, text), "isSidechain": True, "parentUuid": parent_id}

    lines = [
        session_line(0, "user", "go"),
        below(1, "user", "look", None), below(2, "assistant", "Seen.", 1), below(3, "user", "seek", None),
        below(4, "assistant", "Found.", 3), below(5, "assistant", "And that.", 4),
    ]  # fmt: skip
    if linked:
        lines.insert(4, lines.pop(2))  # the two run at the same time
    _, trace, _ = claude_session(tmp_path, lines)
    agents = {span["name"]: span["output"]["messages"] for span in trace["spans"] if span["kind"] == "agent"}
    assert {name: [said["content"] for said in its] for name, its in agents.items()} == {
        "subagent": ["look", "Seen."],
        "subagent 2": ["seek", "Found.", "And that."],
    }


SUBAGENTS = {
    "in a file beside it": "subagents/agent-a7.jsonl",
    "of its own folder": "session/subagents/agent-a7.jsonl",
    "of a workflow": "session/subagents/workflows/wf/agent-a7.jsonl",
    "of older versions": "agent-a7.jsonl",
}


@pytest.mark.parametrize("where", ["in the session", *SUBAGENTS])
def test_a_subagent_is_a_span_and_its_tokens_count(tmp_path, where):
    main = [session_line(0, "user", "go"), session_line(1, "assistant", "Done.", "m1", message=used(1, 1))]
    below = [
        {**session_line(2, "user", "look"), "isSidechain": True, "agentId": "a7", "parentUuid": None},
        {**session_line(3, "assistant", "Seen.", "s1", message=used(40, 4)), "isSidechain": True, "agentId": "a7"},
    ]
    if where == "in the session":
        main += below
    else:
        written(tmp_path / SUBAGENTS[where], below)
    _, trace, _ = claude_session(tmp_path, main)
    assert [content for _, content, _ in spoken(trace)] == ["go", "Done."]
    (agent,) = [span for span in trace["spans"] if span["kind"] == "agent"]
    assert agent["name"] == "a7"
    assert [message["content"] for message in agent["output"]["messages"]] == ["look", "Seen."]
    assert trace["metrics"]["token_input"] == 41


def test_sessions_whose_lines_are_mixed_are_cases_of_their_own(tmp_path):
    lines = [
        session_line(0, "user", "one"),
        {**session_line(0, "user", "two"), "sessionId": "other", "uuid": "o0"},
        session_line(1, "assistant", "1", "m1"),
        {**session_line(1, "assistant", "2", "m2"), "sessionId": "other", "uuid": "o1"},
    ]
    first = written(tmp_path / "first.jsonl", [{**line, "sessionId": "before"} for line in lines[::2]])
    pricing = ListPricing(lambda *_: 1.0, "a table")
    files = [first, written(tmp_path / "log.jsonl", lines)]
    done = load("importers", "claude-code").import_files(files, tmp_path / "out", None, pricing)
    before, *cases = map(json.loads, (tmp_path / "out" / "cases.jsonl").read_text().splitlines())
    assert (before["id"], done.traces) == ("before", 3)
    assert [note for note in done.notes if "tokens" in note] == ["3 recordings without tokens: the cost is unknown"]
    assert {case["id"]: case["embedded_trace"]["output"]["final_answer"] for case in cases} == {"s": "1", "other": "2"}


def test_a_folder_of_projects_is_read_whatever_else_it_holds(tmp_path):
    """As Claude Code leaves it: indices, journals of workflows, sessions without messages, subagents left behind."""
    folder = tmp_path / "projects"
    session = [session_line(0, "user", "go"), session_line(1, "assistant", "Done.", "m1")]
    below = [{**line, "isSidechain": True, "agentId": "a7", "uuid": f"b{line['uuid']}"} for line in session]
    written(folder / "s.jsonl", session)
    written(folder / "s/subagents/workflows/wf/agent-a7.jsonl", [{**line, "sessionId": "s#agent-a7"} for line in below])
    written(folder / "s/subagents/workflows/wf/journal.jsonl", [{"type": "result", "agentId": "a7", "result": "x"}])
    written(folder / "agent-a8.jsonl", [{**line, "sessionId": "gone"} for line in below])
    written(folder / "idle.jsonl", [{"type": "queue-operation", "sessionId": "idle", "operation": "enqueue"}])
    (folder / "sessions-index.json").write_text('{"version": 1, "entries": []}')
    done = run(["-m", "evalwright", "import", "projects", "--out", "out"], cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 files of other formats in the folder left out" in done.stdout
    assert "lost: files of subagents without the file of their session: 1" in done.stdout
    assert "lost: files without messages: 1" in done.stdout
    (case,) = map(json.loads, (tmp_path / "out" / "cases.jsonl").read_text().splitlines())
    assert [span["name"] for span in case["embedded_trace"]["spans"] if span["kind"] == "agent"] == ["a7"]


def test_files_without_any_message_are_a_mistake(tmp_path):
    below = {**session_line(0, "user", "look"), "isSidechain": True}
    agent = written(tmp_path / "agent-a7.jsonl", [below])
    idle = written(tmp_path / "idle.jsonl", [{"type": "queue-operation", "sessionId": "idle"}])
    with pytest.raises(InputError, match="is of a subagent: import the file of its session"):
        imported(tmp_path, "claude-code", agent)
    with pytest.raises(InputError, match="has no messages to import"):
        imported(tmp_path, "claude-code", idle)


def test_the_subagents_of_each_session_in_a_file_are_its_own(tmp_path):
    def session(name):
        lines = [session_line(0, "user", "go"), session_line(1, "assistant", "Done.", "m1")]
        return [{**line, "sessionId": name, "uuid": f"{name}{line['uuid']}", "parentUuid": None} for line in lines]

    for name in ("log", "other"):
        about = {"isSidechain": True, "agentId": f"of {name}"}
        below = [{**line, **about, "uuid": f"b{line['uuid']}"} for line in session(name)]
        written(tmp_path / "log" / "subagents" / f"agent-{name}.jsonl", below)
    file = written(tmp_path / "log.jsonl", [*session("log"), *session("other")])
    _, cases = imported(tmp_path, "claude-code", file)
    named = {case["id"]: case["embedded_trace"]["spans"][-1]["name"] for case in cases}
    assert named == {"log": "of log", "other": "of other"}


def test_each_of_several_sessions_has_only_its_own_subagents_of_a_folder_beside_them(tmp_path):
    def session(name: str) -> list:
        lines = [session_line(0, "user", name), session_line(1, "assistant", name, f"m{name}", message=used(1, 1))]
        return [{**line, "sessionId": name} for line in lines]

    files = [written(tmp_path / f"{name}.jsonl", session(name)) for name in "abc"]
    for name in ("a", "b", "gone"):
        about = {"isSidechain": True, "agentId": f"of {name}"}
        below = [{**line, **about, "uuid": f"below {line['uuid']}"} for line in session(name)]
        first = {"type": "queue-operation", "operation": "enqueue", "sessionId": name}
        written(tmp_path / "subagents" / f"agent-{name}.jsonl", [first, *below])
    _, cases = imported(tmp_path, "claude-code", *files)
    read = {case["id"]: case["embedded_trace"]["metrics"]["token_input"] for case in cases}
    assert read == {"a": 2, "b": 2, "c": 1}
