"""Which files a run used, and which of two with one name."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from evalwright.files.paths import seen_from_here
from evalwright.formats.loading import load_suite
from evalwright.model.plan import EvaluatorSpec, Plugin, Variant
from evalwright.model.result import EvaluationResult
from evalwright.model.trace import Trace
from evalwright.run.options import RunOptions
from evalwright.run.selection import all_warnings
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run
from evalwright.run.used_files import beyond_reach, doubled_files, executed
from evalwright.session import Session, refuse_network
from run.suites import SAYS_DONE, suite

SUITE = """
eval: {name: shop}
dataset: {type: yaml, path: cases.yaml}
systems: [{name: s, adapter: python_function, target: "agent_of_two_folders:answer"}]
evaluators: [{name: says, type: contains_text, config: {all_of: [shop]}}]
metrics: {price_table_path: prices.yaml}
output: {type: local_files, path: runs}
"""
PRICES = "table_version: t1\nfreshness_date: 2026-01-01\nmodels: {}\n"
CODE = "agent_of_two_folders.py"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A suite in one folder, while the working directory is another."""
    for name in ("shop", "bank"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "cases.yaml").write_text(f"cases: [{{id: {name}, input: {{q: 1}}}}]\n")
        (tmp_path / name / CODE).write_text(f"def answer(case, variant): return {{'final_answer': '{name}'}}\n")
        (tmp_path / name / "prices.yaml").write_text(PRICES)
    (tmp_path / "shop" / "eval.yaml").write_text(SUITE)
    monkeypatch.chdir(tmp_path / "bank")
    return tmp_path / "shop"


def test_the_suites_own_files_are_used_and_the_others_are_named(shop: Path) -> None:
    suite = load_suite(shop / "eval.yaml")
    assert [case.id for case in suite.cases] == ["shop"]
    told = [str(warning) for warning in all_warnings(suite)]
    for name in ("cases.yaml", "prices.yaml", CODE):
        assert any(str(shop / name) in line for line in told), name
    assert len(told) == 3


def test_the_suites_own_code_is_run_and_the_plan_has_the_hashes_of_all(shop: Path) -> None:
    outcome = run_suite(load_suite(shop / "eval.yaml"), RunOptions(out=shop / "runs"))
    assert outcome.exit_code == 0
    _, plan = open_run(outcome.run_dir)
    used = ("eval.yaml", "cases.yaml", "prices.yaml", CODE)
    assert plan.files == {str(shop / n): hashlib.sha256((shop / n).read_bytes()).hexdigest() for n in used}


def test_commands_work_in_the_suites_folder_and_tell_of_files_that_both_have(shop: Path) -> None:
    for folder in (shop, shop.parent / "bank"):
        (folder / "tools").mkdir()
        for name in ("tools/name.txt", "name.txt"):
            (folder / name).write_text(f'{{"score": 1, "reasoning": "{folder.name}"}}')
    judges = "[{name: j, type: code_judge, config: {script: [cat, name.txt], cwd: tools}}]"
    cat = "adapter: cli, command: [cat, name.txt]"
    systems = f"[{{name: s, {cat}, cwd: tools}}, {{name: t, {cat}}}]"
    lines = [line for line in SUITE.splitlines() if not line.startswith(("systems", "evaluators"))]
    (shop / "eval.yaml").write_text("\n".join([*lines, f"systems: {systems}", f"evaluators: {judges}"]))
    suite = load_suite(shop / "eval.yaml")
    told = [str(warning) for warning in all_warnings(suite)]
    bank = shop.parent / "bank"
    assert [line for line in told if str(bank / "name.txt") in line and str(shop / "name.txt") in line]
    assert len([line for line in told if f"'tools' is {shop / 'tools'}" in line]) == 2
    outcome = run_suite(suite, RunOptions(out=shop / "runs"))
    reader, _ = open_run(outcome.run_dir)
    said = {trace.variant_name: str(trace.output.final_answer) for trace in reader.traces(Trace)}
    assert ("shop" in said["s"], "bank" in said["t"]) == (True, True)
    assert {result.reason for result in reader.results(EvaluationResult)} == {"shop"}


def test_a_command_in_a_workspace_has_its_own_files(shop: Path) -> None:
    (shop / "files").mkdir()
    for folder in (shop, Path()):
        (folder / "name.txt").write_text("x")
    for workspace in (None, Plugin("tempdir_snapshot", {"copy_from": "files"})):
        made = load_suite(shop / "eval.yaml", to_run=False)
        made.variants, made.evaluators = [Variant("s", "cli", {"command": ["cat", "name.txt"]})], []
        made.workspace = workspace
        assert [problem.key for problem in doubled_files(made)] == ([] if workspace else ["s"])


TWICE = '"id": "a", "input": "x", "input": "y"'
NORTHSTAR = f'{{{TWICE}, "messages": [{{"role": "assistant", "content": "x"}}], "expected": {{"contains": "x"}}}}'
LETTA = """
name: l
dataset: rows.jsonl
target: {kind: python, callable: "agent_of_two_folders.py:answer"}
graders: {g: {kind: tool, function: contains}}
gate: {kind: simple, metric_key: g, aggregation: avg_score, op: gte, value: 0.5}
"""
PROMPTFOO = "prompts: [hi]\nproviders: [echo]\ntests: file://rows.jsonl\n"


@pytest.mark.parametrize(
    ("format_", "name", "text", "rows"),
    [
        ("native", "eval.yaml", SUITE.replace("yaml, path: cases.yaml", "jsonl, path: rows.jsonl"), TWICE),
        ("letta", "suite.yaml", LETTA, f'{TWICE}, "ground_truth": "z"'),
        ("agentv", "EVAL.yaml", "name: nn\ntests: rows.jsonl\n", f'{TWICE}, "criteria": "z"'),
        ("agentv", "rows.jsonl", "", f'{TWICE}, "criteria": "z"'),
        ("promptfoo", "promptfooconfig.yaml", PROMPTFOO, '"vars": {"input": 1, "input": 2}'),
        ("northstar", "rows.jsonl", "", NORTHSTAR[1:-1]),
        ("northstar", "rows.json", f"[{NORTHSTAR}]", ""),
    ],
)
def test_a_key_that_comes_twice_in_a_file_of_json_is_told(
    shop: Path, format_: str, name: str, text: str, rows: str
) -> None:
    if rows:
        (shop / "rows.jsonl").write_text(f"{{{rows}}}\n")
    if text:
        (shop / name).write_text(text)
    told = [str(warning) for warning in all_warnings(load_suite(shop / name, format_, to_run=False))]
    assert len([line for line in told if "rows.json" in line and "the key 'input' occurs more than once" in line]) == 1


def test_files_of_the_working_directory_are_used_where_the_suite_has_none(shop: Path) -> None:
    for name in ("cases.yaml", "prices.yaml", CODE):
        (shop / name).unlink()
    suite = load_suite(shop / "eval.yaml", to_run=False)
    assert [case.id for case in suite.cases] == ["bank"]
    assert list(all_warnings(suite)) == []


def test_both_workspaces_are_named(shop: Path) -> None:
    for folder in (shop, Path()):
        (folder / "files").mkdir()
    text = SUITE + "workspace: {type: tempdir_snapshot, copy_from: files}\n"
    (shop / "eval.yaml").write_text(text)
    told = [str(warning) for warning in load_suite(shop / "eval.yaml").warnings]
    assert any(str(shop / "files") in line and "workspace.copy_from" in line for line in told)


def test_what_a_run_executes_is_its_code_and_the_programs_of_its_commands(shop: Path) -> None:
    commands = [["curl", "-s"], "grep -q done", ["curl", "-v"], 7]
    shell = [Variant(f"s{n}", "cli", {"command": command}) for n, command in enumerate(commands)]
    assert executed(suite(shop, ["x"], variants=shell)) == ["curl", "grep"]
    assert executed(load_suite(shop / "eval.yaml")) == [str(seen_from_here(shop / CODE))]


def test_without_network_programs_of_the_suite_are_told(tmp_path):
    shell = Variant("shell", "cli", {"command": ["curl", "-s"]})
    judge = EvaluatorSpec("judge", "command_exit_code", {"checks": [{"cmd": "grep -q done"}]})
    made = suite(tmp_path, ["x"], variants=[shell], evaluators=[judge, SAYS_DONE])
    assert [*beyond_reach(made)] == []
    with Session():
        refuse_network()
        told = {problem.key: problem.message for problem in beyond_reach(made)}
    assert told == {
        name: f"--no-network does not restrict the program {program!r}"
        for name, program in (("shell", "curl"), ("judge", "grep"))
    }
