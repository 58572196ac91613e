"""What judges of newer suites are shown, and how what is required is named."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from evalwright.formats.agentv.report import AgentvResults
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.trace import Trace
from evalwright.reports.inspection import cell_lines
from evalwright.reports.text import Paint
from evalwright.run.options import RunOptions
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run
from formats.agentv.newer_suites import ECHO, HI, load, one, problems, statuses


def test_a_program_may_print_the_prompt_of_a_judge(folder: Path) -> None:
    program = "import json, sys; d = json.load(sys.stdin); print(d['config']['word'], d['output'], d['criteria'])"
    command = "echo '{\"score\": 1}'; echo {PROMPT} > asked.txt"
    judge = {"name": "judge", "provider": "cli", "command": command}
    (folder / "targets.yaml").write_text(json.dumps({"targets": [{**ECHO, "grader_target": "judge"}, judge]}))
    prompt = {"command": [sys.executable, "-c", program], "config": {"word": "Judge"}}
    case = one(criteria="greets", assertions=[{"type": "llm-grader", "prompt": prompt}])
    assert statuses(folder, tests=[case]) == {"a": "pass"}
    assert (folder / "asked.txt").read_text().rstrip().endswith("Judge hi greets")


def test_a_program_that_prints_a_prompt_works_where_it_is(folder: Path) -> None:
    (folder / "prompts").mkdir()
    (folder / "prompts" / "part.txt").write_text("Judge")
    (folder / "prompts" / "print.py").write_text("print(open('part.txt').read())")
    judge = {"name": "judge", "provider": "cli", "command": "echo {PROMPT} | grep -q Judge && echo '{\"score\": 1}'"}
    (folder / "targets.yaml").write_text(json.dumps({"targets": [{**ECHO, "grader_target": "judge"}, judge]}))
    prompt = {"command": [sys.executable, "prompts/print.py"]}
    assert statuses(folder, tests=[one(assertions=[{"type": "llm-grader", "prompt": prompt}])]) == {"a": "pass"}


def test_prompts_know_what_a_case_says_of_itself(folder: Path) -> None:
    judge = {"name": "judge", "provider": "cli", "command": "echo '{\"score\": 1}'; echo {PROMPT} > asked.txt"}
    (folder / "targets.yaml").write_text(json.dumps({"targets": [{**ECHO, "judge_target": "judge"}, judge]}))
    prompt = "{{ answer }} {{ description }} {{ conversation_id }}"
    case = one(
        description="of greetings",
        conversation_id="c7",
        criteria="x",
        assertions=[{"type": "llm-judge", "prompt": prompt}],
    )
    assert statuses(folder, tests=[case]) == {"a": "pass"}
    assert "hi of greetings c7" in (folder / "asked.txt").read_text()


def gated(folder: Path, reply: Any, **item: Any) -> tuple[str, str, str]:
    """The verdict of a case with one rubric, its reason, and what the judge was asked."""
    command = f"echo '{json.dumps({'checks': [{'id': 'r', **reply}]})}'; echo {{PROMPT}} > asked.txt"
    targets = [{**ECHO, "judge_target": "judge"}, {"name": "judge", "provider": "cli", "command": command}]
    (folder / "targets.yaml").write_text(json.dumps({"targets": targets}))
    suite = load(folder, evalcases=[one(expected_outcome="x", rubrics=[{"id": "r", "outcome": "kind", **item}])])
    reader, _ = open_run(run_suite(suite, RunOptions(out=folder / "runs")).run_dir)
    row = next(iter(reader.results(EvaluationResult)))
    return next(iter(reader.verdicts(CaseVerdict))).status, row.reason, (folder / "asked.txt").read_text()


def test_the_judge_knows_what_is_required_and_the_gate_is_named(folder: Path) -> None:
    status, reason, asked = gated(folder, {"satisfied": False}, required=True)
    assert (status, "required and not met: r" in reason, "weight 1, required" in asked) == ("fail", True, True)
    ranges = {"score_ranges": {0: "bad", 5: "good"}, "min_score": 0.9}
    status, reason, asked = gated(folder, {"score": 8.0}, **ranges)
    assert (status, "required and not met: r" in reason, "at least 9 of 10 required" in asked) == ("fail", True, True)
    assert gated(folder, {"score": 9.0}, **ranges)[0] == "pass"


def test_a_prompt_without_names_is_the_criterion_of_its_judge(folder: Path) -> None:
    judge = {"name": "judge", "provider": "cli", "command": "echo '{\"score\": 1}'; echo {PROMPT} > asked.txt"}
    (folder / "targets.yaml").write_text(json.dumps({"targets": [{**ECHO, "judge_target": "judge"}, judge]}))
    check = {"type": "llm-grader", "prompt": "Is the tone kind?"}
    assert statuses(folder, tests=[one(input="hello there", criteria="greets", assertions=[check])]) == {"a": "pass"}
    text = (folder / "asked.txt").read_text()
    assert ["Is the tone kind?" in text, "hello there" in text, "greets" in text] == [True, True, False]
    (folder / "kind.md").write_text('Reply with {"score": 1.0 | 0.0}: is it kind?')
    of_file = {**check, "prompt": "./kind.md"}
    assert statuses(folder, tests=[one(input="hello there", criteria="greets", assertions=[of_file])]) == {"a": "pass"}
    text = (folder / "asked.txt").read_text()
    assert ["is it kind?" in text, "hello there" in text, "kind.md" in text] == [True, True, False]
    for told in ({**of_file, "prompt": "file://kind.md"}, {**of_file, "name": "old", "type": "llm_judge"}):
        assert "uses neither" in problems(load(folder, tests=[one(criteria="greets", assertions=[told])]))[0]


def test_the_evaluator_that_is_required_is_named_where_it_decides(folder: Path) -> None:
    judge = {"type": "code-grader", "command": [sys.executable, "-c", "print('{\"score\": 0.85}')"], "name": "strict"}
    suite = load(folder, tests=[one(assertions=[HI, {**judge, "required": True, "min_score": 0.9}])])
    outcome = run_suite(suite, RunOptions(out=folder / "runs"))
    reader, _ = open_run(outcome.run_dir)
    verdict = next(iter(reader.verdicts(CaseVerdict)))
    assert (verdict.status, verdict.reasons[0].startswith("strict: required, at least 0.9")) == ("fail", True)
    assert verdict.reasons[0].count("required") == 1
    trace, rows = next(iter(reader.traces(Trace))), list(reader.results(EvaluationResult))
    shown = "\n".join(cell_lines(trace, rows, verdict.status, Paint(), 200))
    assert "strict 0.85  required, at least 0.9; " in shown
    assert shown.count("required") == 1, "what reached its score, or needs none, says nothing of it"
    line = json.loads(AgentvResults().render(reader, outcome.summary))
    strict = next(row for row in line["evaluator_results"] if row["name"] == "strict")
    assert strict["reasoning"].startswith("required, at least 0.9; ")
    assert "strict: required, at least 0.9; " in line["reasoning"]


def test_expected_blocks_are_json_for_judges_without_places_on_this_machine(folder: Path) -> None:
    (folder / "note.md").write_text("from a file\n")
    blocks = [{"type": "text", "value": "först"}, {"type": "file", "value": "note.md"}]
    case = one(criteria="x", expected_output=[{"role": "assistant", "content": blocks}])
    (read,) = load(folder, tests=[case]).cases
    seen = [blocks[0], {"type": "file", "path": "note.md", "text": "from a file\n"}]
    assert read.extra["reference_answer"] == json.dumps(seen, ensure_ascii=False, indent=2)
    (folder / "targets.yaml").write_text(
        json.dumps({"targets": [ECHO, {**ECHO, "name": "judge", "command": "echo {PROMPT} > asked"}]})
    )
    prompt = "{{expected_messages}} {{input_messages}} {{candidate_answer}}"
    judge = {"name": "j", "type": "llm_judge", "prompt": prompt, "target": "judge"}
    statuses(folder, tests=[{**case, "assert": [judge]}])
    assert "from a file" in (text := (folder / "asked").read_text())
    assert str(folder) not in text


def test_judges_are_shown_what_the_system_called_and_changed(folder: Path) -> None:
    (folder / "template").mkdir()
    message = {"text": "done", "output_messages": [{"role": "assistant", "content": "done", "tool_calls": [
        {"tool": "Read", "input": {"file_path": "notes.txt"}}]}]}  # fmt: skip
    command = f"echo made > made.txt; echo '{json.dumps(message)}' > {{OUTPUT_FILE}}"
    system = {"name": "default", "provider": "cli", "command": command, "workspace_template": "template"}
    judge = {"name": "judge", "provider": "cli", "command": "echo '{\"score\": 1}'; echo {PROMPT} >> asked.txt"}
    (folder / "targets.yaml").write_text(json.dumps({"targets": [{**system, "judge_target": "judge"}, judge]}))
    prompt = "{{ output }} called {{ tool_calls }}."
    checks = [{"type": "agent-judge", "max_steps": 3}, {"type": "llm-grader", "prompt": prompt}]
    suite = load(folder, tests=[one(criteria="x", assertions=checks)])
    assert statuses(folder, tests=[one(criteria="x", assertions=checks)]) == {"a": "pass"}
    assert [str(warning) for warning in suite.warnings if "opens no files" in warning.message] != []
    text = (folder / "asked.txt").read_text()
    assert 'Tool calls:\n- Read: {"file_path": "notes.txt"}' in text
    assert "Changes of files:" in text
    assert "+made" in text
    assert 'done called - Read: {"file_path": "notes.txt"}.' in text
