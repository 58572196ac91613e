"""No suite of any format reads a file outside of its repository because its data says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalwright.cli import main
from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from evalwright.model.trace import Trace
from evalwright.run.options import RunOptions
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run

LETTA = {
    "name": "l",
    "dataset": "ds.jsonl",
    "target": {"kind": "python", "callable": "agent.py:answer"},
    "graders": {"g": {"kind": "tool", "function": "contains"}},
    "gate": {"kind": "simple", "metric_key": "g", "aggregation": "avg_score", "op": "gte", "value": 0.5},
}
JUDGE = {"kind": "model_judge", "model": "gpt-4o-mini"}
NATIVE = """
eval: {name: n}
dataset: {type: jsonl, path: PATH}
systems: [{name: s, adapter: command, command: [echo, hi]}]
evaluators: [{name: e, type: contains_text, config: {any_of: [hi]}}]
output: {type: local_files, path: runs}
"""
AGENTV = {"name": "refs", "description": "x", "execution": {"target": "t"}}
CASE = {"id": "a", "expected_outcome": "x", "input": "hi"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A suite's folder with a private folder beside it."""
    folder, private = tmp_path / "suite", tmp_path / "private"
    folder.mkdir()
    private.mkdir()
    monkeypatch.chdir(folder)
    (private / "text.txt").write_text("heron {submission}")
    (private / "code.py").write_text("raise SystemExit('executed')")
    (private / "cases.jsonl").write_text('{"id": "a", "input": "hi", "ground_truth": "x"}\n')
    (folder / "ds.jsonl").write_text('{"id": "a", "input": "hi", "ground_truth": "x"}\n')
    (folder / "agent.py").write_text("def answer(message, ctx):\n    return 'x'\n")
    (folder / "targets.yaml").write_text("targets: [{name: t, provider: cli, command_template: 'cat {FILES}'}]\n")
    return folder


def suite_at(folder: Path, kind: str, outside: str) -> Path:
    """A suite with one reference to a file of the private folder, whose path is `outside`."""
    letta = json.loads(json.dumps(LETTA))
    case = dict(CASE)
    if kind == "native-dataset":
        (folder / "eval.yaml").write_text(NATIVE.replace("PATH", f"{outside}/cases.jsonl"))
        return folder / "eval.yaml"
    if kind == "pixie-evaluator":
        entry = {"description": "d", "entry_kwargs": {}, "eval_input": [{"name": "a", "value": 1}]}
        dataset = {"runnable": "agent.py:answer", "evaluators": [f"{outside}/code.py:check"], "entries": [entry]}
        (folder / "d.json").write_text(json.dumps(dataset))
        return folder / "d.json"
    if kind.startswith("letta"):
        changes = {
            "letta-dataset": lambda: letta.update(dataset=f"{outside}/cases.jsonl"),
            "letta-prompt": lambda: letta["graders"].update(g={**JUDGE, "prompt_path": f"{outside}/text.txt"}),
            "letta-rubric": lambda: (folder / "ds.jsonl").write_text(
                json.dumps({"input": "hi", "ground_truth": "x", "rubric_path": f"{outside}/text.txt"})
            ),
            "letta-grader": lambda: letta["graders"]["g"].update(function=f"{outside}/code.py:grade"),
            "letta-extractor": lambda: letta["graders"]["g"].update(extractor=f"{outside}/code.py:pick"),
            "letta-target": lambda: letta["target"].update(callable=f"{outside}/code.py:answer"),
            "letta-backend": lambda: letta.update(target={"kind": "agent", "backend": f"{outside}/code.py:answer"}),
            "letta-replay": lambda: letta.update(target={"kind": "replay", "path": outside}),
            "letta-working-dir": lambda: letta["target"].update(kind="letta_code", working_dir=outside),
            "letta-reward": lambda: (
                letta.pop("gate"),
                letta.update(reward={"kind": "custom", "function": f"{outside}/code.py:reward"}),
            ),
            "letta-setup": lambda: letta.update(setup_script=f"{outside}/code.py:prepare"),
        }
        changes[kind]()
        (folder / "suite.yaml").write_text(json.dumps(letta))
        return folder / "suite.yaml"
    if "template" in kind:
        target = {"name": "t", "provider": "cli", "command_template": "cat", "workspace_template": outside}
        if kind == "agentv-link-in-template":
            (folder / "template").mkdir()
            (folder / "template" / "inner").symlink_to(folder / outside)
            target["workspace_template"] = "template"
        (folder / "targets.yaml").write_text(json.dumps({"targets": [target]}))
    file = {"type": "file", "value": f"{outside}/text.txt"}
    prompt = {"name": "j", "type": "llm_judge", "prompt": f"{outside}/text.txt"}
    of_case = {
        "agentv-input": {"input": [{"role": "user", "content": [file]}]},
        "agentv-expected": {"expected_output": [{"role": "assistant", "content": [file]}]},
        "agentv-prompt": {"execution": {"evaluators": [prompt]}},
        "agentv-cwd": {
            "execution": {"evaluators": [{"name": "j", "type": "code_judge", "script": "x", "cwd": outside}]}
        },
    }
    case |= of_case.get(kind, {})
    (folder / "EVAL.yaml").write_text(json.dumps({**AGENTV, "evalcases": [case]}))
    return folder / "EVAL.yaml"


KINDS = (
    "agentv-input", "agentv-expected", "agentv-prompt", "agentv-template", "agentv-link-in-template", "letta-dataset",
    "letta-prompt", "letta-rubric", "letta-grader", "letta-extractor", "letta-setup", "pixie-evaluator",
    "native-dataset", "letta-target", "letta-backend", "letta-replay", "letta-working-dir", "letta-reward",
    "agentv-cwd",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", ["climbing", "absolute", "by link"])
def test_a_reference_that_leads_outside_is_refused(folder: Path, kind: str, way: str) -> None:
    private = folder.parent / "private"
    (folder / "link").symlink_to(private)
    path = suite_at(folder, kind, {"climbing": "../private", "absolute": str(private), "by link": "link"}[way])
    try:
        suite = load_suite(path)
        said = [case.extra.get("load_error", "") for case in suite.cases]
    except InputError as error:
        said = [str(error)]
    assert "outside of the suite's folder" in str(said)
    assert not any(word in str(said) for word in ("heron", "executed"))


@pytest.mark.parametrize("kind", KINDS)
def test_an_allowed_folder_may_be_named(folder: Path, kind: str) -> None:
    path = suite_at(folder, kind, "../private")
    try:
        suite = load_suite(path, options={"allow_outside": (folder.parent / "private",)})
        said = [case.extra.get("load_error", "") for case in suite.cases]
    except InputError as error:
        said = [str(error)]
    assert "outside of the suite's" not in str(said)


@pytest.mark.parametrize(
    "words", ["letta validate suite.yaml", "letta run suite.yaml", "pixie dataset validate d.json"]
)
def test_the_commands_of_other_programs_take_allowed_folders_too(
    folder: Path, capsys: pytest.CaptureFixture[str], words: str
) -> None:
    suite_at(folder, "pixie-evaluator" if "pixie" in words else "letta-dataset", "../private")
    (folder.parent / "private" / "code.py").write_text("def check(evaluable, *, trace=None):\n    return 1.0\n")
    codes = []
    for allowed in ([], ["--allow-outside", str(folder.parent / "private")]):
        with pytest.raises(SystemExit) as ended:
            main([*words.split(), *allowed])
        codes.append(ended.value.code)
    out, err = capsys.readouterr()
    assert (codes, f"{out}{err}".count("outside of the suite's")) == ([1, 0], 1), err


def test_a_link_that_was_turned_outside_since_the_suite_was_read_is_not_given_to_a_command(folder: Path) -> None:
    (folder / "notes.txt").write_text("fine")
    content = [{"type": "file", "value": "notes.txt"}]
    case = {**CASE, "input": [{"role": "user", "content": content}]}
    (folder / "EVAL.yaml").write_text(json.dumps({**AGENTV, "evalcases": [case]}))
    suite = load_suite(folder / "EVAL.yaml")
    (folder / "notes.txt").unlink()
    (folder / "notes.txt").symlink_to("../private/text.txt")
    outcome = run_suite(suite, RunOptions(out=folder / "runs"))
    (trace,) = open_run(outcome.run_dir)[0].traces(Trace)
    assert trace.error is not None
    assert (trace.error.type, trace.output.final_answer) == ("outside", None)
