"""Cases of two runs of promptfoo's suites, also of runs that promptfoo made, are known by their variables."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from evalwright.cli import main
from evalwright.formats.loading import load_suite
from evalwright.importers.promptfoo_results import PromptfooResults
from evalwright.run.options import RunOptions
from evalwright.run.start import run_suite
from formats.promptfoo.runs import ECHO, run_at, write


def _tests(*names: str, check: str = "contains") -> list[dict]:
    tests = [{"vars": {"q": name}, "assert": [{"type": check, "value": "n"}]} for name in names]
    return [{**test, "description": "the second"} if test["vars"]["q"] == "two" else test for test in tests]


def _run(folder: Path, tests: list[dict], **options) -> Path:
    folder.mkdir()
    return run_at(write(folder, {**ECHO, "tests": tests}), folder, options).outcome.run_dir


def _compared(capsys, *words: str) -> dict:
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(["compare", *words, "--json"])
    assert not ended.value.code, capsys.readouterr().err
    document: dict = json.loads(capsys.readouterr().out)
    return document


def _identity(comparison: dict) -> tuple[int, dict]:
    [variant] = comparison["variants"]
    return variant["decision"]["n"], variant["decision"]["identity"]


def test_a_test_that_is_put_in_before_others_leaves_their_pairs(tmp_path, capsys):
    before = _run(tmp_path / "a", _tests("one", "two", "gone", "one", "nine"))
    after = _run(tmp_path / "b", [*_tests("new", "one", "two", "one"), *_tests("nine", check="icontains")])
    n, identity = _identity(_compared(capsys, str(before), str(after)))
    assert n == 3  # one, two, the other one
    assert (identity["a_only"], identity["b_only"]) == (["test-2 of A"], ["test-0"])
    assert identity["cases_changed"] == ["test-4"]  # the same question, judged otherwise


def test_what_promptfoo_recorded_is_paired_with_our_run(tmp_path, capsys):
    ours = _run(tmp_path / "ours", _tests("zero", "one", "two"))
    # As promptfoo writes them: no description where there is none, tests in another order.
    rows = [
        {
            "testIdx": i, "promptIdx": 0, "success": name != "two", "vars": {"q": name}, "latencyMs": 1,
            "provider": {"id": "echo", "label": ""}, "response": {"output": name, "cost": 0},
            "prompt": {"raw": name, "label": "{{q}}"}, "testCase": {**test, "metadata": {}},
        }
        for i, (name, test) in enumerate(zip(("two", "one"), _tests("two", "one"), strict=True))
    ]  # fmt: skip
    (tmp_path / "out.json").write_text(json.dumps({"results": {"results": rows}}))
    PromptfooResults.import_files([tmp_path / "out.json"], tmp_path / "imported")
    run_dir = run_suite(load_suite(tmp_path / "imported/eval.yaml"), RunOptions(out=tmp_path / "runs")).run_dir
    found = _compared(capsys, str(run_dir), str(ours))
    n, identity = _identity(found)
    assert n == 2
    assert (identity["a_only"], identity["b_only"], identity["cases_changed"]) == ([], ["test-0"], [])
    assert msgspec.json.encode(found).count(b'"test-2"')  # "two", which got better
