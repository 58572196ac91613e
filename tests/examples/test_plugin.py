"""The example plug-in, installed as a package, is used by its names."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PLUGIN = Path(__file__).parents[2] / "examples" / "evalwright-plugin-example"
SUITE = """
eval: {name: plugin}
dataset: {type: jsonl, path: cases.jsonl}
systems:
  - {name: canned, adapter: canned, answers: {a: one two three, b: one}}
evaluators:
  - {name: words, type: word_count, config: {minimum: 2, maximum: 5}}
output: {type: local_files, path: runs}
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with the package in it, made by pip without the network."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*command, "--target", str(folder), str(PLUGIN)], check=True)
    return folder


def evalwright(installed, folder, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "evalwright", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_suite_uses_the_evaluator_and_the_target(installed, tmp_path):
    (tmp_path / "eval.yaml").write_text(SUITE)
    (tmp_path / "cases.jsonl").write_text(
        '{"id": "a", "input": {}}\n{"id": "b", "input": {}}\n{"id": "c", "input": {}}\n'
    )
    done = evalwright(installed, tmp_path, "run", "eval.yaml")
    assert done.returncode == 3, done.stderr
    assert "1 words, expected 2 to 5" in done.stdout
    assert "no canned answer for 'c'" in done.stdout


def test_its_configuration_is_checked_like_ours(installed, tmp_path):
    (tmp_path / "eval.yaml").write_text(SUITE.replace("maximum: 5", "maximun: 5").replace("answers:", "answer:"))
    (tmp_path / "cases.jsonl").write_text('{"id": "a", "input": {}}\n')
    done = evalwright(installed, tmp_path, "run", "eval.yaml")
    assert done.returncode == 2
    assert "maximun" in done.stderr
    assert 'did you mean "maximum"' in done.stderr
    assert "systems.0.answers" in done.stderr


def test_lists_say_where_a_name_comes_from(installed, tmp_path):
    done = evalwright(installed, tmp_path, "list", "evaluators")
    [line] = [line for line in done.stdout.splitlines() if "word_count" in line]
    assert "evalwright-plugin-example" in line
