"""`targets.yaml`: read whole, and only what is used must be known and complete."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from evalwright.model.result import CaseVerdict
from evalwright.model.suite import Suite
from evalwright.model.trace import Trace
from evalwright.run.options import RunOptions
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run

LATENCY = {"name": "c", "type": "latency", "threshold": 60000}
JUDGE = {"name": "j", "type": "llm_judge"}
MOCK = {"name": "default", "provider": "mock"}
UNUSED: list[dict[str, Any]] = [
    *({"name": name, "provider": name} for name in ("claude", "copilot-cli", "pi-coding-agent", "vscode")),
    {"name": "codex", "provider": "codex", "executable": "/no/such"},
    {"name": "strange", "provider": "telepathy"},
    {
        "name": "azure-llm",
        "provider": "azure",
        "endpoint": "${{ NO_A }}",
        "api_key": "${{ NO_B }}",
        "model": "${{ NO_C }}",
    },
    {"name": "wrong", "provider": "cli", "workers": "many"},
    {"name": "bare", "provider": "cli"},
    {"name": "python", "provider": "python", "callable": "nowhere:answer"},
    {"name": "boxed", "provider": "cli", "command": "true", "sandbox": True},
    {"name": "odd", "provider": "mock", "respons": "typo"},
]


def loaded(folder: Path, *targets: dict[str, Any], evaluators: Any = (LATENCY,), **execution: Any) -> Suite:
    case = {"id": "a", "expected_outcome": "x", "input": "hi", "execution": {"evaluators": [*evaluators], **execution}}
    (folder / "EVAL.yaml").write_text(json.dumps({"name": "shop", "evalcases": [case]}))
    (folder / "targets.yaml").write_text(json.dumps({"targets": [*targets]}))
    return load_suite(folder / "EVAL.yaml", "agentv")


def verdicts(suite: Suite, folder: Path) -> list[CaseVerdict]:
    reader, _ = open_run(run_suite(suite, RunOptions(out=folder / "runs")).run_dir)
    return [*reader.verdicts(CaseVerdict)]


def test_targets_that_are_not_used_may_be_anything(tmp_path: Path) -> None:
    suite = loaded(tmp_path, {**MOCK, "judge_target": "azure-llm"}, *UNUSED)
    assert [*suite.variants[0].config["targets"]] == ["default"]
    assert [problem for problem in suite.warnings if "targets" in problem.file] == []


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("vscode", "'vscode' is not available"),
        ("vscode", "wrap the program with 'cli'"),
        ("codex", "'/no/such'"),
        ("pi-coding-agent", "--allow-tools"),
        ("strange", "telepathy"),
        ("azure-llm", "NO_B"),
        ("wrong", "workers"),
        ("bare", "command_template"),
        ("python", "nowhere:answer"),
        ("boxed", "sandbox"),
    ],
)
def test_a_target_that_is_used_must_be_known_and_complete(tmp_path: Path, target: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        loaded(tmp_path, {**MOCK, "use_target": target}, *UNUSED)


def test_a_judge_is_used_by_what_it_judges(tmp_path: Path) -> None:
    default = {**MOCK, "judge_target": "azure-llm"}
    composite = {"name": "both", "type": "composite", "evaluators": [LATENCY, JUDGE]}
    for evaluators in ([JUDGE], [], [composite]):
        with pytest.raises(InputError, match="NO_A"):
            loaded(tmp_path, default, *UNUSED, evaluators=evaluators)
    suite = loaded(tmp_path, default, *UNUSED, evaluators=[{**JUDGE, "target": "odd"}])
    assert sorted(suite.variants[0].config["targets"]) == ["default", "odd"]
    assert [problem.key for problem in suite.warnings if "targets" in problem.file] == ["targets[12].respons"]


def test_the_default_target_is_used_by_cases_without_their_own(tmp_path: Path) -> None:
    suite = loaded(tmp_path, UNUSED[6] | {"name": "default"}, {**MOCK, "name": "mock"}, target="mock")
    assert [*suite.variants[0].config["targets"]] == ["mock"]


@pytest.mark.parametrize(
    "check", [{"command": "test -e sound"}, {"type": "command", "command_template": "test -e sound"}]
)
def test_a_healthcheck_needs_no_type(tmp_path: Path, check: dict[str, str]) -> None:
    suite = loaded(tmp_path, {"name": "default", "provider": "cli", "command": "echo hi", "healthcheck": check})
    assert [verdict.status for verdict in verdicts(suite, tmp_path)] == ["error"]
    (tmp_path / "sound").touch()
    assert [verdict.status for verdict in verdicts(suite, tmp_path)] == ["pass"]


@pytest.mark.parametrize("key", ["grader_target", "judge_target"])
def test_newer_names_are_read(tmp_path: Path, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_TARGET", "real")
    alias = {"name": "default", "use_target": "${{ AGENT_TARGET }}"}
    real = {"name": "real", "provider": "mock", "response": "yes", key: "judge"}
    suite = loaded(tmp_path, alias, real, {"name": "judge", "provider": "mock"}, evaluators=[JUDGE])
    config = suite.variants[0].config
    assert config["targets"]["default"]["response"] == "yes"
    assert next(iter(suite.cases)).evaluators[0]["config"]["judges"]["default"] == "judge"


def test_other_names_of_keys_are_read_unless_the_first_one_is_given(tmp_path: Path) -> None:
    target = {"name": "default", "provider": "cli", "command": "echo hi", "attachmentsFormat": "@{path}"}
    assert loaded(tmp_path, target).variants[0].config["targets"]["default"]["files_format"] == "@{path}"
    both = {"files_format": "{path}", **target}
    assert loaded(tmp_path, both).variants[0].config["targets"]["default"]["files_format"] == "{path}"


def test_a_folder_whose_variable_is_not_set_is_the_usual_one(tmp_path: Path) -> None:
    suite = loaded(tmp_path, {"name": "default", "provider": "cli", "command": "pwd", "cwd": "${{ NO_A }}"})
    assert ["cwd is not used" in problem.message for problem in suite.warnings if "NO_A" in problem.message] == [True]
    assert [verdict.status for verdict in verdicts(suite, tmp_path)] == ["pass"]


def test_an_agent_may_be_named_by_its_command(tmp_path: Path) -> None:
    for key in ("command", "binary", "executable"):
        with pytest.raises(InputError, match="no-such-agent"):
            loaded(tmp_path, {"name": "default", "provider": "codex", key: "no-such-agent"})


def test_targets_that_stand_for_one_another_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="circle"):
        loaded(tmp_path, {"name": "default", "use_target": "b"}, {"name": "b", "use_target": "default"})


def test_variables_that_change_nothing_need_no_value(tmp_path: Path) -> None:
    idle = dict.fromkeys(("log_dir", "log_format", "version"), "${{ NO_A }}")
    without = {**idle, "of_another_release": "${{ NO_C }}"}
    assert loaded(tmp_path, {**MOCK, **without}).variants
    with pytest.raises(InputError, match="NO_D"):
        loaded(tmp_path, {**MOCK, **without, "response": "${{ NO_D }}"})


def test_the_file_itself_is_checked_whole(tmp_path: Path) -> None:
    path = tmp_path / "targets.yaml"
    path.write_text(json.dumps({"targets": UNUSED}))
    with pytest.raises(InputError) as raised:
        load_suite(path, "agentv", to_run=False)
    assert [problem.key for problem in raised.value.problems] == [
        "targets[5].provider",
        "targets[7].workers",
        "targets[10].sandbox",
    ]
    path.write_text(json.dumps({"targets": [UNUSED[3], UNUSED[6], UNUSED[11]]}))
    keys = [problem.key for problem in load_suite(path, "agentv", to_run=False).warnings]
    assert keys == [
        "targets[2].respons",
        "targets[0].provider",
        *(f"targets[1].{k}" for k in ("endpoint", "api_key", "model")),
    ]


def test_the_output_file_of_a_command_is_kept_on_request(tmp_path: Path) -> None:
    command = {"name": "default", "provider": "cli", "command": "echo kept > {OUTPUT_FILE}", "keep_temp_files": True}
    suite = loaded(tmp_path, command)
    reader, _ = open_run(run_suite(suite, RunOptions(out=tmp_path / "runs")).run_dir)
    kept = Path(next(iter(reader.traces(Trace))).extra["output_file"])
    assert kept.read_text() == "kept\n"
    kept.unlink()


def test_recordings_answer_in_place_of_a_target(tmp_path: Path) -> None:
    called = {"role": "assistant", "content": "done", "tool_calls": [{"tool": "Read", "input": {"path": "x"}}]}
    recorded = {"test_id": "a", "source_target": "live", "suite": "shop", "output": [called], "duration_ms": 5}
    others = [{**recorded, "source_target": "old", "output": []}, {**recorded, "test_id": "b"}]
    (tmp_path / "said.jsonl").write_text("\n".join(map(json.dumps, [*others, recorded])))
    replay = {"name": "default", "provider": "replay", "fixtures": "said.jsonl", "source_target": "live"}
    read = {"name": "read", "type": "tool_trajectory", "mode": "exact", "expected": [{"tool": "Read"}]}
    suite = loaded(tmp_path, replay, evaluators=[LATENCY, read])
    reader, _ = open_run(run_suite(suite, RunOptions(out=tmp_path / "runs")).run_dir)
    assert next(iter(reader.verdicts(CaseVerdict))).status == "pass"
    assert next(iter(reader.traces(Trace))).output.final_answer == "done"
    suite = loaded(tmp_path, {**replay, "suite": "other"})
    reader, _ = open_run(run_suite(suite, RunOptions(out=tmp_path / "runs")).run_dir)
    error = next(iter(reader.traces(Trace))).error
    assert "has no answer of source_target 'live', suite 'other', test_id 'a'" in str(error)
    with pytest.raises(InputError, match="source_target"):
        loaded(tmp_path, {key: value for key, value in replay.items() if key != "source_target"})


def test_of_two_targets_of_one_name_the_last_counts_and_this_is_said(tmp_path: Path) -> None:
    suite = loaded(tmp_path, {**MOCK, "response": "first"}, {**MOCK, "response": "second"})
    assert suite.variants[0].config["targets"]["default"]["response"] == "second"
    told = {problem.key: problem.message for problem in suite.warnings}
    assert "is also the name of targets[0], which is not used" in told["targets[1].name"]


@pytest.mark.parametrize(
    ("target", "key", "said"),
    [
        ({"provider": 5}, "provider", "needs a provider, found 5"),
        ({"retry_status_codes": [500, 5]}, "retry_status_codes[1]", "greater than or equal to 100, found 5"),
        ({"responses": [{"response": "x"}]}, "responses[0].pattern", "field required"),
        ({"provider": "cli", "command": 5}, "command", "expected a list of texts or a text, found 5"),
        ({"provider": "cli", "command": ["echo", [1]]}, "command", "expected a list of texts or a text"),
        ({"provider": "codex", "args": "--x"}, "args", "expected a list of texts, found '--x'"),
        ({"provider": "python", "callable": "json:__name__"}, "callable", "is no function: found str"),
    ],
)
def test_a_wrong_setting_is_one_mistake_with_its_place(
    tmp_path: Path, target: dict[str, Any], key: str, said: str
) -> None:
    with pytest.raises(InputError) as raised:
        loaded(tmp_path, {**MOCK, **target})
    assert [(problem.key, said in problem.message) for problem in raised.value.problems] == [
        (f"targets[0].{key}", True)
    ]


def test_what_a_command_does_not_use_is_said(tmp_path: Path) -> None:
    target = {"name": "default", "provider": "cli", "command_template": "echo a", "command": ["b"]}
    suite = loaded(tmp_path, {**target, "healthcheck": {"command": "true", "timeout": 5}})
    told = [problem.key for problem in suite.warnings if "targets" in problem.file]
    assert told == ["targets[0].healthcheck.timeout", "targets[0].command"]


def test_a_command_that_takes_too_long_says_how_long_it_was_given(tmp_path: Path) -> None:
    command = {"name": "default", "provider": "cli", "command": "sleep 5", "timeout_seconds": 0.1, "max_retries": 0}
    (found,) = verdicts(loaded(tmp_path, command), tmp_path)
    assert found.error is not None
    assert found.error.message == "timed out after 0.1s"
