"""Coding agents as targets of AgentV, by stand-ins that print recorded streams."""

import json

from evalwright.formats.loading import load_suite
from evalwright.model.trace import Trace
from evalwright.run.options import RunOptions
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run
from targets.agents import CLAUDE, CODEX, RESULT, called, lines, program


def ran(folder, target, *, allow=True):
    case = {"id": "a", "expected_outcome": "x", "input": "-x is what?"}
    case["execution"] = {"evaluators": [{"name": "c", "type": "latency", "threshold": 60000}]}
    (folder / "EVAL.yaml").write_text(json.dumps({"name": "shop", "evalcases": [case]}))
    (folder / "targets.yaml").write_text(json.dumps({"targets": [{"name": "default", **target}]}))
    suite = load_suite(folder / "EVAL.yaml", "agentv", options={"allow_tools": allow})
    reader, _ = open_run(run_suite(suite, RunOptions(out=folder / "runs")).run_dir)
    return next(reader.traces(Trace))


def agent(folder, stream):
    """An executable that prints a stream, and notes its arguments, its stdin and the files that it found."""
    (folder / "stream").write_bytes(stream)
    source = f"""
import os, sys
from pathlib import Path
folder = Path({str(folder)!r})
(folder / "words").write_text("\\n".join(sys.argv[1:]))
(folder / "stdin").write_text(sys.stdin.read())
(folder / "files").write_text("\\n".join(sorted(os.listdir())))
sys.stdout.write((folder / "stream").read_text())
"""
    return program(folder / "agent", source)


def test_an_agent_answers_with_its_calls_tokens_and_cost(tmp_path):
    (tmp_path / "template").mkdir()
    (tmp_path / "template/seed.txt").write_text("x")
    agent(tmp_path, lines(*CLAUDE, RESULT))
    target = {"provider": "claude-cli", "executable": "./agent", "model": "m1", "workspace_template": "template"}
    trace = ran(tmp_path, target)
    assert trace.error is None
    assert trace.output.final_answer == "Done."
    assert [call.name for call in trace.tool_calls] == ["Write"]
    assert (trace.metrics.token_input, trace.metrics.token_output, trace.metrics.cost_usd) == (110, 7, 0.25)
    assert called(tmp_path, "words")[:6] == ["-p", "--output-format", "stream-json", "--verbose", "--model", "m1"]
    assert "-x is what?" in (tmp_path / "stdin").read_text()
    assert called(tmp_path, "files") == ["seed.txt"]


def test_options_of_one_agent_reach_it(tmp_path):
    agent(tmp_path, lines(*CODEX))
    target = {"provider": "codex", "executable": "./agent", "model_reasoning_effort": "high"}
    assert ran(tmp_path, target, allow=False).output.final_answer == "Done.", "it has a sandbox of its own"
    assert called(tmp_path, "words")[-3:] == ["-c", "model_reasoning_effort=high", "-"]
    agent(tmp_path, b"It is.\n")
    (tmp_path / "here").mkdir()
    target = {"provider": "pi-cli", "executable": "./agent", "subprovider": "openai", "args": ["--x"], "cwd": "here"}
    trace = ran(tmp_path, target)
    assert trace.output.final_answer == "It is."
    assert trace.metrics.token_input is None
    assert called(tmp_path, "words") == ["--print", "--no-session", "--provider", "openai", "--x"]
    assert not (tmp_path / "here.beside").exists()


def test_an_agent_that_breaks_off_is_an_error_of_its_cell(tmp_path):
    agent(tmp_path, lines(*CLAUDE))
    trace = ran(tmp_path, {"provider": "claude", "executable": "./agent"})
    assert trace.error is not None
    assert "breaks off" in trace.error.message
