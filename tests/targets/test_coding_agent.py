"""Coding agents, by stand-ins that print recorded streams: how they are called and what becomes of what they print."""

import asyncio
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evalwright.errors import InputError
from evalwright.model.plan import Variant
from evalwright.model.snapshot import Case
from evalwright.registry import load
from evalwright.session.workspace import beside_workspace, working_in
from targets.agents import (
    CASE,
    CLAUDE,
    CODEX,
    COPILOT,
    GEMINI,
    MARK,
    RESULT,
    STREAMS,
    answer,
    called,
    lines,
    printing,
    program,
    target,
)

pytestmark = pytest.mark.usefixtures("own_home")


def refused(**config):
    with pytest.raises(InputError) as raised:
        load("targets", "coding_agent")(Variant("v", "coding_agent", config))
    return {problem.key: problem.message for problem in raised.value.problems}


def test_claude_is_called_as_documented_in_a_home_with_its_login_alone(tmp_path, own_home):
    listing = f'ls -A "$CLAUDE_CONFIG_DIR" > {tmp_path}/home_files; ls -l "$CLAUDE_CONFIG_DIR"/.cred* > {tmp_path}/mode'
    got = answer("claude", lines(*CLAUDE, RESULT), tmp_path, then=listing, model="m1", max_turns=4, args=["--x"])
    flags = "-p --output-format stream-json --verbose --model m1 --max-turns 4 --permission-mode bypassPermissions --x"
    assert called(tmp_path, "words") == flags.split()
    assert (tmp_path / "stdin").read_text() == CASE.input["prompt"]
    env = dict(line.partition("=")[::2] for line in called(tmp_path, "env"))
    assert "CLAUDECODE" not in env
    assert env["HOME"] == str(own_home)
    assert not Path(env["CLAUDE_CONFIG_DIR"]).exists(), "the home is gone with the call"
    assert called(tmp_path, "home_files") == [".credentials.json"]
    assert called(tmp_path, "mode")[0].startswith("-r--------")
    assert got.error is None
    assert got.output.final_answer == "Done."
    assert [message.role for message in got.messages] == ["user", "assistant", "tool", "assistant"]
    assert [(call.name, call.arguments) for call in got.tool_calls] == [("Write", {"file_path": "out.txt"})]
    assert (got.metrics.token_input, got.metrics.token_output, got.metrics.cost_usd) == (110, 7, 0.25)
    assert got.extra["model"] == "m1"
    assert "imported_from" not in got.extra


@pytest.mark.parametrize(
    ("agent", "stream", "words", "homes", "tokens"),
    [
        (
            "codex",
            CODEX,
            "exec --json --skip-git-repo-check --sandbox workspace-write --model m1 -",
            ["CODEX_HOME", "HOME"],
            (100, 7),
        ),
        ("gemini", GEMINI, "--output-format stream-json --yolo --model m1 -p Do it.", ["HOME"], (100, 7)),
        ("copilot", COPILOT, "-p Do it. --yolo --output-format json --model m1", ["HOME"], (None, None)),
    ],
)
def test_other_agents_are_called_as_documented(tmp_path, own_home, agent, stream, words, homes, tokens):
    case = Case(id="c", input={"user_message": "Do it."})
    got = answer(agent, lines(*stream), tmp_path, case=case, model="m1")
    assert " ".join(called(tmp_path, "words")) == words
    env = dict(line.partition("=")[::2] for line in called(tmp_path, "env"))
    assert [env[name] != str(own_home) and "evalwright-" in env[name] for name in homes] == [True] * len(homes)
    assert "XDG_CONFIG_HOME" not in env
    assert got.error is None
    assert got.output.final_answer == "Done."
    assert len(got.tool_calls) == 1
    assert got.messages[0].content == "Do it."
    assert (got.metrics.token_input, got.metrics.token_output) == tokens
    assert got.metrics.cost_usd is None, "unknown is null"


def test_a_prompt_that_begins_with_a_hyphen_stays_whole_as_an_argument(tmp_path):
    case = Case(id="c", input="-rf is what?")
    answer("gemini", lines(*GEMINI), tmp_path, case=case)
    assert called(tmp_path, "words")[-1] == "--prompt=-rf is what?"


@pytest.mark.parametrize("agent", STREAMS)
def test_a_stream_is_read_byte_by_byte_with_noise_between(tmp_path, agent):
    more, stream = STREAMS[agent]
    source = f"""
import os, sys
sys.stdin.read()
data = open({str(tmp_path / "data")!r}, "rb").read()
for at in range(len(data)):
    os.write(1, data[at : at + 1])
"""
    noise = b"npm warn something\n\n[1, 2]\n"
    (tmp_path / "data").write_bytes(lines(stream[0]) + noise + lines(*stream[1:]).rstrip(b"\n"))
    got = asyncio.run(target(agent, command=str(program(tmp_path / "slow", source)), **more).run(CASE, 0))
    assert got.error is None
    assert got.output.final_answer == "Done."
    assert len(got.tool_calls) == 1
    assert ["2 lines of its output left out" in warning for warning in got.extra["warnings"]] == [True]


@pytest.mark.parametrize("depth", [120, 300, 5000])
def test_a_record_that_is_left_out_is_an_error_as_it_may_hold_a_call(tmp_path, depth):
    deep = b'{"type": "assistant", "message": ' + b'{"a": ' * depth + b"1" + b"}" * depth + b"}\n"
    got = answer("claude", lines(*CLAUDE) + deep + lines(RESULT), tmp_path)
    assert got.error is not None
    assert (got.error.type, got.output.final_answer) == ("agent_error", "Done.")
    assert "a record of more than 100 levels was left out" in got.error.message
    text = answer("command", deep, tmp_path)
    assert (text.error, text.output.final_answer) == (None, deep.decode().strip())


def test_what_was_done_until_the_end_of_the_time_is_kept_and_nothing_goes_on(tmp_path):
    then = f"sleep 60 & echo $! > {tmp_path}/pid; wait"
    got = answer("claude", lines(*CLAUDE[:2]), tmp_path, then=then, seconds=3.0)
    assert got.error.type == "timeout"
    assert "within 3 seconds" in got.error.message
    assert [call.name for call in got.tool_calls] == ["Write"]
    assert got.metrics.token_input == 100
    process = Path("/proc", (tmp_path / "pid").read_text().strip())
    assert not process.exists() or not (process / "cmdline").read_bytes(), "gone, or a zombie that waits for init"


def test_an_agent_that_retries_until_its_timeout_reports_the_cause(tmp_path):
    def waiting(message):
        stream = lines(CODEX[0], {"type": "turn.started"}, {"type": "error", "message": f"Reconnecting... {message}"})
        (folder := tmp_path / message.split()[0]).mkdir()
        return answer("codex", stream, folder, then="sleep 60", seconds=3.0).error

    messages = ["no route", "401 Unauthorized"]
    with ThreadPoolExecutor() as pool:
        late, refused = pool.map(waiting, messages)
    assert (late.type, late.message) == (
        "timeout",
        "codex had not ended within 3 seconds; its last error: Reconnecting... no route",
    )
    assert (refused.type, messages[1] in refused.message) == ("sign_in", True)


@pytest.mark.parametrize(
    ("stream", "then", "type", "said"),
    [
        (lines(*CLAUDE), "", "agent_error", "breaks off before its end"),
        (lines(*CLAUDE)[:-40], "exit 9", "agent_error", "exit code 9"),
        (b"", r"printf 'no disk \377\n' >&2; exit 1", "agent_error", "exit code 1: no disk \ufffd"),
        (b"", "", "agent_error", "printed no messages"),
        (lines(*CLAUDE, {**RESULT, "is_error": True, "result": "API Error: 529"}), "exit 1", "agent_error", "529"),
        (
            lines(
                {**CLAUDE[3], "error": "authentication_failed"},
                {**RESULT, "is_error": True, "result": "Invalid API key · Please run /login"},
            ),
            "exit 1",
            "sign_in",
            "Please run /login",
        ),
        (b"", "echo 'unexpected status 401 Unauthorized' >&2; exit 1", "sign_in", "401"),
        (b"", "echo 'Invalid auth method selected.' >&2; exit 41", "sign_in", "auth method"),
        (b"", "echo 'No API key found for the selected model.' >&2; exit 1", "sign_in", "No API key"),
        (lines(CODEX[0], {"type": "turn.failed", "error": {"message": "boom"}}), "", "agent_error", "boom"),
        (lines(*GEMINI[:-1], {"type": "result", "status": "error"}), "", "agent_error", ""),
    ],
    ids=[
        "no-end",
        "cut",
        "stderr",
        "nothing",
        "is-error",
        "sign-in",
        "sign-in-stderr",
        "no-method",
        "no-key",
        "turn-failed",
        "gemini-error",
    ],
)
def test_failures_of_infrastructure_are_errors(tmp_path, stream, then, type, said):
    agent = "codex" if b"turn.failed" in stream else "gemini" if b"gemini-x" in stream else "claude"
    got = answer(agent, stream, tmp_path, then=then)
    assert got.error is not None
    assert got.error.type == type
    assert said in got.error.message


@pytest.mark.parametrize("agent", STREAMS)
def test_what_an_agent_printed_before_it_broke_off_is_kept(tmp_path, agent):
    more, stream = STREAMS[agent]
    got = answer(agent, lines(*stream)[:-20], tmp_path, then="exit 9", **more)
    assert (got.error.type, "exit code 9" in got.error.message) == ("agent_error", True)
    assert len(got.tool_calls) == 1


def test_an_answer_about_status_401_is_no_failure_to_sign_in(tmp_path):
    talk = {**CLAUDE[3], "message": {**CLAUDE[3]["message"], "content": [{"type": "text", "text": "HTTP 401"}]}}
    got = answer("claude", lines(talk, {**RESULT, "result": "HTTP 401 means: Please run /login"}), tmp_path)
    assert got.error is None
    got = answer("claude", lines(talk, {**RESULT, "is_error": True, "result": "overloaded"}), tmp_path)
    assert got.error.type == "agent_error"


def test_an_agent_that_reached_its_turns_is_judged_by_its_work(tmp_path):
    stopped = {**RESULT, "subtype": "error_max_turns", "is_error": True, "result": None}
    got = answer("claude", lines(*CLAUDE, stopped), tmp_path, then="exit 1")
    assert got.error is None
    assert got.extra["stopped"] == "max_turns"
    assert got.output.final_answer == "Done."


def test_tokens_that_cannot_be_are_unknown(tmp_path):
    odd = {**RESULT, "total_cost_usd": -1, "usage": {"input_tokens": -5, "output_tokens": "many"}}
    got = answer("claude", lines(*CLAUDE, odd), tmp_path)
    assert (got.metrics.token_input, got.metrics.token_output, got.metrics.cost_usd) == (None, None, None)


@pytest.mark.parametrize("named", [False, True])
def test_a_skill_is_there_without_its_evals_while_the_agent_works_and_is_no_work_of_its(tmp_path, named):
    skill, workspace = tmp_path / "skill", tmp_path / "cell"
    front = "---\nname: its-own\n---\n" if named else "---\nname: 'my-skill' # so\n---\n"
    for name in ("SKILL.md", "scripts/run.sh", "evals/evals.json", ".git/HEAD", "runs/r1/plan.json"):
        (skill / name).parent.mkdir(parents=True, exist_ok=True)
        (skill / name).write_text(front if name == "SKILL.md" else "x")
    links = {
        "again": "scripts", "scripts/top": "../SKILL.md",
        "answers": "evals", "criteria.json": "evals/evals.json", "gone": "nowhere", "old": "runs/r1", "out": "..",
        "password": "/etc/passwd", "scripts/loop": "..",
    }  # fmt: skip
    for name, meant in links.items():
        (skill / name).symlink_to(meant)
    workspace.mkdir()
    command = printing(lines(*CLAUDE, RESULT), tmp_path, then="echo > made.txt; echo > .claude/skills/my-skill/new")
    agent = target("claude", command=command, skills={"my-skill": str(skill)} if named else [str(skill)])
    [warning] = agent.warnings
    assert [f"{name} -> {meant} (" in warning.message for name, meant in links.items()] == [False] * 2 + [True] * 7
    with working_in(workspace):
        asyncio.run(agent.run(CASE, 0))
    inside = ["SKILL.md", "again/run.sh", "again/top", "scripts/run.sh", "scripts/top"]
    assert called(tmp_path, "files") == [f"./.claude/skills/my-skill/{name}" for name in inside]
    left = sorted(str(path.relative_to(workspace)) for path in workspace.rglob("*") if path.is_file())
    assert left == [".claude/skills/my-skill/new", "made.txt"]
    kept = (beside_workspace(workspace) / "stream.jsonl").read_bytes()
    assert kept == lines(*CLAUDE, RESULT), "the raw stream"


@pytest.mark.parametrize("cancellations", [1, 2])
def test_a_call_that_is_cancelled_while_its_skill_is_copied_leaves_none_of_it(tmp_path, cancellations):
    skill, workspace = tmp_path / "skill", tmp_path / "cell"
    for folder in (skill, workspace):
        folder.mkdir()
    for name in ("SKILL.md", *map(str, range(300))):
        (skill / name).write_text("x")
    agent = target("claude", command=printing(b"", tmp_path), skills=[str(skill)])

    async def cancelled():
        call = asyncio.ensure_future(agent.run(CASE, 0))
        while not (workspace / ".claude/skills/skill").exists():
            await asyncio.sleep(0)
        for _ in range(cancellations):
            call.cancel()
            await asyncio.sleep(0)
        await asyncio.wait([call])
        return [*workspace.iterdir()]

    with working_in(workspace):
        assert asyncio.run(cancelled()) == []


def test_login_tokens_are_in_no_trace_and_no_stream(tmp_path):
    leak = {"type": "text", "text": f"my token is tok-{MARK}-secret"}
    stream = lines({**CLAUDE[3], "message": {**CLAUDE[3]["message"], "content": [leak]}}, {**RESULT, "result": None})
    workspace = tmp_path / "cell"
    workspace.mkdir()
    with working_in(workspace):
        got = answer("claude", stream + f"tok-{MARK}-secret\n".encode(), tmp_path)
    raw = (beside_workspace(workspace) / "stream.jsonl").read_text()
    assert MARK not in got.output.final_answer
    assert "my token is" in got.output.final_answer
    assert MARK not in raw
    assert MARK not in str(got.extra)


def test_any_program_is_an_agent_whose_stdout_is_text_or_a_known_format(tmp_path):
    got = answer("command", b" It is.\n\nYes.\n", tmp_path)
    assert (got.error, got.extra, got.doubts) == (None, {}, ())
    assert got.output.final_answer == " It is.\n\nYes."
    assert (tmp_path / "stdin").read_text() == CASE.input["prompt"]
    got = answer("command", lines(*CODEX), tmp_path, output="codex", prompt_prefix="Think.")
    assert got.output.final_answer == "Done."
    assert got.metrics.token_input == 100
    assert (tmp_path / "stdin").read_text() == f"Think.\n\n{CASE.input['prompt']}"


def test_mistakes_are_named_together_before_anything_runs(tmp_path, monkeypatch):
    message = refused(agent="cloude", output="xml", skills=[str(tmp_path)], skill_folder="../x")
    assert "claude" in message["agent"]
    assert "claude-code" in message["output"]
    assert "below" in message["skill_folder"]
    assert "with your rights" in refused(agent="claude")["allow_tools"]
    assert refused(agent="command").keys() == {"command"}
    assert "image" in refused(agent="claude", sandbox="docker")
    monkeypatch.setenv("PATH", str(tmp_path))
    message = refused(agent="codex", skills=[str(tmp_path)])
    assert "'codex'" in message["command"]
    assert str(tmp_path) in message["command"]
    assert "'command'" in message["command"]
    assert "SKILL.md" in message["skills[0]"]
    assert "'docker'" in refused(agent="claude", sandbox="docker", image="x")["sandbox"]
    assert "quotation" in refused(agent="codex", command="codex 'x")["command"]


def with_docker(folder, monkeypatch, stream):
    """A stand-in for Docker that notes its calls in `docker.jsonl` and prints a stream for `run`."""
    source = f"""
import json, os, sys
from pathlib import Path
with open({str(folder / "docker.jsonl")!r}, "a") as calls:
    calls.write(json.dumps([sys.argv[1:], os.environ["HOME"]]) + "\\n")
if sys.argv[1] == "run":
    sys.stdin.read()
    sys.stdout.write(open({str(folder / "data")!r}).read())
"""
    (folder / "bin").mkdir()
    program(folder / "bin" / "docker", source)
    (folder / "data").write_bytes(stream)
    monkeypatch.setenv("PATH", f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}")


def test_a_container_has_the_workspace_the_login_and_the_keys_alone(tmp_path, monkeypatch):
    with_docker(tmp_path, monkeypatch, lines(*CLAUDE, RESULT))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-12345678")
    made = target("claude", allow_tools=False, sandbox="docker", image="agents:1", env={"LANG": "C"})
    got = asyncio.run(made.run(CASE, 0))
    assert got.error is None
    assert got.output.final_answer == "Done."
    (run, home), (removed, _) = map(json.loads, (tmp_path / "docker.jsonl").read_text().splitlines())
    assert home == os.environ["HOME"]
    assert removed[:2] == ["rm", "--force"]
    assert removed[2] in run
    assert run[run.index("agents:1") + 1] == "claude"
    assert "sk-12345678" not in str(run)
    homes = {"CLAUDE_CONFIG_DIR=/home/agent", "HOME=/home/agent"}
    assert {*homes, "ANTHROPIC_API_KEY", "LANG", "IS_SANDBOX=1"} <= given(run, "--env")
    assert {word.partition(":")[2] for word in given(run, "--volume")} == {"/workspace", "/home/agent"}


def given(words, option):
    return {words[at + 1] for at, word in enumerate(words) if word == option}


def test_a_container_has_the_variables_without_which_an_agent_does_not_work(tmp_path, monkeypatch):
    with_docker(tmp_path, monkeypatch, lines(*GEMINI))
    asyncio.run(target("gemini", allow_tools=False, sandbox="docker", image="agents:1").run(CASE, 0))
    run, _ = json.loads((tmp_path / "docker.jsonl").read_text().splitlines()[0])
    assert {"GEMINI_CLI_TRUST_WORKSPACE", "GOOGLE_GENAI_USE_GCA"} <= given(run, "--env")


@pytest.mark.parametrize("noise", [b"[" * 20_000 + b"]" * 20_000, b"\xff\xfe"])
def test_noise_may_be_deep_or_odd(tmp_path, noise):
    got = answer("claude", noise + b"\n" + lines(*CLAUDE, RESULT), tmp_path)
    assert (got.error, got.output.final_answer) == (None, "Done.")
    assert len(got.tool_calls) == 1


def test_a_record_of_an_unknown_shape_is_an_error_that_says_what_was_found(tmp_path):
    odd = {"type": "user", "message": 5, "session_id": "s"}
    got = answer("claude", lines(odd, *CLAUDE, RESULT), tmp_path)
    assert got.error is not None
    assert got.error.type == "agent_error"
    assert "cannot be read as claude-code: expected text or blocks, found the number 5" in got.error.message
