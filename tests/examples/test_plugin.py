"""The example plug-in, installed as a package, is used by its names."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import warm

PLUGIN = Path(__file__).parents[2] / "examples" / "evalwright-plugin-example"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with the package in it, made by pip without the network and without a trace in the repository."""
    source = tmp_path_factory.mktemp("source") / "plugin"
    shutil.copytree(PLUGIN, source)
    site = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*command, "--disable-pip-version-check", "--target", site, source], check=True)
    return site


@pytest.fixture
def suite(tmp_path):
    for file in (PLUGIN / "suite").iterdir():
        shutil.copy(file, tmp_path)
    return tmp_path / "eval.yaml"


def evalwright(installed, folder, *arguments):
    path = os.pathsep.join(filter(None, (str(installed), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path, "COLUMNS": "120"}
    return warm.run(["-m", "evalwright", *arguments], cwd=folder, env=environment)


@pytest.mark.slow("installs a distribution")
def test_a_suite_uses_the_evaluator_and_the_target(installed, suite):
    done = evalwright(installed, suite.parent, "run", suite.name)
    assert done.returncode == 3, done.stderr
    assert "length: words: 1, expected 2 to 5" in done.stdout
    assert "no canned answer for 'silence'" in done.stdout


def test_its_configuration_is_checked_like_ours(installed, suite):
    suite.write_text(suite.read_text().replace("maximum: 5", "maximun: 5").replace("answers:", "replies:"))
    done = evalwright(installed, suite.parent, "run", suite.name)
    assert done.returncode == 2
    readme = (PLUGIN / "README.md").read_text()
    [promised] = [line for line in readme.splitlines() if line.startswith("eval.yaml:")]
    assert promised.split() in [line.split() for line in done.stderr.splitlines()]
    assert "systems[0].answers" in done.stderr


def test_lists_say_where_a_name_comes_from(installed, tmp_path):
    done = evalwright(installed, tmp_path, "list", "evaluators")
    listed = done.stdout.splitlines()
    assert listed[listed.index("evalwright-plugin-example") + 1].split()[0] == "word_count"


def test_the_built_in_names_are_found_without_it(suite):
    done = evalwright("", suite.parent, "validate", suite.name)
    assert done.returncode == 2
    assert "'canned'" in done.stderr
    assert "'word_count'" in done.stderr
