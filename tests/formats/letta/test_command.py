"""`evalwright letta`: the original's flags, words and exit codes."""

import pytest

import warm

SUITE = """\
name: support
dataset: data.jsonl
target: {kind: letta_agent, agent_id: agent-1, backend: "agent.py:answers"}
graders:
  right: {kind: tool, function: contains, display_name: Right answer}
gate: {kind: simple, metric_key: right, op: gte, value: 0.5}
"""


@pytest.fixture
def project(tmp_path):
    (tmp_path / "agent.py").write_text('def answers(message, ctx):\n    return f"Paris {ctx.model} {ctx.run}"\n')
    (tmp_path / "data.jsonl").write_text('{"input": "capital of France?", "ground_truth": "Paris"}\n')
    (tmp_path / "suite.yaml").write_text(SUITE)
    (tmp_path / "broken.py").write_text('def answers(message, ctx):\n    raise RuntimeError("down")\n')
    (tmp_path / "reward.yaml").write_text(SUITE[: SUITE.index("gate:")] + "reward: {kind: metric, metric_key: right}\n")
    (tmp_path / "broken.yaml").write_text(SUITE.replace("agent.py", "broken.py"))
    (tmp_path / "strange.yaml").write_text(SUITE + "nmae: x\n")
    (tmp_path / "bare.yaml").write_text(SUITE.replace("data.jsonl", "empty.jsonl"))
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "strict.yaml").write_text(SUITE.replace("value: 0.5", "value: 2"))
    return tmp_path


def letta_evals(project, *words):
    return warm.run(["-m", "evalwright", "letta", *words], cwd=project)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["run", "suite.yaml", "--quiet"], 0, "✓ PASSED\n"),
        (["run", "strict.yaml", "-q", "--api-key", "k", "--base-url", "http://x"], 1, "✗ FAILED\n"),
        (["run", "suite.yaml", "--display", "none"], 0, ""),
        (["run", "suite.yaml", "-q", "--target", "broken.py:answers"], 3, "! NOT MEASURED\n"),
        (["run", "reward.yaml", "-q", "--target", "broken.py:answers"], 3, "! NOT MEASURED\n"),
        (["run", "broken.yaml", "-q", "--max-error-rate", "0.5"], 1, "✗ FAILED\n"),
        (["run", "strange.yaml", "-q"], 0, "✓ PASSED\n"),
        (["run", "strange.yaml", "-q", "--strict"], 1, ""),
        (["validate", "strange.yaml", "--strict"], 1, ""),
        (["validate", "bare.yaml"], 1, ""),
        (["run", "bare.yaml", "-q"], 1, ""),
        (["run", "bare.yaml", "-q", "--allow-empty"], 3, "! NOT MEASURED\n"),
        (["run", "nowhere.yaml"], 1, ""),
        (["run", "suite.yaml", "--display", "blink"], 1, ""),
        (["run"], 2, ""),
        (["validate", "nowhere.yaml"], 1, ""),
        (["list-graders"], 0, "ascii_printable_only\ncontains\nexact_match\nregex_match\n"),
    ],
)
def test_words_and_exit_codes_are_the_originals(project, words, code, said):
    done = letta_evals(project, *words)
    assert (done.returncode, done.stdout) == (code, said)


def evalwright(project, *words):
    return warm.run(["-m", "evalwright", *words], cwd=project, check=True)


@pytest.mark.parametrize("command", [letta_evals, evalwright])
def test_a_suite_is_run_as_its_flags_want(project, command):
    flags = ["--num-runs", "2", "--max-concurrent", "1", "--model-handle", "m/1"]
    command(project, "run", "suite.yaml", "-q", "-o", "out", *flags)
    assert '"Paris m/1 2"' in (project / "out" / "run_2" / "results.jsonl").read_text()


def test_flags_of_a_letta_server_are_accepted_and_a_display_of_none_prints_the_folder_only(project):
    words = ["run", "suite.yaml", "--display", "none", "--api-key", "k", "--base-url", "http://x", "--project-id", "p"]
    done = evalwright(project, *words)
    assert [line.partition("/")[0] for line in done.stdout.splitlines()] == ["runs"]


def test_an_interrupted_run_has_not_failed(project):
    """As by Ctrl-C in the first sample."""
    (project / "agent.py").write_text(
        'import os, signal\n\n\ndef answers(m, c):\n    os.kill(os.getpid(), signal.SIGINT)\n    return "Paris"\n'
    )
    (project / "data.jsonl").write_text('{"input": "a", "ground_truth": "Paris"}\n{"input": "b"}\n')
    done = letta_evals(project, "run", "suite.yaml", "-q", "--max-concurrent", "1", "-o", "out")
    assert (done.returncode, done.stdout) == (130, "! INTERRUPTED\n")
    assert (project / "out" / "summary.json").is_file()


def test_a_dataset_without_samples_may_be_allowed(project):
    done = letta_evals(project, "validate", "bare.yaml", "--allow-empty")
    assert (done.returncode, ", 0 samples" in done.stdout) == (0, True)


def test_a_valid_suite_is_described(project):
    done = letta_evals(project, "validate", "suite.yaml")
    assert done.returncode == 0
    assert "data.jsonl, 1 samples" in done.stdout
    assert "Right answer: tool" in done.stdout
