"""Coding agents whose output has more than one session, as they go on by themselves or call each other."""

import pytest

from targets.agents import CLAUDE, RESULT, STREAMS, answer, lines

pytestmark = pytest.mark.usefixtures("own_home")


def again(stream, names, tool_id):
    """The same stream of another session."""
    text = lines(*stream).decode()
    for key in names:
        text = text.replace(f'"{key}"', f'"{key}2"')
    return text.replace(f'"{tool_id}"', '"again"').encode()


@pytest.mark.parametrize(
    ("agent", "names", "tool_id", "tokens"),
    [
        ("claude", ["s", "a", "b"], "t1", (220, 14)),
        ("codex", ["x"], "i1", (200, 14)),
        ("gemini", ["g"], "c1", (200, 14)),
        ("copilot", [], "c1", (None, None)),
    ],
)
def test_all_sessions_of_a_call_count_and_the_last_one_answers(tmp_path, agent, names, tool_id, tokens):
    _, stream = STREAMS[agent]
    last = again(stream, names, tool_id).replace(b"Done.", b"Done again.").replace(b'"ne."', b'"ne again."')
    got = answer(agent, lines(*stream) + last, tmp_path)
    assert got.error is None
    assert got.output.final_answer == "Done again."
    assert len({call.id for call in got.tool_calls}) == len(got.tool_calls) == len(got.tool_results) == 2
    assert [message.content for message in got.messages if message.role == "assistant"].count("Done.") == 1
    assert (got.metrics.token_input, got.metrics.token_output) == tokens
    assert got.metrics.cost_usd == (0.5 if agent == "claude" else None)
    assert any("2 sessions in its output" in warning for warning in got.extra["warnings"])
    assert len(got.extra["earlier_sessions"]) == 1


def test_the_spans_of_all_sessions_of_a_call_are_kept(tmp_path):
    def session(name):
        message = {"content": [{"type": "tool_use", "id": f"t{name}", "name": "ls", "input": {}}]}
        about = {"session_id": name, "timestamp": "2026-03-04T09:00:00Z"}
        return [{"type": "assistant", "message": {**message, "id": "same"}, **about}, {**RESULT, "session_id": name}]

    got = answer("claude", lines(*session("1"), *session("2")), tmp_path)
    ids = [(span.id, span.parent_id) for span in got.spans]
    assert ids == [("same", None), ("t1", "same"), ("2/same", None), ("2/t2", "2/same")]


def test_an_earlier_session_that_failed_is_a_warning(tmp_path):
    failed = {**RESULT, "session_id": "0", "is_error": True, "subtype": "error_during_execution", "errors": ["boom"]}
    got = answer("claude", lines(failed, *CLAUDE, RESULT), tmp_path)
    assert got.error is None
    assert "its session 0 ended with an error: boom" in got.extra["warnings"]


@pytest.mark.parametrize(("agent", "kept"), [("claude", 2), ("codex", 2), ("gemini", 1), ("copilot", 1)])
def test_a_session_that_breaks_off_after_one_that_ended_is_an_error(tmp_path, agent, kept):
    _, stream = STREAMS[agent]
    got = answer(agent, lines(*stream) + lines(*stream[:kept]), tmp_path)
    assert got.error is not None
    assert "breaks off before its end" in got.error.message
