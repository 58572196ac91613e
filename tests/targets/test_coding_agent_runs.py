"""Runs of coding agents: what is stored of each cell, and when a run ends."""

import json

from targets.agents import (
    CLAUDE,
    CODEX,
    RESULT,
    lines,
    printing,
)

SUITE = """
eval: {name: agents}
dataset: {type: yaml, path: cases.yaml}
workspace: {type: tempdir_snapshot}
systems:
  - {name: a, adapter: coding_agent, agent: claude, allow_tools: true, command: COMMAND, skills: [skill]}
  - {name: b, adapter: coding_agent, agent: claude, allow_tools: true, command: COMMAND, timeout: 900}
evaluators:
  - {name: done, type: field_check, config: {field: output.final_answer, equals: Done.}}
run: {max_concurrency: 1}
output: [{type: local_files, path: runs}]
"""


def suite_in(folder, command, cases=2):
    (folder / "skill").mkdir(exist_ok=True)
    (folder / "skill/SKILL.md").write_text("---\nname: s\n---\n")
    (folder / "eval.yaml").write_text(SUITE.replace("COMMAND", json.dumps(command)))
    (folder / "cases.yaml").write_text(
        "cases:\n" + "".join(f"- {{id: c{i}, input: {{prompt: x}}}}\n" for i in range(cases))
    )
    return folder / "eval.yaml"


def test_a_run_keeps_the_stream_with_the_changes_of_each_cell(tmp_path):
    from evalwright.formats.loading import load_suite
    from evalwright.run.options import RunOptions
    from evalwright.run.start import run_suite

    command = printing(lines(*CLAUDE, RESULT), tmp_path, then="echo > made.txt")
    suite = load_suite(suite_in(tmp_path, command))
    assert [variant.timeout_seconds for variant in suite.variants] == [600, 900]
    outcome = run_suite(suite, RunOptions(out=tmp_path / "runs"))
    assert outcome.exit_code == 0
    streams = sorted(outcome.run_dir.glob("artifacts/**/beside/stream.jsonl"))
    assert [stream.read_bytes() for stream in streams] == [lines(*CLAUDE, RESULT)] * 4
    records = [json.loads(file.read_text()) for file in outcome.run_dir.glob("artifacts/**/artifact.json")]
    assert [record["diff"]["added"] for record in records] == [["made.txt"]] * 4


def test_a_failure_to_sign_in_ends_the_run_once(tmp_path):
    from evalwright.formats.loading import load_suite
    from evalwright.run.options import RunOptions
    from evalwright.run.start import run_suite

    said = lines({**RESULT, "is_error": True, "result": "Invalid API key · Please run /login"})
    suite = load_suite(suite_in(tmp_path, printing(said, tmp_path, then="exit 1"), cases=3))
    outcome = run_suite(suite, RunOptions(out=tmp_path / "runs"))
    assert outcome.exit_code == 3
    assert sum(variant.cells_total for variant in outcome.summary.variants) == 1, (
        "the other system has the same account"
    )
    assert [note for note in outcome.notes if "not signed in" in note and "/login" in note] == outcome.notes[:1]
    assert outcome.summary.warnings.count(outcome.notes[0]) == 1


def test_the_end_of_a_run_tells_what_limits_and_agents_said_about_their_work(tmp_path):
    from evalwright.formats.loading import load_suite
    from evalwright.run.options import RunOptions
    from evalwright.run.start import run_suite

    stopped = lines(*CLAUDE, {**RESULT, "subtype": "error_max_turns", "is_error": True, "result": None})
    text = suite_in(tmp_path, printing(stopped, tmp_path)).read_text()
    said = {"id": "i0", "type": "error", "message": "No metadata of the model."}
    (codex := tmp_path / "codex").mkdir()
    warned = printing(lines(*CODEX[:2], {"type": "item.completed", "item": said}, *CODEX[2:]), codex)
    other = f"agent: codex, command: {json.dumps(warned)}, timeout: 900"
    text = "".join(line for line in text.splitlines(True) if "name: b" not in line)
    text = text.replace("evaluators:", f"  - {{name: b, adapter: coding_agent, {other}}}\nevaluators:")
    (tmp_path / "eval.yaml").write_text(text)
    outcome = run_suite(load_suite(tmp_path / "eval.yaml"), RunOptions(out=tmp_path / "runs"))
    assert outcome.exit_code == 0
    assert [warning for warning in outcome.summary.warnings if " in 2 of 2 replies" in warning] == [
        "a: the limit max_turns ended the work in 2 of 2 replies",
        "b: the agent's output has warnings in 2 of 2 replies: No metadata of the model.",
    ]
