"""What the command line says about models is looked at before anything is run."""

import json
import os

import pytest

from evalwright.cli import main

SUITE = """
eval: {name: asked}
dataset: {type: jsonl, path: cases.jsonl}
systems: [{name: a, adapter: python_function, target: "json:dumps"}]
evaluators: [{name: j, type: llm_judge, config: {model: gpt-test, nl_assertions: [is nice]}}]
output: {type: local_files, path: runs}
"""


@pytest.fixture
def suite(tmp_path):
    (tmp_path / "eval.yaml").write_text(SUITE)
    (tmp_path / "cases.jsonl").write_text(json.dumps({"id": "c1", "input": {"user_message": "hi"}}))
    (tmp_path / "file").write_text("no recording")
    return tmp_path


@pytest.mark.parametrize("option", ["--replay=gone", "--replay=file", "--record=file/x", "--cache=file/x"])
def test_a_file_that_cannot_be_used_ends_it_before_the_run(suite, option, capsys):
    name, _, file = option.partition("=")
    with pytest.raises(SystemExit) as ended:
        main(["run", str(suite / "eval.yaml"), name, str(suite / file)])
    assert (ended.value.code, (suite / "runs").exists()) == (2, False)
    assert str(suite / file) in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--replay", "--record", "--cache"])
def test_a_pipe_is_not_opened_as_another_process_may_never_do_so(suite, option, capsys):
    os.mkfifo(suite / "pipe")
    with pytest.raises(SystemExit) as ended:
        main(["run", str(suite / "eval.yaml"), option, str(suite / "pipe")])
    assert (ended.value.code, (suite / "runs").exists()) == (2, False)
    assert f"{suite / 'pipe'}: expected a file, found a pipe" in capsys.readouterr().err
