"""Commands as targets: one run for all cases, and a look at the system before the first question."""

import json
import sys
from shlex import quote

import pytest

from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from evalwright.model.result import CaseVerdict
from evalwright.model.trace import Trace
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run
from formats.agentv import projects

CHECK = {"name": "l", "type": "latency", "threshold": 60000}
BY_ID = "print(json.dumps({'text': 'alone ' + sys.argv[1]}))"


@pytest.fixture
def run(tmp_path):
    """Runs three cases with a command whose batch prints some lines; traces and verdicts by case, and the ids asked."""

    def run(batch, **target):
        (tmp_path / ".git").mkdir()
        (tmp_path / "x.txt").write_text("x")
        (tmp_path / "agent.py").write_text(
            "import json, sys\nopen('asked', 'a').write(sys.argv[1] + ' ' + ','.join(sys.argv[2:]) + '\\n')\n"
            f"if sys.argv[1] == 'batch':\n    print({batch!r})\nelse:\n    {BY_ID}\n"
        )
        command = f"{quote(sys.executable)} agent.py {{EVAL_ID}} {{FILES}}"
        listed = [{"name": "default", "provider": "cli", "command_template": command, **target}]
        (tmp_path / "targets.yaml").write_text(json.dumps({"targets": listed}))
        content = [{"type": "file", "value": "x.txt"}]
        cases = [
            {"id": i, "expected_outcome": "x", "input": [{"role": "user", "content": content}], "evaluators": [CHECK]}
            for i in "abc"
        ]
        (tmp_path / "EVAL.yaml").write_text(json.dumps({"name": "suite", "evalcases": cases}))
        suite = load_suite(tmp_path / "EVAL.yaml", "agentv")
        suite.out = tmp_path / "runs"
        reader, _ = open_run(run_suite(suite).run_dir)
        asked = (tmp_path / "asked").read_text().splitlines() if (tmp_path / "asked").exists() else []
        by_name = {trace.case_id: trace for trace in reader.traces(Trace)}
        return by_name, {v.case_id: v for v in reader.verdicts(CaseVerdict)}, sorted(asked)

    return run


def lines(*records):
    return "\n".join(json.dumps(record) for record in records)


def test_a_command_is_run_once_for_all_cases(run, tmp_path):
    batch = lines(*({"id": i, "text": f"answer {i}", "token_usage": {"input": 1, "output": 2}} for i in "cab"))
    traces, _, asked = run(batch, provider_batching=True)
    assert {i: trace.output.final_answer for i, trace in traces.items()} == {i: f"answer {i}" for i in "abc"}
    assert (asked, traces["a"].metrics.token_output) == ([f"batch {tmp_path / 'x.txt'}"], 2)


def test_a_case_that_the_batch_leaves_out_is_an_error(run):
    _, verdicts, asked = run(lines({"id": "a", "text": "x"}, {"id": "b", "text": "x"}), provider_batching=True)
    assert [verdicts[i].status for i in "abc"] == ["pass", "pass", "error"]
    assert "no answer with the id 'c'" in verdicts["c"].error.message
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("batch", "said"),
    [
        (lines({"id": "a"}, {"id": "a"}), "'a' for the second time"),
        ("nonsense", "line 1 of its output is not JSON"),
        (lines({"text": "x"}), "has no 'id'"),
    ],
)
def test_when_a_batch_fails_cases_are_asked_one_by_one(run, batch, said):
    traces, verdicts, asked = run(batch, provider_batching=True)
    assert {i: trace.output.final_answer for i, trace in traces.items()} == {i: f"alone {i}" for i in "abc"}
    assert all(said in trace.extra["batch_error"] for trace in traces.values())
    assert ([v.status for v in verdicts.values()], len(asked)) == (["pass"] * 3, 4)


def test_a_system_is_looked_at_once(run, tmp_path):
    health = {"type": "command", "commandTemplate": "echo x >> looked"}
    _, verdicts, asked = run("", healthcheck=health)
    assert ((tmp_path / "looked").read_text(), len(asked)) == ("x\n", 3)
    assert {v.status for v in verdicts.values()} == {"pass"}


@pytest.mark.parametrize(
    ("health", "said"),
    [
        ({"type": "command", "command_template": "exit 3"}, "ended with exit code 3"),
        ({"type": "command", "command_template": "echo down; exit 3"}, "failed: down (exit code 3)"),
        ({"type": "command", "command_template": "sleep 9", "timeout_seconds": 0.2}, r"longer than 0.2s"),
        ({"type": "http", "url": "http://127.0.0.1:1/"}, "refused"),
    ],
)
def test_a_system_that_is_not_well_is_not_asked(run, health, said):
    _, verdicts, asked = run("", healthcheck=health)
    assert asked == []
    assert all(v.status == "error" and said in v.error.message for v in verdicts.values())


def test_a_look_is_taken_from_its_own_folder(run, tmp_path):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "up").touch()
    health = {"type": "command", "command_template": "test -e up", "cwd": "here"}
    _, verdicts, _ = run("", healthcheck=health)
    assert {v.status for v in verdicts.values()} == {"pass"}


@pytest.mark.parametrize("health", [5, {"type": "ping"}, {"type": "http"}, {"type": "http", "url": "file:///x"}])
def test_a_look_that_cannot_be_taken_is_refused(run, health):
    with pytest.raises(InputError, match="healthcheck"):
        run("", healthcheck=health)


@pytest.mark.parametrize("command", ["cat said.txt", "cp said.txt {OUTPUT_FILE}"])
def test_lines_of_an_answer_end_as_on_unix(project, command):
    (project / "said.txt").write_bytes(b"a\r\nb")
    target = {"name": "default", "provider": "cli", "command": command}
    (project / "targets.yaml").write_text(json.dumps({"targets": [target]}))
    check = {"name": "c", "type": "contains", "value": "a\nb"}
    assert projects.verdicts(projects.run(project, projects.case([check])))["a"].status == "pass"
