"""The types that users see: strict checkers accept the documentation's examples, and every public type is known."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "python.md"
BIN = Path(sys.executable).parent
FILE = re.compile(r"^```python file=(\w+\.py)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ENVIRONMENT = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}  # by PATH it finds what is installed


def run(*words, folder):
    return subprocess.run(words, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False)


@pytest.fixture
def examples(tmp_path):
    """The examples of the page as files."""
    found = FILE.findall(PAGE.read_text())
    assert len(found) > 10
    for name, text in found:
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.slow("type checkers read the package anew")
def test_mypy_is_strict_with_the_examples(examples):
    done = run(sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports", ".", folder=examples)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow("type checkers read the package anew")
def test_pyright_is_strict_with_the_examples(examples):
    libraries = {"reportMissingTypeStubs": False, "reportUnknownMemberType": False, "reportPrivateUsage": False}
    settings = {"typeCheckingMode": "strict", **libraries}
    (examples / "pyrightconfig.json").write_text(json.dumps(settings))
    done = run("basedpyright", folder=examples)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow("a type checker reads the whole package")
def test_every_public_type_is_known(tmp_path):
    done = run("basedpyright", "--verifytypes", "evalwright", "--ignoreexternal", "--outputjson", folder=tmp_path)
    symbols = json.loads(done.stdout)["typeCompleteness"]["symbols"]
    assert len(symbols) > 1000
    unknown = [s["name"] for s in symbols if s["isExported"] and (not s["isTypeKnown"] or s["isTypeAmbiguous"])]
    assert unknown == []
