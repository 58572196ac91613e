"""Runs of evals with and without the skill, by an agent that prints recorded streams."""

import json
import shlex
from pathlib import Path

import pytest

from evalwright.convert.conversion import convert
from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from evalwright.llm.choices import ModelChoices
from evalwright.llm.prices import built_in_price, dollars
from evalwright.run.export import export_run
from evalwright.run.options import RunOptions
from evalwright.run.start import run_suite
from formats.skills.skill import ASKED, EVALS, JUDGE, agent, ran, records, said, skill_in
from targets.agents import CODEX, lines

USED = ("Skill", {"skill": "gsm8k-cot"})
READ = ("Bash", {"command": "cat .claude/skills/gsm8k-cot/SKILL.md"})


def graded(outcome, path):
    return json.loads((outcome.run_dir / "benchmark" / path).read_text())


def cells(outcome):
    return {(v["case_id"], v["variant_name"], v["trial"]): v["status"] for v in records(outcome, "verdicts.jsonl")}


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """Two trials, in which the skill helps with one case of two."""
    folder = tmp_path_factory.mktemp("skill")
    with_skill = said("By the gsm8k-cot skill: a semicolon. Line 7.", USED, READ, ("Write", {"path": "made.txt"}))
    ASKED.clear()
    found = ran(skill_in(folder), agent(folder, with_skill, said("A semicolon.")), trials=2)
    return found, folder, [*ASKED]


def test_cells_alternate_in_fresh_workspaces_with_their_own_files(outcome):
    found, folder, _ = outcome
    order = [(t["case_id"], t["variant_name"], t["trial"]) for t in records(found, "traces.jsonl")]
    one, other = "with_skill", "without_skill"
    assert order == [
        ("1", one, 0), ("1", other, 0), ("1", other, 1), ("1", one, 1),
        ("two", other, 0), ("two", one, 0), ("two", one, 1), ("two", other, 1),
    ]  # fmt: skip
    seen = [block.split() for block in (folder / "seen").read_text().split("--\n")[:-1]]
    skill = ["./.claude/skills/gsm8k-cot/SKILL.md", "./.claude/skills/gsm8k-cot/scripts/x.py"]
    assert seen[:2] == [[*skill, "./evals/files/in.csv", "./prompt.txt"], ["./evals/files/in.csv", "./prompt.txt"]]
    assert seen[4:6] == [["./prompt.txt"], [*skill, "./prompt.txt"]]


def test_a_case_passes_when_all_criteria_do_and_the_run_when_all_with_the_skill_do(outcome):
    found, _, _ = outcome
    assert cells(found) == {
        ("1", "with_skill", 0): "pass", ("1", "with_skill", 1): "pass",
        ("1", "without_skill", 0): "fail", ("1", "without_skill", 1): "fail",
        ("two", "with_skill", 0): "pass", ("two", "with_skill", 1): "pass",
        ("two", "without_skill", 0): "pass", ("two", "without_skill", 1): "pass",
    }  # fmt: skip
    assert found.exit_code == 0, "what is without the skill never decides"
    scores = {v["variant_name"]: v["score"] for v in records(found, "verdicts.jsonl") if v["case_id"] == "1"}
    assert scores == {"with_skill": 1.0, "without_skill": 0.5}
    rows = [row for row in records(found, "results.jsonl") if row["case_id"] == "1" and row["trial"] == 0]
    named = {(row["variant_name"], row["evaluator"]): row for row in rows}
    assert named["with_skill", "criterion-2"]["reason"] == "“Line”"
    assert named["with_skill", "criterion-2"]["detail"]["text"] == "Line: names line 7"
    assert named["with_skill", "skill_used"]["passed"]
    assert named["without_skill", "skill_used"]["skipped"]


def test_use_of_a_skill_is_unknown_where_no_tool_call_is_seen(tmp_path):
    """An agent that prints plain text may have read the skill, or not."""
    evals = [{"id": i, "prompt": "p", "expected_output": "semicolon", **more} for i, more in enumerate(
        ({}, {"should_trigger": False}, {"should_trigger": True}))]  # fmt: skip
    script = shlex.join(["/bin/sh", "-c", "cat .agents/skills/*/SKILL.md >/dev/null; echo semicolon"])
    found = ran(skill_in(tmp_path, evals), None, options={"agent": (script,)})
    rows = [row for row in records(found, "results.jsonl") if row["evaluator"] == "skill_used"]
    assert {row["reason"] for row in rows if row["skipped"]} == {
        "whether a skill was used is not known: the agent's output shows no tool calls (see its key `output`)"
    }
    told = cells(found)
    assert told["0", "with_skill", 0] == told["1", "without_skill", 0] == "pass"
    assert told["1", "with_skill", 0] == told["2", "with_skill", 0] == "error"
    assert found.exit_code == 3


def test_judges_are_blind_to_the_variant_and_see_the_work(outcome):
    _, _, asked = outcome
    assert len(asked) == 12, "one call for each criterion"
    assert not any("gsm8k" in text or "with_skill" in text or "Skill" in text for text in asked)
    assert sum("made.txt (added, 5 bytes):\nmade" in text for text in asked) == len(asked)
    assert any('1. Write {"path": "made.txt"}' in text and "semicolon. Line 7." in text for text in asked)
    assert sum("It names the line." in text for text in asked) == 8, "the description of success"


def test_the_comparison_is_paired_by_cases(outcome):
    found, _, _ = outcome
    report = found.summary.comparison
    assert report.baseline == "without_skill"
    assert report.decision.n == 2
    assert report.deltas[0].pass_rate_delta == 0.5
    assert report.deltas[0].improvements == ["1"]
    assert found.summary.native["hold_everywhere"] == ["1 criterion-1", "two expected_output"]
    assert any("hold in all variants" in warning for warning in found.summary.warnings)


def test_the_files_of_skill_creator_are_written(outcome):
    found, _, _ = outcome
    folder = "eval-1/without_skill/run-2"
    grading = graded(found, f"{folder}/grading.json")
    assert grading["expectations"] == [
        {"text": "semicolon", "passed": True, "evidence": "“semicolon”"},
        {"text": "Line: names line 7", "passed": False, "evidence": "not there"},
    ]
    assert grading["summary"] == {"pass_rate": 0.5, "passed": 1, "failed": 1, "total": 2}
    metrics = graded(found, "eval-1/with_skill/run-1/grading.json")["execution_metrics"]
    assert metrics["tool_calls"] == {"Skill": 1, "Bash": 1, "Write": 1}
    assert metrics["total_tool_calls"] == 3
    timing = graded(found, f"{folder}/timing.json")
    assert timing["total_tokens"] == 117
    assert timing["total_duration_seconds"] == timing["duration_ms"] / 1000
    assert (found.run_dir / "benchmark" / folder / "outputs/made.txt").read_text() == "made\n"
    about = graded(found, "eval-two/eval_metadata.json")
    assert about == {"eval_id": "two", "eval_name": "windows", "prompt": "And on Windows?", "assertions": ["semicolon"]}


def test_an_eval_without_a_name_has_the_same_one_in_its_folder_and_in_the_benchmark(outcome):
    found, *_ = outcome
    named = {run["eval_id"]: run["eval_name"] for run in graded(found, "benchmark.json")["runs"]}
    assert named == {"1": "eval-1", "two": "windows"}
    assert graded(found, "eval-1/eval_metadata.json")["eval_name"] == "eval-1"


def aggregated(folder: Path):
    """As skill-creator's script: of each run its grading and, where that has no time of its own, its timing."""
    runs = {}
    for grading in sorted(folder.glob("eval-*/*/run-*/grading.json")):
        values = json.loads(grading.read_text())
        timing = json.loads(grading.with_name("timing.json").read_text())
        assert "total_duration_seconds" not in values["timing"], "else the script takes characters for tokens"
        numbers = (values["summary"]["pass_rate"], timing["total_duration_seconds"], timing["total_tokens"])
        runs.setdefault(grading.parts[-3], []).append(numbers)
    found = {}
    for name, rows in runs.items():
        found[name] = {}
        for key, column in zip(("pass_rate", "time_seconds", "tokens"), zip(*rows, strict=True), strict=True):
            mean = sum(column) / len(column)
            deviation = (sum((x - mean) ** 2 for x in column) / (len(column) - 1)) ** 0.5
            numbers = {"mean": mean, "stddev": deviation, "min": min(column), "max": max(column)}
            found[name][key] = {what: round(number, 4) for what, number in numbers.items()}
    return found


def test_the_summary_is_that_of_skill_creators_own_script(outcome):
    found, _, _ = outcome
    document = graded(found, "benchmark.json")
    summary = document["run_summary"]
    delta = summary.pop("delta")
    assert summary == aggregated(found.run_dir / "benchmark")
    assert delta["pass_rate"] == "+0.25"
    assert delta["tokens"] == "+0"
    assert document["metadata"]["evals_run"] == ["1", "two"]
    assert document["metadata"]["runs_per_configuration"] == 2
    assert document["metadata"]["errors"] == {"with_skill": 0, "without_skill": 0}
    assert [(run["eval_id"], run["configuration"], run["run_number"]) for run in document["runs"]] == [
        (case, name, number) for case in ("1", "two") for name in ("with_skill", "without_skill") for number in (1, 2)
    ]
    compared = document["comparison"][0]
    assert (compared["configuration"], compared["baseline"], compared["difference"]) == (
        "with_skill",
        "without_skill",
        0.5,
    )
    assert document["per_eval"]["with_skill"]["usd"] == 0.25
    text = (found.run_dir / "benchmark/benchmark.md").read_text()
    assert "| Pass Rate | 100% ± 0% | 75% ± 29% | +0.25 |" in text
    assert "pass rate +0.50" in text


def test_a_skill_that_must_not_trigger_and_one_found_without_being_given(tmp_path):
    evals = [
        {"id": "a", "prompt": "x", "should_trigger": False},
        {"id": "b", "prompt": "x", "should_trigger": True, "assertions": ["semicolon"]},
        {"id": "c", "prompt": "x"},
    ]
    found = ran(skill_in(tmp_path, evals), agent(tmp_path, said("semicolon", USED), said("semicolon", READ)))
    one, other = "with_skill", "without_skill"
    status = cells(found)
    assert [status[case, one, 0] for case in "abc"] == ["fail", "pass", "skip"]
    assert [status[case, other, 0] for case in "abc"] == ["error"] * 3
    rows = records(found, "results.jsonl")
    contaminated = [row["error"]["type"] for row in rows if row["variant_name"] == other and row["error"]]
    assert contaminated == ["contaminated"] * 3
    assert found.exit_code == 1
    document = graded(found, "benchmark.json")
    assert document["metadata"]["errors"] == {one: 0, other: 3}
    assert {run["configuration"] for run in document["runs"]} == {one}
    assert document["runs"][0]["expectations"][0]["text"] == "The skill is not used."


def test_errors_of_agents_have_no_verdict_and_are_in_no_mean(tmp_path):
    command = agent(tmp_path, said("semicolon"), b'{"type": "assistant"}\n')
    found = ran(skill_in(tmp_path), command, options={"gate": "better"})
    assert found.exit_code in (1, 3)
    assert not found.summary.gate.passed
    assert [status for (_, name, _), status in cells(found).items() if name == "without_skill"] == ["error"] * 2
    document = graded(found, "benchmark.json")
    assert document["metadata"]["errors"]["without_skill"] == 2
    assert "without_skill" not in document["run_summary"]


def test_a_run_of_the_skill_alone_or_of_two_agents_names_its_variants(tmp_path):
    evals = [*EVALS[:1], {**EVALS[1], "files": ["evals/files"]}]
    path, command = skill_in(tmp_path, evals), agent(tmp_path, said("semicolon Line"), said("no"))
    found = ran(path, command, options={"variants": "with_skill", "benchmark": tmp_path / "b"}, cases=("windows",))
    assert cells(found) == {("two", "with_skill", 0): "pass"}
    assert (tmp_path / "b/benchmark.json").is_file()
    assert {Path(name).name for name in found.plan.files} == {"evals.json", "SKILL.md", "in.csv", "other.csv"}
    options = {
        "agent": ("codex", "/bin/cat"),
        "model": ("m/1", "m2"),
        "judge_model": JUDGE,
        "baseline": path.parents[1],
    }
    suite = load_suite(path, options=options, to_run=False)
    names = [f"{agent}-{model}/{kind}" for agent in ("codex", "cat") for model in ("m-1", "m2") for kind in
             ("with_skill", "old_skill")]  # fmt: skip
    assert [variant.name for variant in suite.variants] == names
    assert suite.variants[4].config["command"] == ["/bin/cat"]
    (path.parents[1] / "SKILL.md").unlink()
    alone = {"agent": ("/bin/cat",), "variants": "without_skill"}
    found = ran(path, None, options=alone, cases=("windows",))
    assert [*cells(found)] == [("two", "without_skill", 0)]
    assert found.exit_code == 0
    assert found.summary.gate.reason == "nothing decides: no variant has the skill"


def test_agents_and_models_with_one_short_name_are_kept_apart(tmp_path):
    """By what differs in their command lines, else by a number: two variants of one name would be counted as one."""
    path, bad = skill_in(tmp_path), tmp_path / "bad.sh"
    (tmp_path / "good.sh").write_text("echo semicolon Line")
    bad.write_text("echo bad")
    agents = (f"sh {tmp_path}/good.sh", f"sh {bad}")
    found = ran(path, None, options={"agent": agents, "variants": "with_skill"}, cases=("windows",))
    assert cells(found) == {("two", "sh-good.sh/with_skill", 0): "pass", ("two", "sh-bad.sh/with_skill", 0): "fail"}

    def names(*agents, **options):
        suite = load_suite(path, options={"agent": agents, "variants": "with_skill", **options}, to_run=False)
        return [variant.name.removesuffix("/with_skill") for variant in suite.variants]

    assert names("sh a.sh", "python3 b.py", "codex") == ["sh", "python3", "codex"]
    assert names("/opt/a/x", "/opt/b/x") == ["opt-a-x", "opt-b-x"]
    assert names("codex", "/bin/codex") == ["codex", "bin-codex"]
    assert names("codex", model=("a/b", "a-b", "A-b")) == ["a-b", "a-b-2", "A-b-3"]
    assert names("x", "x-y", model=("y", "y-y")) == ["x-y", "x-y-y", "x-y-y-2", "x-y-y-y"]
    long = "x" * 80
    assert names(f"sh -c '{long} 1'", f"sh -c '{long} 2'") == ["sh", "sh-2"]


def test_tokens_of_a_model_with_a_list_price_give_the_cost_that_an_agent_does_not_say(tmp_path):
    """As of the same agent in an eval.yaml; of a model that is not listed it is unknown."""
    path, command = skill_in(tmp_path, EVALS[1:]), agent(tmp_path, lines(*CODEX), lines(*CODEX))
    options = {"agent": ("codex",), "agent_command": command, "model": ("gpt-5", "own-model")}
    found = ran(path, None, options=options)
    costs = {trace["variant_name"]: trace["metrics"]["cost_usd"] for trace in records(found, "traces.jsonl")}
    used = records(found, "traces.jsonl")[0]["metrics"]
    price = built_in_price("gpt-5")
    tokens = used["token_input"], used["token_output"], used["custom"].get("cache_read_tokens", 0)
    assert costs["gpt-5/with_skill"] == costs["gpt-5/without_skill"] == dollars(price, *tokens) > 0
    assert costs["own-model/with_skill"] is None
    assert [line for line in found.plan.warnings if "gpt-5 cost, built-in prices of" in line]
    assert not load_suite(path, options=options, to_run=False).prices


def test_the_native_form_runs_alike(tmp_path):
    path, command = skill_in(tmp_path), agent(tmp_path, said("semicolon Line"), said("no"))
    options = {"agent": ("claude",), "agent_command": command, "allow_tools": True, "judge_model": JUDGE}
    convert(path.parents[1], "native", tmp_path / "native", options=options)
    convert(path.parent, None, tmp_path / "from-evals", dialect="skills", options=options)
    assert (tmp_path / "from-evals/eval.yaml").is_file()
    with pytest.raises(InputError, match="is a folder, expected a file"):
        convert(path.parents[2], out=tmp_path / "none")
    read = load_suite(tmp_path / "native/eval.yaml")
    original = load_suite(path, options=options)
    limit = {"timeout_seconds": 600}
    assert [variant.config for variant in read.variants] == [limit | variant.config for variant in original.variants]
    assert read.workspace == original.workspace
    assert read.run == original.run
    assert read.totals == "skills"
    assert [case.extra["workspace_files"] for case in read.cases if "workspace_files" in case.extra] == [
        case.extra["workspace_files"] for case in original.cases if "workspace_files" in case.extra
    ]


def test_an_eval_yaml_names_evals_as_its_dataset(tmp_path):
    path, command = skill_in(tmp_path), agent(tmp_path, said("semicolon Line", USED), said("semicolon"))
    shared = {"adapter": "coding_agent", "agent": "claude", "allow_tools": True, "command": command}
    document = {
        "eval": {"name": "own"},
        "dataset": {"type": "skills", "path": "evals/evals.json", "judge_model": JUDGE},
        "systems": [{"name": "a", "skills": ["."], **shared}, {"name": "b/without_skill", **shared}],
        "output": [{"type": "local_files", "path": str(tmp_path / "runs")}],
        "run": {"max_concurrency": 1},
    }
    (path.parents[1] / "eval.yaml").write_text(json.dumps(document))
    suite = load_suite(path.parents[1] / "eval.yaml")
    found = run_suite(suite, RunOptions(models=ModelChoices(no_cache=True)))
    assert [*cells(found)] == [(case, name, 0) for case, names in {"1": "ab", "two": "ba"}.items() for name in
                               ("a" if one == "a" else "b/without_skill" for one in names)]  # fmt: skip
    assert found.exit_code == 0
    rows = records(found, "results.jsonl")
    used = {row["variant_name"]: row["skipped"] for row in rows if row["evaluator"] == "skill_used"}
    assert used == {"a": False, "b/without_skill": True}
    document["evaluators"] = [{"name": "short", "type": "text_check", "config": {"check": "contains", "value": "x"}}]
    (path.parents[1] / "eval.yaml").write_text(json.dumps(document))
    suite = load_suite(path.parents[1] / "eval.yaml")
    assert [case.evaluators[0].name for case in suite.cases] == ["short", "short"]
    document["dataset"]["sample"] = 1
    (path.parents[1] / "eval.yaml").write_text(json.dumps(document))
    with pytest.raises(InputError, match="--limit"):
        load_suite(path.parents[1] / "eval.yaml")


def test_an_export_of_the_run_is_the_benchmark_that_it_wrote(outcome, tmp_path):
    found, _, _ = outcome
    export_run(found.run_dir, None, tmp_path / "later", str)
    written, later = (
        {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in (found.run_dir / "benchmark", tmp_path / "later")
    )
    assert later == written
    assert "eval-1/with_skill/run-1/outputs/made.txt" in later
