"""Answers of the commands and functions that AgentEvals files name as targets."""

import json

import pytest

from evalwright.model.trace import Trace
from evalwright.run.stored_run import open_run
from formats.agentv.projects import agent, case, results, run, verdicts, with_block

pytestmark = pytest.mark.usefixtures("untouched_environment")


def test_a_command_answers_in_a_file(project):
    agent(
        project,
        "open(sys.argv[2], 'w').write(json.dumps({'text': sys.argv[3], 'token_usage': {'input': 3, 'output': 4}}))",
    )
    outcome = run(project, case([{"name": "t", "type": "token_usage", "max_total": 7}], input="it's $HOME"))
    reader, _ = open_run(outcome.run_dir)
    (trace,) = reader.traces(Trace)
    assert (trace.output.final_answer, trace.metrics.token_output) == ("it's $HOME", 4)
    assert outcome.exit_code == 0


def test_a_command_that_fails_is_the_error_of_its_case(project):
    agent(project, "sys.exit('broken')")
    outcome = run(project, case([{"name": "t", "type": "cost", "budget": 1}]))
    assert "broken (exit code 1)" in verdicts(outcome)["a"].error.message


def test_a_command_reads_its_prompt_from_a_file(project):
    target = {"name": "default", "provider": "cli", "command": "cat {PROMPT_FILE} > {OUTPUT_FILE}; rm {PROMPT_FILE}"}
    (project / "targets.yaml").write_text(json.dumps({"targets": [target]}))
    outcome = run(project, case([{"name": "l", "type": "latency", "threshold": 60000}], input="é" * 200_000))
    (trace,) = open_run(outcome.run_dir)[0].traces(Trace)
    assert trace.output.final_answer == "é" * 200_000


def test_keys_of_env_files_are_used_and_never_stored(project):
    (project / ".env").write_text("SHOP_KEY='s3cret-value'\n")
    target = "{name: default, provider: openai, model: m, api_key: '${{ SHOP_KEY }}'}"
    (project / "targets.yaml").write_text(f"targets: [{target}, {{name: plain, provider: mock}}]\n")
    outcome = run(project, case([{"name": "c", "type": "latency", "threshold": 60000}]), target="plain")
    stored = b"".join(path.read_bytes() for path in outcome.run_dir.rglob("*") if path.is_file())
    assert b"s3cret-value" not in stored


def test_a_command_gets_the_paths_of_images(project):
    (project / "cat.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    target = {"name": "default", "provider": "cli", "command_template": "echo {PROMPT} {FILES}"}
    (project / "targets.yaml").write_text(json.dumps({"targets": [target]}))
    outcome = run(project, with_block(type="image", value="cat.png"))
    (trace,) = open_run(outcome.run_dir)[0].traces(Trace)
    assert trace.output.final_answer == f'<image path="cat.png"> {project / "cat.png"}'


REPORTED = [
    ({"text": "x", "cost_usd": -1}, "x", ["cost_usd: -1 is ignored: it is negative or infinite"]),
    ({"text": "x", "duration_ms": -1, "token_usage": {"input": -5, "output": 2}}, "x", ["duration_ms: -1 is ignored"]),
    ({"output_messages": [1]}, '{"output_messages": [1]}', []),
    ({"output_messages": {"a": 1}}, '{"output_messages": {"a": 1}}', []),
    ({"output_messages": [{"role": 5}]}, '{"output_messages": [{"role": 5}]}', []),
    ({"output": [{"role": "assistant", "content": "new"}], "output_messages": [], "text": "old"}, "new", []),
    ({"output": [], "text": "x"}, "x", []),
    ({"output": [{"role": "assistant", "content": "said before"}, {"role": "assistant", "content": ""}]}, "", []),
    ({"output": [{"role": "assistant", "content": "kept"}, {"role": "assistant", "content": None}]}, "kept", []),
    ({"output": [{"role": "assistant", "content": [{"type": "text", "text": t} for t in "ab"]}]}, "a\nb", []),
    ({"output": [{"role": "assistant", "content": [{"n": 1}]}]}, '[{"n":1}]', []),
    ({"output": [7], "text": "x"}, '{"output": [7], "text": "x"}', []),
    ({"output": "mine", "text": "x"}, "x", []),
    ({"text": "x", "cost_usd": float("nan")}, '{"text": "x", "cost_usd": NaN}', []),
]


@pytest.mark.parametrize(("reported", "answer", "warned"), REPORTED)
def test_what_cannot_be_of_a_report_is_not_believed(project, reported, answer, warned):
    agent(project, f"open(sys.argv[2], 'w').write({json.dumps(reported)!r})")
    outcome = run(project, case([{"name": "l", "type": "latency", "threshold": 60000}]))
    (trace,) = open_run(outcome.run_dir)[0].traces(Trace)
    told = trace.extra.get("warnings", [])
    assert (trace.output.final_answer, trace.metrics.cost_usd, trace.metrics.token_input) == (answer, None, None)
    assert len(told) == len(warned)
    assert all(text in found for text, found in zip(warned, told, strict=True))


@pytest.mark.parametrize("command", ["printf %s, {FILES}", ["printf", "%s,", "{FILES}"]])
def test_each_file_stands_in_the_command_as_its_format_says(project, command):
    (project / "a b.txt").write_text("x")
    key = "command" if isinstance(command, list) else "command_template"
    target = {"name": "default", "provider": "cli", key: command, "files_format": "--file {path} {basename}"}
    (project / "targets.yaml").write_text(json.dumps({"targets": [target]}))
    outcome = run(project, with_block(type="file", value="a b.txt"))
    (trace,) = open_run(outcome.run_dir)[0].traces(Trace)
    assert trace.output.final_answer == f"--file,{project / 'a b.txt'},a b.txt,"


def test_a_command_in_a_folder_that_is_not_there_says_so(project):
    target = {"name": "default", "provider": "cli", "command_template": "true", "cwd": "nowhere"}
    (project / "targets.yaml").write_text(json.dumps({"targets": [target]}))
    assert "nowhere of the command does not exist" in verdicts(run(project))["greets"].error.message


def test_a_function_that_returns_nothing_has_not_answered(project):
    (project / "silent.py").write_text("def answer(asked):\n    pass\n")
    (project / "targets.yaml").write_text("targets: [{name: default, provider: python, callable: 'silent:answer'}]\n")
    assert "answer returned nothing" in verdicts(run(project))["greets"].error.message


def test_a_command_may_be_a_text_for_the_shell(project):
    target = {"name": "default", "provider": "cli", "command": "echo {EVAL_ID} | tr a-z A-Z"}
    (project / "targets.yaml").write_text(json.dumps({"targets": [target]}))
    (trace,) = open_run(run(project).run_dir)[0].traces(Trace)
    assert trace.output.final_answer == "GREETS"


MARKED = {"tool": "search", "input": {}, "start_time": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize("call", [{**MARKED, "id": [1]}, {**MARKED, "end_time": "2026-01-01T00:00:01"}])
def test_calls_with_odd_ids_and_times_are_calls_all_the_same(project, call):
    message = {"output_messages": [{"role": "assistant", "content": "x", "tool_calls": [call]}]}
    agent(project, f"open(sys.argv[2], 'w').write({json.dumps(message)!r})")
    outcome = run(project, case([{"name": "t", "type": "tool_trajectory", "minimums": {"search": 1}}]))
    assert results(outcome)["a", "t"].score == 1


def test_every_call_and_result_of_an_answer_is_in_its_trace(project):
    openai = {"id": "1", "type": "function", "function": {"name": "search", "arguments": '{"q": "x"}'}}
    messages = [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [openai, {"tool": "read", "input": "no JSON", "output": [1]}],
        },
        {"role": "tool", "tool_call_id": "1", "content": "found"},
        {"role": "assistant", "content": [{"type": "text", "text": "do"}, {"type": "text", "value": "ne"}]},
    ]
    agent(project, f"open(sys.argv[2], 'w').write({json.dumps({'output_messages': messages})!r})")
    outcome = run(project, case([{"name": "l", "type": "latency", "threshold": 60000}]))
    (trace,) = open_run(outcome.run_dir)[0].traces(Trace)
    assert [(call.name, call.arguments) for call in trace.tool_calls] == [
        ("search", {"q": "x"}),
        ("read", {"_raw": "no JSON"}),
    ]
    assert [(result.name, result.content) for result in trace.tool_results] == [("read", "[1]"), ("search", "found")]
    assert [message.role for message in trace.messages[-5:]] == ["assistant", "assistant", "tool", "tool", "assistant"]
    assert trace.messages[-1].content == "do\nne"
