"""`evalwright import` finds out from their content what files are, and says what it did not find."""

from __future__ import annotations

import json
import tracemalloc
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from evalwright.cli.import_ import command
from evalwright.errors import InputError
from evalwright.importers.detection import detected, flaw_in
from evalwright.importers.file_heads import head_of
from evalwright.importers.format_marks import FORMAT_MARKS
from evalwright.registry import knows
from importers.transcripts import rollout_line, said, session_line, written

SAMPLES: dict[str, object] = {
    "inspect": {"version": 2, "status": "success", "eval": {}, "plan": {}},
    "atif": {"schema_version": "ATIF-v1.2", "steps": []},
    "promptfoo-results": {"evalId": "e", "results": {"results": []}},
    "swe-agent": {"trajectory": [], "info": {"model_stats": {}}},
    "mini-swe-agent": {"trajectory_format": "mini-swe-agent-1.1", "messages": [], "info": {"model_stats": {}}},
    "tau2": {"info": {"agent_info": {}, "environment_info": {}}, "tasks": [], "simulations": []},
    "agentdojo": {"suite_name": "s", "pipeline_name": "p", "user_task_id": "u", "messages": []},
    "openhands": [{"id": "e", "timestamp": "t", "source": "user", "kind": "MessageEvent", "llm_message": {}}],
    "braintrust": [{"span_id": "s", "root_span_id": "r", "span_attributes": {}}],
    "openai-agents": [{"object": "trace", "id": "trace_1", "workflow_name": "w"}],
    "otlp-json": {"resourceSpans": []},
    "openinference": [{"context": {"trace_id": "t", "span_id": "s"}, "parent_id": None, "attributes": {}}],
    "skill-benchmark": {"run_summary": {}, "runs": []},
    "codex": [rollout_line(0, "response_item", said("user", "q"))],
    "gemini": [{"type": "init", "session_id": "x"}, {"type": "message", "role": "user", "content": "q"}],
    "copilot": [{"type": "assistant.message", "data": {}}],
    "opencode": [{"type": "text", "sessionID": "s", "part": {"type": "text", "text": "a"}}],
    "cursor": [{"type": "system", "subtype": "init", "session_id": "s", "permissionMode": "default"}],
    "claude-code": [session_line(0, "user", "q")],
    "lm-eval": [{"doc_id": 0, "resps": []}],
    "openai-responses": {"object": "response", "output": []},
    "pydantic-ai": [{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "q"}]}],
    "pydantic-evals": {"cases": [{"inputs": "q"}]},
    "anthropic-messages": {"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]},
    "openai-messages": {"messages": [{"role": "user", "content": "q"}]},
    "deepeval": [{"input": "q", "actual_output": "a"}],
}


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments], standalone_mode=False)


OTLP = b'\n@\n\x18\n\x16\n\x0cservice.name\x12\x06\n\x04shop\x12$\x12"\n\x10' + bytes(range(200, 216))
"""The beginning of spans in OTLP's binary form."""


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("form", ["lines", "document"])
def test_a_format_is_told_by_its_content_whatever_the_name(tmp_path, name, form):
    sample = SAMPLES[name]
    lines = sample if isinstance(sample, list) else [sample]
    file = tmp_path / "anything.log"
    if form == "lines":
        written(file, lines)
    else:
        file.write_text(json.dumps(sample, indent=2))
    assert detected(head_of(file)) == name


def test_columns_of_spans_are_told_like_spans(tmp_path):
    row = {"context.trace_id": "t", "context.span_id": "s", "parent_id": None, "attributes.llm.model_name": "m"}
    assert detected(head_of(written(tmp_path / "spans.jsonl", [row]))) == "openinference"


def test_a_chat_completion_is_told_without_its_request(tmp_path):
    file = written(tmp_path / "x.jsonl", [{"object": "chat.completion", "choices": []}])
    assert detected(head_of(file)) == "openai-messages"


@pytest.mark.parametrize("format", [None, "anthropic-messages", "openai-responses"])
def test_a_list_of_messages_is_of_chat_completions_unless_the_user_says_otherwise(tmp_path, format):
    file = tmp_path / "x.json"
    file.write_text(json.dumps([{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]))
    done = run(file, *(["--format", format] if format else []), "--out", tmp_path / "out")
    assert done.exception is None, done.exception
    assert "1 case, 1 recording" in done.output
    assert ("format: openai-messages (detected)" in done.output) == (format is None)


@pytest.mark.parametrize("key", ["role", "type"])
def test_records_with_a_role_or_type_that_say_nothing_are_no_messages(tmp_path, key):
    file = tmp_path / "x.json"
    file.write_text(json.dumps([{key: "system", "input": "q", "actual_output": "a"}]))
    assert detected(head_of(file)) == "deepeval"


def test_spans_as_phoenix_answers_with_them_are_told(tmp_path):
    answer = {"data": [{"context": {"trace_id": "t", "span_id": "s"}, "parent_id": None}], "next_cursor": None}
    assert detected(head_of(written(tmp_path / "spans.json", [answer]))) == "openinference"


def test_each_format_that_is_told_can_be_imported():
    assert [name for name, _, _ in FORMAT_MARKS if not knows("importers", name)] == []


def test_the_format_is_said_first_and_the_next_command_last(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = written(tmp_path / "s.jsonl", [session_line(0, "user", "q"), session_line(1, "assistant", "a", "m")])
    done = run(file)
    assert done.exception is None, done.exception
    assert done.output.splitlines()[0] == "format: claude-code (detected)"
    assert done.output.splitlines()[-1] == "Next: evalwright run s-suite/eval.yaml"


def test_a_folder_is_searched_and_what_is_of_no_format_is_left_out(tmp_path):
    for name in ("b", "a"):
        written(
            tmp_path / "in" / name / "s.jsonl", [session_line(0, "user", name), session_line(1, "assistant", name, "m")]
        )
    (tmp_path / "in" / "package.json").write_text("{}")
    done = run(tmp_path / "in", "--out", tmp_path / "out")
    assert done.exception is None, done.exception
    assert "1 file of other formats in the folder left out" in done.output
    assert "1 case, 2 recordings, at most 2 trials each" in done.output
    (tmp_path / "in" / "cut.json").write_text('{"messages": [')
    done = run(tmp_path / "in", "--out", tmp_path / "again")
    assert "2 files of other formats in the folder left out" in done.output
    assert "cut.json  is not valid JSON" in done.output


@pytest.mark.parametrize(
    ("given", "text", "facts"),
    [
        ([], '{"rows": []}', ["x.json", "claude-code", "atif"]),
        ([], "", ["x.json"]),
        (["--format", "codex"], json.dumps({"messages": [{"role": "user"}]}), ["openai-messages", "codex"]),
        (
            ["--format", "anthropic-messages"],
            json.dumps({"messages": [{"role": "tool", "content": "q"}]}),
            ["openai-messages"],
        ),
        ([], json.dumps({"evals": [{"prompt": "q"}]}), ["evalwright run", "x.json"]),
        ([], json.dumps({"eval": {}, "systems": [], "dataset": {}}), ["evalwright run", "native"]),
        (
            [],
            json.dumps({"id": "a", "messages": [{"role": "user", "content": "q"}], "expected": {"contains": ["x"]}}),
            ["evalwright run", "northstar"],
        ),
        (["--format", "claude-code"], b"\xff{}", ["x.json", "UTF-8"]),
        ([], '{"messages": []}'.encode("utf-16"), ["x.json", "is not UTF-8 text", "begins as UTF-16 does"]),
        ([], OTLP, ["x.json", "is not UTF-8 text", "export them as OTLP/JSON"]),
        (["--format", "otlp-json"], OTLP, ["x.json", "is not UTF-8 text", "export them as OTLP/JSON"]),
        (["--format", "openai-messages"], b"{\0}", ["x.json", "is not UTF-8 text"]),
        ([], '{"messages": []}'.encode("utf-16-le"), ["x.json", "is not UTF-8 text"]),
        ([], '{\n"a": 1,\n"messages": [}', ["x.json:3", "is not valid JSON"]),
        ([], '{"messages": [', ["x.json", "is not valid JSON", "truncated"]),
        ([], "[" * 100_000, ["x.json", "nested too deeply"]),
    ],
)
def test_what_is_no_recording_is_refused_by_what_it_is(tmp_path, given, text, facts):
    file = tmp_path / "x.json"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    done = run(file, *given, "--out", tmp_path / "out")
    assert isinstance(done.exception, InputError)
    assert [fact for fact in facts if fact not in str(done.exception)] == []
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ('{"op_name": "x", "inputs": {}}\n' * 2, "in objects with the keys op_name, inputs;"),
        ("city,country\nBonn,Germany\n", "in a table with the columns city, country;"),
        ('["a"]', "recognised; pass"),
    ],
)
def test_the_error_for_an_unknown_format_says_what_is_in_the_file(tmp_path, text, seen):
    file = tmp_path / "x.log"
    file.write_text(text)
    assert seen in str(run(file, "--out", tmp_path / "out").exception)


@pytest.mark.parametrize("text", ["just text", "12"])
def test_a_text_or_a_number_in_yaml_is_no_recording(tmp_path, text):
    file = tmp_path / "x.yaml"
    file.write_text(text)
    assert "x.yaml  no known format was recognised" in str(run(file, "--out", tmp_path / "out").exception)


TEXTS = [{"role": "user", "content": "q"}, {"role": "assistant", "content": [{"type": "text", "text": "R"}]}]
RESPONSE = {"type": "message", "role": "assistant", "content": TEXTS[1]["content"], "usage": {"input_tokens": 5}}


@pytest.mark.parametrize(
    ("record", "given"),
    [
        ({"messages": TEXTS[:1], "response": RESPONSE}, []),
        ({"messages": TEXTS[:1], "response": RESPONSE}, ["--format", "anthropic-messages"]),
        ({"system": "s", "messages": TEXTS, "usage": {"input_tokens": 5}}, ["--format", "anthropic-messages"]),
        ({"messages": [*TEXTS[:1], {"role": "assistant", "content": [
            {"type": "server_tool_use", "id": "t", "name": "web_search", "input": {}},
            {"type": "web_search_tool_result", "tool_use_id": "t", "content": "x"},
            {"type": "text", "text": "R"}]}], "usage": {"input_tokens": 5}}, []),
    ],
)  # fmt: skip
def test_conversations_of_texts_alone_keep_their_answer_in_the_form_that_is_named(tmp_path, record, given):
    done = run(written(tmp_path / "x.jsonl", [record]), *given, "--out", tmp_path / "out")
    assert done.exception is None
    trace = json.loads((tmp_path / "out" / "cases.jsonl").read_text())["embedded_trace"]
    assert trace["output"]["final_answer"] == "R"
    assert trace["metrics"]["token_input"] == 5


def test_files_of_several_formats_are_named(tmp_path):
    one = written(tmp_path / "a.jsonl", SAMPLES["codex"])
    other = written(tmp_path / "b.jsonl", SAMPLES["claude-code"])
    done = run(one, other)
    assert isinstance(done.exception, InputError)
    assert {str(problem.file): problem.message for problem in done.exception.problems} == {
        str(one): "looks like codex",
        str(other): "looks like claude-code",
    }


def test_a_large_document_is_told_without_being_held(tmp_path):
    """It may be larger than the memory: what is needed is at its beginning."""
    one = {"id": 1, "epoch": 1, "messages": [{"role": "user", "content": "q" * 1000}] * 50}
    text = json.dumps({"version": 2, "status": "success", "eval": {}, "plan": {}, "samples": [one] * 400})
    (tmp_path / "log.json").write_text(text)
    with most_held() as held:
        head = head_of(tmp_path / "log.json")
    assert (detected(head), len(head.whole["samples"])) == ("inspect", 20)
    assert held[0] < len(text) / 5


def test_a_long_line_that_is_no_record_is_not_held(tmp_path):
    text = "word " * 1_000_000
    (tmp_path / "notes.txt").write_text(text)
    with most_held() as held:
        assert detected(head_of(tmp_path / "notes.txt")) is None
        assert flaw_in(tmp_path / "notes.txt") is None
    assert held[0] < len(text) / 5


@contextmanager
def most_held():
    """The greatest number of bytes that the block held at once, when it has ended."""
    seen = []
    tracemalloc.start()
    yield seen
    seen.append(tracemalloc.get_traced_memory()[1])
    tracemalloc.stop()
