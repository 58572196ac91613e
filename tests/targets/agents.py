"""Stand-ins for coding agents: programs that print a recorded stream. No real agent is ever called in tests."""

import asyncio
import json
import sys
from pathlib import Path

from evalwright.model.plan import Variant
from evalwright.model.snapshot import Case
from evalwright.registry import load

CASE = Case(id="c1", input={"prompt": "-x is what?\nSay it."})
MARK = "EVALWRIGHT_TEST_OF_AGENTS"
"""In each login of `own_home`."""
CLAUDE = [
    {"type": "system", "subtype": "init", "session_id": "s", "model": "m1"},
    {
        "type": "assistant",
        "session_id": "s",
        "message": {
            "id": "a",
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t1", "name": "Write", "input": {"file_path": "out.txt"}}],
            "usage": {
                "input_tokens": 3,
                "cache_read_input_tokens": 90,
                "cache_creation_input_tokens": 7,
                "output_tokens": 5,
            },
        },
    },
    {
        "type": "user",
        "session_id": "s",
        "message": {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "no such disk", "is_error": True}],
        },
    },
    {
        "type": "assistant",
        "session_id": "s",
        "message": {
            "id": "b",
            "role": "assistant",
            "content": [{"type": "text", "text": "Done."}],
            "usage": {"input_tokens": 10, "output_tokens": 2},
        },
    },
]
USAGE = {"input_tokens": 13, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 7, "output_tokens": 7}
RESULT = {
    "type": "result", "subtype": "success", "is_error": False, "result": "Done.", "session_id": "s",
    "total_cost_usd": 0.25, "num_turns": 2, "usage": USAGE,
}  # fmt: skip
CODEX = [
    {"type": "thread.started", "thread_id": "x"},
    {"type": "turn.started"},
    {
        "type": "item.completed",
        "item": {
            "id": "i1",
            "type": "command_execution",
            "command": "ls",
            "aggregated_output": "a",
            "exit_code": 0,
            "status": "completed",
        },
    },
    {"type": "item.completed", "item": {"id": "i2", "type": "agent_message", "text": "Done."}},
    {"type": "turn.completed", "usage": {"input_tokens": 100, "cached_input_tokens": 90, "output_tokens": 7}},
]
GEMINI = [
    {"type": "init", "session_id": "g", "model": "gemini-x"},
    {"type": "message", "role": "user", "content": "Do it."},
    {"type": "tool_use", "tool_name": "ls", "tool_id": "c1", "parameters": {"path": "."}},
    {"type": "tool_result", "tool_id": "c1", "status": "success", "output": "a"},
    {"type": "message", "role": "assistant", "content": "Do", "delta": True},
    {"type": "message", "role": "assistant", "content": "ne.", "delta": True},
    {"type": "result", "status": "success", "stats": {"input_tokens": 100, "cached": 90, "output_tokens": 7}},
]
COPILOT = [
    {"type": "message", "role": "assistant", "content": "Looking."},
    {"type": "tool_use", "name": "ls", "id": "c1", "input": {}},
    {"type": "tool_result", "id": "c1", "content": "a"},
    {"type": "message", "role": "assistant", "content": "Done."},
    {"type": "result", "exitCode": 0},
]
STREAMS = {
    "claude": ({}, [*CLAUDE, RESULT]),
    "codex": ({}, CODEX),
    "gemini": ({}, GEMINI),
    "copilot": ({}, COPILOT),
    "command": ({"output": "codex"}, CODEX),
}


def lines(*records):
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def printing(stream: bytes, folder: Path, *, then: str = "") -> list[str]:
    """A command that prints a stream, notes how it was called in `call`, and goes on with `then` (of a shell)."""
    (folder / "stream").write_bytes(stream)
    note = f'printf "%s\\n" "$@" > {folder}/words; cat > {folder}/stdin; env > {folder}/env; pwd > {folder}/cwd; '
    note += f"find . -type f | sort > {folder}/files; "
    return ["/bin/sh", "-c", f"{note} cat {folder}/stream; {then}", "agent"]


def called(folder: Path, what: str) -> list[str]:
    return (folder / what).read_text().splitlines()


def program(path: Path, source: str) -> Path:
    """An executable Python program, wherever Python is: a first line of it could not hold blanks."""
    path.write_text(f"#!/bin/sh\n'''exec' '{sys.executable}' \"$0\" \"$@\"\n' '''\n{source}")
    path.chmod(0o700)
    return path


def target(agent, *, seconds=20.0, **config):
    settings = {"agent": agent, "allow_tools": True, **config}
    return load("targets", "coding_agent")(Variant("v", "coding_agent", settings, timeout_seconds=seconds))


def answer(agent, stream, folder, *, then="", case=CASE, **config):
    command = printing(stream, folder, then=then)
    return asyncio.run(target(agent, command=command, **config).run(case, 0))
