"""The runs that paths and globs on a command line name."""

import os
import re

import pytest

from evalwright.errors import InputError
from evalwright.run.named_runs import named_runs, runs_matching
from run.merging import TEXTS, sharded
from run.suites import suite


def test_runs_that_lie_deeper_are_pointed_at(tmp_path):
    sharded(suite(tmp_path, TEXTS), 2, tmp_path / "out")
    (tmp_path / "out" / "1" / "latest").symlink_to("nowhere")
    for text, deeper in (("out", "out/*/*"), ("out/*", "out/*/*"), ("out/1", "out/1/*")):
        with pytest.raises(InputError, match=re.escape(f"but '{tmp_path}/{deeper}' matches some")):
            runs_matching(f"{tmp_path}/{text}")
    assert len(runs_matching(f"{tmp_path}/out/*/*")) == 2


def test_pipes_and_links_beside_runs_are_no_runs(tmp_path):
    sharded(suite(tmp_path, TEXTS), 2, tmp_path / "out")
    os.mkfifo(tmp_path / "out" / "1" / "pipe")
    (tmp_path / "out" / "1" / "self").symlink_to("self")
    assert len(runs_matching(f"{tmp_path}/out/*/*")) == 2


def test_an_empty_name_is_the_working_directory_and_not_the_root(tmp_path, monkeypatch):
    sharded(suite(tmp_path, TEXTS), 2, tmp_path / "out")
    monkeypatch.chdir(tmp_path / "out")
    with pytest.raises(InputError, match=r"^\. is not a run folder, but '\*/\*' matches some$"):
        runs_matching("")


def test_all_words_that_lead_to_no_run_are_named_at_once(tmp_path):
    [run] = sharded(suite(tmp_path, TEXTS), 1, tmp_path)
    with pytest.raises(InputError) as error:
        named_runs([f"{tmp_path}/none/*", str(run), f"{tmp_path}/nowhere"])
    none, nowhere = (problem.message for problem in error.value.problems)
    assert none == f"{tmp_path}/none/* matches no run"
    assert nowhere.startswith(f"{tmp_path}/nowhere does not exist")
