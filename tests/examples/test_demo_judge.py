"""The built-in example has a judge that needs no key: its replies are recorded."""

import json
import os

import pytest

import warm
from evalwright.cli.demo import write_example


def run(folder, *arguments):
    keyless = {name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_BASE_URL"))}
    words = ["-m", "evalwright", "run", "judged.yaml", "--replay", "judgements.jsonl", "--no-network", "--json"]
    done = warm.run([*words, *arguments], cwd=folder, env=keyless)
    return done.returncode, json.loads(done.stdout)["summary"]


@pytest.fixture
def folder(tmp_path):
    write_example(tmp_path)
    return tmp_path


def test_every_reply_is_there_and_the_judge_sees_what_hasty_leaves_out(folder):
    code, summary = run(folder)
    cells = {variant["name"]: variant["cells"] for variant in summary["variants"]}
    assert [(cells[name]["pass"], cells[name]["fail"]) for name in ("careful", "hasty")] == [(5, 1), (4, 2)]
    assert code == 1


def test_another_question_is_not_in_the_recording(folder):
    suite = folder / "judged.yaml"
    suite.write_text(suite.read_text().replace("Every question", "Each question"))
    run(folder)
    [results] = folder.glob("runs/*/results.jsonl")
    assert {json.loads(line)["error"]["type"] for line in results.read_text().splitlines()} == {"not_recorded"}
