"""The built-in example shows what it is there to show, wherever it is written."""

import json
import os
import resource

import pytest
import yaml

import warm
from evalwright.cli.demo import write_example
from evalwright.errors import InputError, StorageError


def evalwright(folder, *arguments):
    environment = {**os.environ, "COLUMNS": "120"}
    return warm.run(["-m", "evalwright", *map(str, arguments)], cwd=folder, env=environment)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """Two trials of the whole suite: what `evalwright run --json` says, and its exit code."""
    folder = tmp_path_factory.mktemp("demo")
    done = evalwright(folder, "run", write_example(folder), "--trials", "2", "--json")
    return done.returncode, json.loads(done.stdout)


def variants(outcome):
    return {variant["name"]: variant for variant in outcome[1]["summary"]["variants"]}


def cells(outcome, variant):
    return {status: number for status, number in variants(outcome)[variant]["cells"].items() if number}


def test_careful_fails_only_what_is_hard(outcome):
    assert cells(outcome, "careful") == {"pass": 60, "fail": 4}


def test_hasty_fails_where_it_leaves_checks_out_and_errs_once(outcome):
    assert cells(outcome, "hasty") == {"pass": 38, "fail": 24, "error": 2}


def test_a_cell_without_a_verdict_shows_in_the_exit_code(outcome):
    assert outcome[0] == 3


def test_trials_do_not_see_each_others_refunds(outcome):
    trials = variants(outcome)["careful"]["trials"]
    assert trials["pass_at_k"] == trials["pass_hat_k"] == [0.9375, 0.9375]


@pytest.mark.slow("runs the demo once for each check")
def test_every_check_left_out_costs_a_case_of_its_own(tmp_path):
    """Else a newcomer who gives one back sees no difference."""
    suite = write_example(tmp_path)
    document = yaml.safe_load(suite.read_text())
    careful, hasty = document["systems"]
    document["systems"] = [{**careful, "name": skip, "skips": [skip]} for skip in hasty["skips"]]
    document["run"] = {}
    suite.write_text(yaml.safe_dump(document))
    summary = json.loads(evalwright(tmp_path, "run", suite, "--json").stdout)["summary"]
    assert len(summary["variants"]) == 8
    assert [v["name"] for v in summary["variants"] if v["cells"]["pass"] >= 30] == []


def test_the_command_has_shown_what_it_should_and_ends_with_0(tmp_path):
    done = evalwright(tmp_path, "demo", "--out", "shop")
    assert done.returncode == 0, done.stderr
    assert "shop-support  32 cases × 2 variants" in done.stdout


def test_files_that_were_edited_stay_as_they_are(tmp_path):
    suite = write_example(tmp_path)
    suite.write_text("mine")
    write_example(tmp_path)
    assert suite.read_text() == "mine"


def test_an_example_that_cannot_be_written_leaves_nothing_and_can_be_written_later(tmp_path):
    size = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16_384, size[1]))  # agent.py fits
    try:
        with pytest.raises(StorageError, match="File too large"):
            write_example(tmp_path / "demo")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, size)
    assert not (tmp_path / "demo").exists()
    assert write_example(tmp_path / "demo").exists()


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(InputError, match="is a file, not a folder"):
        write_example(tmp_path / "taken" / "demo")
